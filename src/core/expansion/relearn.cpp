// Relearning: the stored points of an expansion as events.
#include "core/expansion/expansion.hpp"

#include <algorithm>
#include <cmath>

namespace gristmill {

namespace {

// Rows that are stored already: only k(x, x) is needed.
class StoredRows final : public KernelRows {
  public:
    explicit StoredRows(std::vector<double> selves) : selves_(std::move(selves)) {}
    void load(std::size_t, std::size_t) override {}
    void rows(double*, std::size_t) override {}
    void among(std::size_t, double*) override {}
    double self(std::size_t i) override { return selves_[i]; }

  private:
    std::vector<double> selves_;
};

// Copies kernel values of the slots [first, end) at all slots before `end` into their rows and, transposed, into the
// rows of earlier slots.
void scatter_symmetric(const double* fresh, std::size_t stride, std::size_t first, std::size_t end,
                       const std::vector<double*>& rows) {
    for (std::size_t slot = first; slot < end; ++slot) {
        const double* from = fresh + (slot - first) * stride;
        std::copy(from, from + slot + 1, rows[slot]);
    }
    constexpr std::size_t few = 8;  // one cache line, so that it is read once
    for (std::size_t s = 0; s < end; s += few)
        for (std::size_t slot = std::max(first, s); slot < end; ++slot) {
            const double* from = fresh + (slot - first) * stride;
            for (std::size_t t = s; t < std::min(s + few, slot); ++t) rows[t][slot] = from[t];
        }
}

}  // namespace

Lookahead Expansion::make_stored_lookahead() const {
    Lookahead lookahead(nullptr);
    lookahead.replays = true;
    lookahead.count = size();
    lookahead.stride = padded(size());
    lookahead.values.resize(lookahead.count * lookahead.stride);
    lookahead.start = 0;
    for (std::size_t slot = oldest(); slot != Points::npos; slot = newer(slot))
        lookahead.slots.emplace(static_cast<std::int64_t>(lookahead.slots.size()), slot);
    refresh_lookahead(lookahead);
    return lookahead;
}

// The kernel is symmetric: each pair of slots is evaluated once.
void Expansion::refresh_lookahead(Lookahead& stored) const {
    constexpr std::size_t block = 128;  // rows whose values stay in the cache
    std::vector<std::size_t> slots(stored.count);
    std::vector<double*> rows(stored.count);  // by slot
    std::vector<double> selves(stored.count);
    for (const auto& [i, slot] : stored.slots) {
        rows[slot] = stored.row(static_cast<std::size_t>(i));
        selves[static_cast<std::size_t>(i)] = points_->stored_self(kernel_, slot);
    }
    for (std::size_t slot = 0; slot < stored.count; ++slot) slots[slot] = slot;
    Lines<double> fresh(std::min(block, stored.count) * stored.stride);
    for (std::size_t first = 0; first < stored.count; first += block) {
        const std::size_t end = std::min(first + block, stored.count);
        points_->stored_rows(kernel_, std::span(slots).subspan(first, end - first), fresh.data(), stored.stride, end);
        scatter_symmetric(fresh.data(), stored.stride, first, end, rows);
    }
    stored.kernel_rows = std::make_unique<StoredRows>(std::move(selves));
}

void Expansion::change_points(const RowChange& change) {
    points_->change_rows(change);
    if (track_norm_) {
        double terms = 0;
        inner_ = exact_inner(&terms);
        error_bound_ = error_floor_ = kRounding * terms;
    }
    refresh_partners();
}

void Expansion::refresh_partners() {
    if (!partners_) return;
    constexpr std::size_t block = 64;
    std::vector<std::size_t> slots(size());
    std::vector<double> selves(size());
    for (std::size_t slot = 0; slot < size(); ++slot) {
        slots[slot] = slot;
        selves[slot] = points_->stored_self(kernel_, slot);
    }
    partners_->recompute(*points_, selves);
    const std::size_t stride = padded(size());
    Lines<double> rows(std::min(block, size()) * stride);
    for (std::size_t first = 0; first < size(); first += block) {
        const std::size_t count = std::min(block, size() - first);
        points_->stored_rows(kernel_, std::span(slots).subspan(first, count), rows.data(), stride);
        for (std::size_t r = 0; r < count; ++r) partners_->recompute(*points_, first + r, rows.data() + r * stride);
    }
}

void Expansion::refresh_partners(Lookahead& stored) {
    if (!partners_) return;
    std::vector<double> selves(size());
    for (const auto& [i, slot] : stored.slots) selves[slot] = stored.self(static_cast<std::size_t>(i));
    partners_->recompute(*points_, selves);
    for (std::size_t i = 0; i < stored.count; ++i)
        partners_->recompute(*points_, stored.slots.at(static_cast<std::int64_t>(i)), stored.row(i));
}

void Expansion::clear_coefs() {
    for (auto& coef : coef_) std::fill(coef.begin(), coef.end(), 0.0);
    std::fill(inner_.begin(), inner_.end(), 0.0);
    scale_ = 1;
    error_bound_ = error_floor_ = 0;
}

std::vector<std::vector<double>> Expansion::coefs() const {
    std::vector<std::vector<double>> found(coef_.size());
    for (std::size_t o = 0; o < coef_.size(); ++o)
        for (std::size_t slot = 0; slot < size(); ++slot) found[o].push_back(coef(slot, o));
    return found;
}

void Expansion::set_coefs(const std::vector<std::vector<double>>& coefs) {
    clear_coefs();
    for (std::size_t o = 0; o < coefs.size(); ++o) std::copy(coefs[o].begin(), coefs[o].end(), coef_[o].begin());
    if (track_norm_) inner_ = exact_inner();
}

void Expansion::fit_scores(Lookahead& stored, std::span<const double> scores, double pull) {
    constexpr int kSweeps = 2;
    constexpr double kRidge = 0.3;
    const auto present = coefs();
    for (int sweep = 0; sweep < kSweeps; ++sweep)
        for (std::size_t i = 0; i < stored.count; ++i) {
            const double self = stored.self(i);
            if (!(self > 0)) continue;
            const std::size_t slot = stored.slots[static_cast<std::int64_t>(i)];
            for (std::size_t o = 0; o < outputs(); ++o) {
                const double left = scores[i * outputs() + o] - score(o, stored.row(i)) -
                                    kRidge * self * (coef(slot, o) - pull * present[o][slot]);
                change(slot, o, left / (self * (1 + kRidge)) / scale_);
            }
        }
}

}  // namespace gristmill
