#include "core/additive/terms.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace gristmill {

Terms::Terms(std::size_t width, std::size_t outputs, bool single, bool smallest)
    : single_(single), rows_(width), coefs_(outputs), floats_(width), keep_heap_(smallest) {}

double Terms::magnitude(std::size_t slot) const {
    double largest = 0;
    for (const double c : coefs(slot)) largest = std::max(largest, std::abs(c));
    return largest;
}

void Terms::reserve(std::size_t slots) {
    if (slots > kMost) throw std::length_error("no more than 4294967295 terms can be stored");
    single_ ? floats_.reserve(slots) : rows_.reserve(slots);
    coefs_.reserve(slots);
    ids_.reserve(slots);
    ages_.reserve(slots);
    if (keep_heap_ && heap_.capacity() < slots) {
        heap_.reserve(slots + slots / 2);
        where_.reserve(slots + slots / 2);
    }
}

void Terms::write(std::size_t slot, std::int64_t id, const double* row, const double* coefs) {
    *ids_[slot] = id;
    if (single_) std::transform(row, row + width(), floats_[slot], [](double x) { return static_cast<float>(x); });
    else std::copy(row, row + width(), rows_[slot]);
    std::copy(coefs, coefs + outputs(), coefs_[slot]);
}

void Terms::append(std::int64_t id, const double* row, std::span<const double> coefs) {
    const std::size_t slot = size_;
    log(slot);
    write(slot, id, row, coefs.data());
    ++size_;
    link_newest(slot);
    if (keep_heap_) {
        heap_.push_back(0);
        where_.push_back(0);
        place(slot, static_cast<std::uint32_t>(slot));
        sift(slot);
    }
}

void Terms::remove(std::size_t slot) {
    const std::size_t last = size_ - 1;
    log(slot);
    log(last);
    unlink(slot);
    if (keep_heap_) {
        const std::size_t hole = where_[slot];
        place(hole, heap_[last]);
        heap_.pop_back();
        if (hole < last) sift(hole);
    }
    if (slot != last) {
        *ids_[slot] = id(last);
        if (single_) std::copy_n(floats_[last], width(), floats_[slot]);
        else std::copy_n(rows_[last], width(), rows_[slot]);
        std::copy_n(coefs_[last], outputs(), coefs_[slot]);
        const Age age = *ages_[slot] = *ages_[last];
        const auto moved = static_cast<std::uint32_t>(slot);
        (age.older == kNone ? oldest_ : ages_[age.older]->newer) = moved;
        (age.newer == kNone ? newest_ : ages_[age.newer]->older) = moved;
        if (keep_heap_) place(where_[last], moved);
    }
    if (keep_heap_) where_.pop_back();
    --size_;
}

void Terms::clear() {
    for (std::size_t slot = 0; slot < size_; ++slot) log(slot);
    size_ = 0;
    oldest_ = newest_ = kNone;
    heap_.clear();
    where_.clear();
}

void Terms::rescale(double factor) {
    if (logging_) {
        Record all{kNone, 0, {}, {}};
        for (std::size_t slot = 0; slot < size_; ++slot)
            all.coefs.insert(all.coefs.end(), coefs_[slot], coefs_[slot] + outputs());
        log_.push_back(std::move(all));
    }
    for (std::size_t slot = 0; slot < size_; ++slot)
        for (std::size_t o = 0; o < outputs(); ++o) {
            double& c = coefs_[slot][o];
            const double scaled = c * factor;
            c = c != 0 && scaled == 0 ? std::copysign(std::numeric_limits<double>::denorm_min(), c) : scaled;
        }
    make_heap();  // rounding of subnormal numbers may have made ties
}

void Terms::set_outputs(std::vector<std::vector<double>> coefs) {
    ChunkedArray<double> fresh(coefs.size());
    fresh.reserve(size_);
    for (std::size_t slot = 0; slot < size_; ++slot)
        for (std::size_t o = 0; o < coefs.size(); ++o) fresh[slot][o] = coefs[o][slot];
    coefs_ = std::move(fresh);
    make_heap();
}

// ---- ages ---------------------------------------------------------------------------------------------------------

void Terms::unlink(std::size_t slot) {
    const Age age = *ages_[slot];
    (age.older == kNone ? oldest_ : ages_[age.older]->newer) = age.newer;
    (age.newer == kNone ? newest_ : ages_[age.newer]->older) = age.older;
}

void Terms::link_newest(std::size_t slot) {
    const auto here = static_cast<std::uint32_t>(slot);
    *ages_[slot] = {newest_, kNone};
    (newest_ == kNone ? oldest_ : ages_[newest_]->newer) = here;
    newest_ = here;
}

void Terms::order_by_id() {
    std::vector<std::uint32_t> slots(size_);
    std::iota(slots.begin(), slots.end(), 0u);
    std::sort(slots.begin(), slots.end(), [&](auto a, auto b) { return id(a) < id(b); });
    oldest_ = newest_ = kNone;
    for (const auto slot : slots) link_newest(slot);
}

// ---- the smallest coefficient -------------------------------------------------------------------------------------

bool Terms::before(std::size_t a, std::size_t b) const {
    const double left = magnitude(a), right = magnitude(b);
    return left < right || (left == right && id(a) < id(b));
}

void Terms::place(std::size_t at, std::uint32_t slot) {
    heap_[at] = slot;
    where_[slot] = static_cast<std::uint32_t>(at);
}

void Terms::sift(std::size_t at) {
    const std::uint32_t slot = heap_[at];
    for (; at > 0 && before(slot, heap_[(at - 1) / 2]); at = (at - 1) / 2) place(at, heap_[(at - 1) / 2]);
    place(at, slot);
    sink(at);
}

void Terms::make_heap() {
    if (!keep_heap_) return;
    heap_.resize(size_);
    where_.resize(size_);
    for (std::size_t slot = 0; slot < size_; ++slot) place(slot, static_cast<std::uint32_t>(slot));
    for (std::size_t at = size_ / 2; at-- > 0;) sink(at);
}

void Terms::sink(std::size_t at) {
    const std::uint32_t slot = heap_[at];
    for (;;) {
        std::size_t child = 2 * at + 1;
        if (child >= heap_.size()) break;
        if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
        if (!before(heap_[child], slot)) break;
        place(at, heap_[child]);
        at = child;
    }
    place(at, slot);
}

// ---- transactions -------------------------------------------------------------------------------------------------

void Terms::log(std::size_t slot) {
    if (!logging_ || slot >= size_before_) return;
    log_.push_back({static_cast<std::uint32_t>(slot),
                    id(slot),
                    std::vector<double>(width()),
                    {coefs_[slot], coefs_[slot] + outputs()}});
    row(slot, log_.back().row.data());
}

void Terms::begin(bool long_chunk) {
    size_before_ = size_;
    logging_ = true;
    if (long_chunk)
        for (std::size_t slot = 0; slot < size_; ++slot) log(slot);
    logging_ = !long_chunk;
}

void Terms::commit() {
    logging_ = false;
    log_ = {};
}

void Terms::rollback() {
    for (std::size_t i = log_.size(); i-- > 0;) {
        const Record& record = log_[i];
        if (record.slot != kNone) {
            write(record.slot, record.id, record.row.data(), record.coefs.data());
        } else {
            for (std::size_t slot = 0; slot < record.coefs.size() / outputs(); ++slot)
                std::copy_n(record.coefs.data() + slot * outputs(), outputs(), coefs_[slot]);
        }
    }
    size_ = size_before_;
    commit();
    order_by_id();
    make_heap();
}

std::size_t Terms::bytes() const {
    return rows_.bytes() + floats_.bytes() + coefs_.bytes() + ids_.bytes() + ages_.bytes() +
           (heap_.capacity() + where_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace gristmill
