// The most similar stored point (partner) of each stored point, and the cost of merging them: used by `Merge`.
//
// Merging v into u, a_u += a_v k(v,u)/k(u,u), changes f by |a_v|^2 (k(v,v) - k(v,u)^2/k(u,u)), so the partner of v is
// the u with the largest likeness k(v,u)^2/k(u,u). The kernel row of a new point shows which stored points have a
// better partner now. A point whose partner was evicted keeps its old likeness, which no other can exceed: its cost is
// then a lower bound, and its row is recomputed only when that bound is the least of all.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "core/base/archive.hpp"
#include "core/kernels/points.hpp"

namespace gristmill {

// Template parameter P: any class with size(), id(slot) and stored_row(kernel, slot, out).
class MergePartners {
  public:
    static constexpr std::size_t kNone = Points::npos;

    struct Fold {
        std::size_t slot = kNone;     // the point to merge; kNone: the newcomer
        std::size_t partner = kNone;  // the point to merge it into; kNone: none is similar, and it is dropped
        double share = 0;             // share of its coefficients that the partner receives: k(v,u)/k(u,u)
    };
    // The newcomer or the stored point whose merging changes f least; ties go to the oldest, and the newcomer is the
    // youngest. weights2: squared coefficients by slot, and the newcomer's own; row: its kernel values.
    template <class P>
    Fold choose(const P& points, const Kernel& kernel, std::span<const double> weights2, double newcomer2,
                const double* row, double self);
    // The same among stored points only; may_go: those that may be evicted. requires: there is one.
    template <class P>
    Fold choose(const P& points, const Kernel& kernel, std::span<const double> weights2,
                std::span<const std::uint8_t> may_go);
    // A point with these kernel values was stored in `slot`, replacing any other.
    template <class P>
    void stored(const P& points, std::size_t slot, const double* row, double self);
    // The last slot was moved into `slot`, whose point was removed.
    void removed(std::size_t slot, std::size_t last);
    void clear();
    // Recomputes all partners after kernel values changed: first every k(v,v), then one row per slot.
    template <class P>
    void recompute(const P& points, std::span<const double> selves);
    template <class P>
    void recompute(const P& points, std::size_t slot, const double* row) {
        set(slot, best(points, row, slot));
    }

    std::uint64_t rows() const { return rows_; }  // kernel rows computed in addition to those of newcomers

    // The state of one slot, for callers that store it themselves.
    struct PartnerState {
        std::size_t partner = kNone;
        double likeness = 0, share = 0, self = 0;
        bool stale = false;
    };
    PartnerState partner_state(std::size_t slot) const {
        return {partner_[slot], likeness_[slot], share_[slot], self_[slot], stale_[slot] != 0};
    }
    void begin(std::uint64_t rows) { clear(), newcomer_ = {}, rows_ = rows; }
    void add(const PartnerState& one) {
        partner_.push_back(one.partner);
        likeness_.push_back(one.likeness);
        share_.push_back(one.share);
        self_.push_back(one.self);
        inverse_.push_back(inverse_of(one.self));
        stale_.push_back(one.stale);
    }
    void reserve(std::size_t slots);
    void shrink(std::size_t slots);  // frees capacity beyond this
    static std::size_t bytes_for(std::size_t slots) { return slots * (sizeof(std::size_t) + 4 * sizeof(double) + 1); }
    std::size_t bytes() const { return bytes_for(partner_.capacity()); }
    void visit(Archive& archive, std::size_t size);

  private:
    struct Best {
        std::size_t slot = kNone;
        double likeness = 0, share = 0;
    };
    static double inverse_of(double self) { return self > 0 ? 1 / self : 0.0; }
    // The stored point most similar to one with these kernel values, other than `self`; ties go to the oldest.
    template <class P>
    Best best(const P& points, const double* row, std::size_t self);
    // The slot of the least number; the oldest of equals. requires: at least one slot.
    template <class P>
    std::size_t least(const P& points, const double* numbers) const;
    // The stored point that is cheapest to merge, if it costs at most `most`; kNone otherwise.
    template <class P>
    std::size_t cheapest(const P& points, const Kernel& kernel, std::span<const double> weights2,
                         std::span<const std::uint8_t> may_go, double most);
    void set(std::size_t slot, const Best& best);
    template <class P>
    void refresh(const P& points, const Kernel& kernel, std::size_t slot);
    void forget(std::size_t slot);  // marks it stale in all slots that had it as partner

    std::vector<std::size_t> partner_;  // by slot; kNone: none is similar
    std::vector<double> likeness_, share_, self_;  // k(v,u)^2/k(u,u) and k(v,u)/k(u,u) of the partner, or 0; k(v,v)
    std::vector<std::uint8_t> stale_;  // the partner was evicted: the likeness is an upper bound
    std::uint64_t rows_ = 0;
    Best newcomer_;  // result for the newcomer of the last choice
    std::vector<double> inverse_;  // 1/k(u,u), or 0
    Lines<double> row_, numbers_;  // scratch
};

// One vectorisable pass finds the least number, another the oldest slot that has it.
template <class P>
std::size_t MergePartners::least(const P& points, const double* numbers) const {
    constexpr std::size_t lanes = 8;
    const std::size_t n = points.size();
    double lows[lanes];
    std::fill(lows, lows + lanes, numbers[0]);
    std::size_t v = 0;
    for (; v + lanes <= n; v += lanes)
        for (std::size_t l = 0; l < lanes; ++l) lows[l] = numbers[v + l] < lows[l] ? numbers[v + l] : lows[l];
    for (; v < n; ++v) lows[0] = std::min(lows[0], numbers[v]);
    const double low = *std::min_element(lows, lows + lanes);
    std::size_t found = kNone;
    for (v = 0; v < n; ++v)
        if (numbers[v] == low && (found == kNone || points.id(v) < points.id(found))) found = v;
    return found;
}

template <class P>
MergePartners::Best MergePartners::best(const P& points, const double* row, std::size_t self) {
    const std::size_t n = points.size();
    if (n == 0) return {};
    numbers_.resize(padded(n));
    for (std::size_t u = 0; u < n; ++u) numbers_[u] = -(row[u] * row[u] * inverse_[u]);
    if (self != kNone) numbers_[self] = 0;
    const std::size_t found = least(points, numbers_.data());
    if (!(numbers_[found] < 0)) return {};
    return {found, -numbers_[found], row[found] * inverse_[found]};
}

inline void MergePartners::set(std::size_t slot, const Best& best) {
    partner_[slot] = best.slot;
    likeness_[slot] = best.likeness;
    share_[slot] = best.share;
    stale_[slot] = 0;
}

template <class P>
void MergePartners::refresh(const P& points, const Kernel& kernel, std::size_t slot) {
    row_.resize(padded(points.size()));
    points.stored_row(kernel, slot, row_.data());
    ++rows_;
    set(slot, best(points, row_.data(), slot));
}

template <class P>
std::size_t MergePartners::cheapest(const P& points, const Kernel& kernel, std::span<const double> weights2,
                                    std::span<const std::uint8_t> may_go, double most) {
    const std::size_t n = points.size();
    numbers_.resize(padded(n));
    for (;;) {
        for (std::size_t v = 0; v < n; ++v) {
            const double left = self_[v] - likeness_[v];
            numbers_[v] = weights2[v] * (left > 0 ? left : 0.0);
        }
        for (std::size_t v = 0; v < may_go.size(); ++v)
            if (!may_go[v]) numbers_[v] = std::numeric_limits<double>::infinity();
        const std::size_t chosen = least(points, numbers_.data());
        if (most < numbers_[chosen]) return kNone;
        if (!stale_[chosen]) return chosen;
        refresh(points, kernel, chosen);
    }
}

template <class P>
MergePartners::Fold MergePartners::choose(const P& points, const Kernel& kernel, std::span<const double> weights2,
                                          double newcomer2, const double* row, double self) {
    newcomer_ = best(points, row, kNone);
    const double own = newcomer2 * std::max(self - newcomer_.likeness, 0.0);
    const std::size_t chosen = cheapest(points, kernel, weights2, {}, own);
    if (chosen == kNone) return {kNone, newcomer_.slot, newcomer_.share};
    return {chosen, partner_[chosen], share_[chosen]};
}

template <class P>
MergePartners::Fold MergePartners::choose(const P& points, const Kernel& kernel, std::span<const double> weights2,
                                          std::span<const std::uint8_t> may_go) {
    const std::size_t chosen = cheapest(points, kernel, weights2, may_go, std::numeric_limits<double>::infinity());
    return {chosen, partner_[chosen], share_[chosen]};
}

template <class P>
void MergePartners::stored(const P& points, std::size_t slot, const double* row, double self) {
    const bool known = slot < partner_.size();
    if (!known) {
        partner_.push_back(kNone);
        likeness_.push_back(0);
        share_.push_back(0);
        stale_.push_back(0);
        self_.push_back(self);
        inverse_.push_back(inverse_of(self));
    } else {
        forget(slot);
        self_[slot] = self;
        inverse_[slot] = inverse_of(self);
    }
    set(slot, known && newcomer_.slot != kNone && newcomer_.slot != slot ? newcomer_ : best(points, row, slot));
    newcomer_ = {};
    const double inverse = inverse_[slot];
    for (std::size_t v = 0; v < points.size(); ++v) {
        const double likeness = row[v] * row[v] * inverse;
        if (likeness > likeness_[v] && v != slot) set(v, {slot, likeness, row[v] * inverse});
    }
}

template <class P>
void MergePartners::recompute(const P& points, std::span<const double> selves) {
    newcomer_ = {};
    const std::size_t n = points.size();
    partner_.resize(n, kNone);
    likeness_.resize(n);
    share_.resize(n);
    stale_.resize(n);
    self_.resize(n);
    inverse_.resize(n);
    for (std::size_t v = 0; v < n; ++v) {
        self_[v] = selves[v];
        inverse_[v] = inverse_of(selves[v]);
    }
}

}  // namespace gristmill
