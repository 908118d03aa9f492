#include "core/partners.hpp"

#include <algorithm>

namespace gristmill {

// One pass over lanes that a compiler can keep in registers finds the least number, another the oldest slot that has it.
std::size_t Partners::least(const Points& points, const double* numbers) const {
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

Partners::Best Partners::best(const Points& points, const double* row, std::size_t self) {
    const std::size_t n = points.size();
    if (n == 0) return {};
    numbers_.resize(padded(n));
    for (std::size_t u = 0; u < n; ++u) numbers_[u] = -(row[u] * row[u] * inverse_[u]);
    if (self != kNone) numbers_[self] = 0;
    const std::size_t found = least(points, numbers_.data());
    if (!(numbers_[found] < 0)) return {};
    return {found, -numbers_[found], row[found] * inverse_[found]};
}

void Partners::set(std::size_t slot, const Best& best) {
    partner_[slot] = best.slot, likeness_[slot] = best.likeness, share_[slot] = best.share, stale_[slot] = 0;
}

void Partners::refresh(const Points& points, const Kernel& kernel, std::size_t slot) {
    row_.resize(padded(points.size()));
    points.stored_row(kernel, slot, row_.data());
    ++rows_;
    set(slot, best(points, row_.data(), slot));
}

std::size_t Partners::cheapest(const Points& points, const Kernel& kernel, std::span<const double> weights2,
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

Partners::Fold Partners::choose(const Points& points, const Kernel& kernel, std::span<const double> weights2,
                                double newcomer2, const double* row, double self) {
    newcomer_ = best(points, row, kNone);
    const double own = newcomer2 * std::max(self - newcomer_.likeness, 0.0);
    const std::size_t chosen = cheapest(points, kernel, weights2, {}, own);
    if (chosen == kNone) return {kNone, newcomer_.slot, newcomer_.share};
    return {chosen, partner_[chosen], share_[chosen]};
}

Partners::Fold Partners::choose(const Points& points, const Kernel& kernel, std::span<const double> weights2,
                                std::span<const std::uint8_t> may_go) {
    const std::size_t chosen = cheapest(points, kernel, weights2, may_go, std::numeric_limits<double>::infinity());
    return {chosen, partner_[chosen], share_[chosen]};
}

void Partners::forget(std::size_t slot) {
    for (std::size_t v = 0; v < partner_.size(); ++v)
        if (partner_[v] == slot) partner_[v] = kNone, stale_[v] = 1;
}

void Partners::stored(const Points& points, std::size_t slot, const double* row, double self) {
    const bool known = slot < partner_.size();
    if (!known) {
        partner_.push_back(kNone), likeness_.push_back(0), share_.push_back(0), stale_.push_back(0);
        self_.push_back(self), inverse_.push_back(inverse_of(self));
    } else {
        forget(slot);
        self_[slot] = self, inverse_[slot] = inverse_of(self);
    }
    set(slot, known && newcomer_.slot != kNone && newcomer_.slot != slot ? newcomer_ : best(points, row, slot));
    newcomer_ = {};
    const double inverse = inverse_[slot];
    for (std::size_t v = 0; v < points.size(); ++v) {
        const double likeness = row[v] * row[v] * inverse;
        if (likeness > likeness_[v] && v != slot) set(v, {slot, likeness, row[v] * inverse});
    }
}

void Partners::removed(std::size_t slot, std::size_t last) {
    forget(slot);
    if (slot != last) {
        set(slot, {partner_[last], likeness_[last], share_[last]});
        stale_[slot] = stale_[last], self_[slot] = self_[last], inverse_[slot] = inverse_[last];
        for (auto& partner : partner_)
            if (partner == last) partner = slot;
    }
    partner_.pop_back(), likeness_.pop_back(), share_.pop_back(), stale_.pop_back(), self_.pop_back(), inverse_.pop_back();
}

void Partners::meet_again(const Points& points, std::span<const double> selves) {
    newcomer_ = {};
    const std::size_t n = points.size();
    partner_.resize(n, kNone), likeness_.resize(n), share_.resize(n), stale_.resize(n), self_.resize(n), inverse_.resize(n);
    for (std::size_t v = 0; v < n; ++v) self_[v] = selves[v], inverse_[v] = inverse_of(selves[v]);
}

void Partners::clear() {
    partner_.clear(), likeness_.clear(), share_.clear(), stale_.clear(), self_.clear(), inverse_.clear();
}

void Partners::reserve(std::size_t slots) {
    partner_.reserve(slots), likeness_.reserve(slots), share_.reserve(slots), stale_.reserve(slots);
    self_.reserve(slots), inverse_.reserve(slots);
}

void Partners::shrink(std::size_t slots) {
    if (partner_.capacity() <= slots) return;
    auto fit = [&](auto& list) {
        std::decay_t<decltype(list)> fresh;
        fresh.reserve(std::max(slots, list.size()));
        fresh.assign(list.begin(), list.end());
        list.swap(fresh);
    };
    fit(partner_), fit(likeness_), fit(share_), fit(stale_), fit(self_), fit(inverse_);
}

void Partners::visit(Archive& archive, std::size_t size) {
    std::vector<std::int64_t> partners;
    for (const auto partner : partner_) partners.push_back(partner == kNone ? -1 : static_cast<std::int64_t>(partner));
    archive.numbers("partners", partners, size);
    archive.numbers("likeness", likeness_, size);
    archive.numbers("shares", share_, size);
    archive.numbers("selves", self_, size);
    archive.numbers("stale", stale_, size);
    archive.count("partner_rows", rows_);
    if (!archive.loads) return;
    partner_.clear(), inverse_.clear();
    for (const auto partner : partners) {
        if (partner < -1 || partner >= static_cast<std::int64_t>(size)) archive.refuse("partners", "does not fit the points");
        partner_.push_back(partner < 0 ? kNone : static_cast<std::size_t>(partner));
    }
    for (const double self : self_) inverse_.push_back(inverse_of(self));
}

}  // namespace gristmill
