#include "core/novelty/coded_sample.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/elementary.hpp"
#include "core/simd/dispatch.hpp"

namespace gristmill::novelty {

double Nearest::mean(std::size_t k, double step) const {
    std::uint64_t sum = 0;
    k = std::min(k, count);
    for (std::size_t i = 0; i < k; ++i) sum += distance[i];
    return k == 0 ? 0.0 : static_cast<double>(sum) * step / static_cast<double>(k);
}

CodedSample::CodedSample(std::size_t width, std::size_t capacity, bool as_bytes)
    : width_(width), capacity_(capacity), as_bytes_(as_bytes), centre_(width), unit_(width) {
    stride_ = as_bytes ? (width + 15) / 16 * 16 : padded_slots();
    if (as_bytes) bytes_.assign(capacity * stride_, 128);
    else codes_.assign(width * stride_, 0);
}

std::size_t CodedSample::bytes_per_event(std::size_t width, bool as_bytes) {
    return as_bytes ? (width + 15) / 16 * 16 : sizeof(std::int32_t) * width;
}

std::size_t CodedSample::bytes() const {
    return sizeof *this + codes_.size() * sizeof codes_[0] + bytes_.size() + 2 * width_ * sizeof(double);
}

double CodedSample::soft(double u) {
    const double size = std::abs(u);
    if (size <= kLinear) return u;
    return std::copysign(std::min(kLinear + elementary::log1p(size - kLinear), kFarthest), u);
}

double CodedSample::hard(double z) {
    const double size = std::abs(z);
    return size <= kLinear ? z : std::copysign(kLinear + elementary::expm1(size - kLinear), z);
}

double CodedSample::scaled(std::size_t column, double value) const {
    const double from = value - centre_[column];
    if (unit_[column] == 0) return from == 0 ? 0.0 : std::copysign(kFirst, from);
    return soft(from * unit_[column]);
}

std::int32_t CodedSample::rounded(double z) const {
    return static_cast<std::int32_t>(std::clamp(std::floor(z / step() + 0.5), -limit(), limit()));
}

double CodedSample::decoded(std::size_t column, std::int32_t code) const {
    if (unit_[column] == 0) return centre_[column];
    return centre_[column] + hard(code * step()) / unit_[column];
}

double CodedSample::beyond(std::size_t column, double value) const {
    return std::max(std::abs(scaled(column, value)) - limit() * step(), 0.0);
}

void CodedSample::encode(const double* row, Coded& out) const {
    out.codes.resize(width_);
    out.beyond = 0;
    const double most = limit() * step();
    for (std::size_t c = 0; c < width_; ++c) {
        const double z = scaled(c, row[c]);
        out.codes[c] = rounded(z);
        if (std::abs(z) > most) out.beyond += std::abs(z) - most;
    }
    if (!as_bytes_) return;
    out.bytes.assign(stride_, 128);
    for (std::size_t c = 0; c < width_; ++c) out.bytes[c] = static_cast<std::uint8_t>(out.codes[c] + 128);
}

void CodedSample::coded(std::size_t slot, Coded& out) const {
    out.codes.resize(width_);
    out.beyond = 0;
    for (std::size_t c = 0; c < width_; ++c) out.codes[c] = code(slot, c);
    if (as_bytes_)
        out.bytes.assign(bytes_.begin() + static_cast<std::ptrdiff_t>(slot * stride_),
                         bytes_.begin() + static_cast<std::ptrdiff_t>((slot + 1) * stride_));
}

void CodedSample::set(std::size_t slot, std::size_t column, std::int32_t code) {
    if (as_bytes_) bytes_[slot * stride_ + column] = static_cast<std::uint8_t>(code + 128);
    else codes_[column * stride_ + slot] = code;
}

void CodedSample::put(std::size_t slot, const double* row, Coded& event) {
    for (std::size_t c = 0; c < width_; ++c) {
        if (unit_[c] == 0 && row[c] != centre_[c]) {
            const double unit = kFirst / std::abs(row[c] - centre_[c]);
            if (std::isfinite(unit)) unit_[c] = unit;
        }
        set(slot, c, event.codes[c]);
    }
    size_ = std::max(size_, slot + 1);
}

void CodedSample::distances(const Coded& event, std::uint32_t* out) const {
    if (as_bytes_) isa_codes().bytes(event.bytes.data(), bytes_.data(), size_, stride_, out);
    else isa_codes().fine(event.codes.data(), codes_.data(), width_, stride_, out);
}

void CodedSample::nearest(const std::uint32_t* distances, std::size_t without, Nearest& out) const {
    out.count = 0;
    std::uint32_t worst = ~std::uint32_t{0};
    for (std::size_t slot = 0; slot < size_; ++slot) {
        const std::uint32_t distance = distances[slot];
        if (out.count == Nearest::kMost && distance >= worst) continue;
        if (slot == without) continue;
        std::size_t at = std::min(out.count, Nearest::kMost - 1);
        for (; at > 0 && out.distance[at - 1] > distance; --at)
            out.distance[at] = out.distance[at - 1], out.slot[at] = out.slot[at - 1];
        out.distance[at] = distance, out.slot[at] = static_cast<std::uint32_t>(slot);
        if (out.count < Nearest::kMost) ++out.count;
        worst = out.distance[out.count - 1];
    }
}

// requires: at least one value, whose order is changed.
CodedSample::Ends CodedSample::ends_of(std::span<double> values) {
    const std::size_t n = values.size(), out = tail(n);
    auto at = [&](std::size_t place) { return values.begin() + static_cast<std::ptrdiff_t>(place); };
    std::nth_element(values.begin(), at((n - 1) / 2), values.end());
    const double middle = *at((n - 1) / 2);  // sorting the upper half moves it
    std::nth_element(values.begin(), at(out), at((n - 1) / 2));
    std::nth_element(at((n - 1) / 2), at(n - 1 - out), values.end());
    return {*std::min_element(values.begin(), at(out + 1)), *at(out), middle, *at(n - 1 - out),
            *std::max_element(at(n - 1 - out), values.end())};
}

// The larger of two spreads: the deviation of values drawn in to the 0.5 % and 99.5 % quantiles, and a third of what lies between these.
// each(f) calls f(value, how often). False for one value only.
template <class Each>
bool CodedSample::spread_of(const Ends& ends, std::size_t count, Each each, Change& change) {
    double sum = 0, squares = 0;
    each([&](double value, double often) {
        const double from = std::clamp(value, ends.low, ends.high) - ends.middle;
        sum += often * from, squares += often * (from * from);
    });
    const auto n = static_cast<double>(count);
    const double mean = sum / n, deviation = std::sqrt(std::max(squares / n - mean * mean, 0.0));
    change.centre = ends.middle;
    change.spread = std::max(deviation, (ends.high - ends.low) / 3);
    if (change.spread == 0) change.spread = (ends.most - ends.least) / kRare;  // hardly any event differs
    return change.spread > kLeastSpread;
}

void CodedSample::begin(const double* rows, std::size_t count) {
    std::vector<double> values(count);
    for (std::size_t c = 0; c < width_; ++c) {
        for (std::size_t r = 0; r < count; ++r) values[r] = rows[r * width_ + c];
        const Ends ends = ends_of(values);
        Change change;
        const bool moves = spread_of(
            ends, count,
            [&](auto f) {
                for (std::size_t r = 0; r < count; ++r) f(rows[r * width_ + c], 1);
            },
            change);
        centre_[c] = change.centre, unit_[c] = moves ? 1 / change.spread : 0.0;
    }
    Coded event;
    size_ = 0;
    for (std::size_t r = 0; r < count; ++r) {
        encode(rows + r * width_, event);
        put(r, rows + r * width_, event);
    }
}

bool CodedSample::changes(std::size_t column, double* room, Change& change) {
    if (unit_[column] == 0) return false;
    bool moves;
    if (as_bytes_) {  // counted, not sorted: there are few numbers and many columns
        std::uint32_t counts[256] = {};
        for (std::size_t slot = 0; slot < size_; ++slot) ++counts[bytes_[slot * stride_ + column]];
        Ends ends;
        std::size_t before = 0;
        auto value = [&](std::size_t byte) { return hard((static_cast<double>(byte) - 128) * step()); };
        auto reach = [&](std::size_t place, std::size_t byte, double& end) {
            if (before <= place && place < before + counts[byte]) end = value(byte);
        };
        for (std::size_t byte = 0; byte < 256; ++byte) {
            if (counts[byte] == 0) continue;
            reach(0, byte, ends.least), reach(tail(size_), byte, ends.low), reach((size_ - 1) / 2, byte, ends.middle);
            reach(size_ - 1 - tail(size_), byte, ends.high), reach(size_ - 1, byte, ends.most);
            before += counts[byte];
        }
        moves = spread_of(
            ends, size_,
            [&](auto f) {
                for (std::size_t byte = 0; byte < 256; ++byte)
                    if (counts[byte] > 0) f(value(byte), counts[byte]);
            },
            change);
    } else {
        const std::int32_t* codes = codes_.data() + column * stride_;
        for (std::size_t slot = 0; slot < size_; ++slot) room[slot] = hard(codes[slot] * step());
        moves = spread_of(
            ends_of({room, size_}), size_,
            [&](auto f) {
                for (std::size_t slot = 0; slot < size_; ++slot) f(hard(codes[slot] * step()), 1);
            },
            change);
    }
    if (!moves) {  // one value only
        centre_[column] += change.centre / unit_[column];
        unit_[column] = 0;
        change.spread = 1;
        return true;
    }
    return std::abs(change.centre) > kStill || std::abs(change.spread - 1) > kStill;
}

std::int32_t CodedSample::recoded(std::int32_t code, const Change& change) const {
    return rounded(soft((hard(code * step()) - change.centre) / change.spread));
}

void CodedSample::recode(std::size_t column, const Change& change) {
    if (unit_[column] != 0) {
        centre_[column] += change.centre / unit_[column];
        unit_[column] /= change.spread;
    }
    for (std::size_t slot = 0; slot < size_; ++slot) set(slot, column, recoded(code(slot, column), change));
}

CodedSample CodedSample::widened(std::size_t width, std::size_t capacity, bool as_bytes) const {
    CodedSample wide(width, capacity, as_bytes);
    std::copy(centre_.begin(), centre_.end(), wide.centre_.begin());
    std::copy(unit_.begin(), unit_.end(), wide.unit_.begin());
    wide.size_ = std::min(size_, capacity);
    for (std::size_t slot = 0; slot < wide.size_; ++slot)
        for (std::size_t c = 0; c < width_; ++c) wide.set(slot, c, wide.converted(code(slot, c), *this));
    return wide;
}

void CodedSample::visit(Archive& archive) {
    archive.numbers("centre", centre_, width_);
    archive.numbers("unit", unit_, width_);
    if (std::any_of(unit_.begin(), unit_.end(), [](double unit) { return unit < 0; }))
        archive.refuse("unit", "is negative");
    std::uint64_t size = size_;
    archive.count("size", size);
    if (size > capacity_) archive.refuse("size", "is more than the memory holds");
    size_ = size;
    if (as_bytes_) {
        archive.numbers("bytes", bytes_, bytes_.size());
        return;
    }
    std::vector<std::int64_t> codes(codes_.begin(), codes_.end());
    archive.numbers("codes", codes, codes.size());
    const auto most = static_cast<std::int64_t>(limit());
    if (std::any_of(codes.begin(), codes.end(), [&](std::int64_t code) { return code > most || code < -most; }))
        archive.refuse("codes", "holds a number that is out of range");
    codes_.assign(codes.begin(), codes.end());
}

}  // namespace gristmill::novelty
