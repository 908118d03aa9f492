#include "core/expansion/merge_partners.hpp"

#include <algorithm>

namespace gristmill {

void MergePartners::forget(std::size_t slot) {
    for (std::size_t v = 0; v < partner_.size(); ++v)
        if (partner_[v] == slot) {
            partner_[v] = kNone;
            stale_[v] = 1;
        }
}

void MergePartners::removed(std::size_t slot, std::size_t last) {
    forget(slot);
    if (slot != last) {
        set(slot, {partner_[last], likeness_[last], share_[last]});
        stale_[slot] = stale_[last];
        self_[slot] = self_[last];
        inverse_[slot] = inverse_[last];
        for (auto& partner : partner_)
            if (partner == last) partner = slot;
    }
    partner_.pop_back();
    likeness_.pop_back();
    share_.pop_back();
    stale_.pop_back();
    self_.pop_back();
    inverse_.pop_back();
}

void MergePartners::clear() {
    partner_.clear();
    likeness_.clear();
    share_.clear();
    stale_.clear();
    self_.clear();
    inverse_.clear();
}

void MergePartners::reserve(std::size_t slots) {
    partner_.reserve(slots);
    likeness_.reserve(slots);
    share_.reserve(slots);
    stale_.reserve(slots);
    self_.reserve(slots);
    inverse_.reserve(slots);
}

void MergePartners::shrink(std::size_t slots) {
    if (partner_.capacity() <= slots) return;
    auto fit = [&](auto& list) {
        std::decay_t<decltype(list)> fresh;
        fresh.reserve(std::max(slots, list.size()));
        fresh.assign(list.begin(), list.end());
        list.swap(fresh);
    };
    fit(partner_);
    fit(likeness_);
    fit(share_);
    fit(stale_);
    fit(self_);
    fit(inverse_);
}

void MergePartners::visit(Archive& archive, std::size_t size) {
    std::vector<std::int64_t> partners;
    for (const auto partner : partner_) partners.push_back(partner == kNone ? -1 : static_cast<std::int64_t>(partner));
    archive.numbers("partners", partners, size);
    archive.numbers("likeness", likeness_, size);
    archive.numbers("shares", share_, size);
    archive.numbers("selves", self_, size);
    archive.numbers("stale", stale_, size);
    archive.count("partner_rows", rows_);
    if (!archive.loads) return;
    partner_.clear();
    inverse_.clear();
    for (const auto partner : partners) {
        if (partner < -1 || partner >= static_cast<std::int64_t>(size))
            archive.refuse("partners", "does not fit the points");
        partner_.push_back(partner < 0 ? kNone : static_cast<std::size_t>(partner));
    }
    for (const double self : self_) inverse_.push_back(inverse_of(self));
}

}  // namespace gristmill
