// Kernel values of stored points that are about to leave.
//
// A budget that forgets by age has said long before who is next. So a few of the next ones are worked out together, at a
// matrix product's speed, and kept true while new points take the places of old ones. Values are the same, bit for bit, as
// those of one row by itself: k(x, y) and k(y, x) are sums of the same terms in the same order.
#pragma once

#include <algorithm>
#include <vector>

#include "core/kernels/points.hpp"

namespace gristmill {

class EvictedRows {
  public:
    // How many may leave before the chunk ends: no more are worked out ahead.
    std::size_t left = 1;

    // The values of the point in `slot` at all slots, until the next point is stored.
    const double* row(const Points& points, const Kernel& kernel, std::size_t slot) {
        auto at = std::find(slots_.begin(), slots_.end(), slot);
        if (at == slots_.end()) {
            load(points, kernel, slot);
            at = slots_.begin();
        }
        return values_.data() + static_cast<std::size_t>(at - slots_.begin()) * stride_;
    }
    // A new point, with these values at the slots as they were, has taken the place of the one in `slot`.
    void stored(const double* newcomer, std::size_t slot) {
        if (slot >= stride_) return clear();  // a budget of someone's own may let the store grow again
        for (std::size_t v = 0; v < slots_.size(); ++v) {
            if (slots_[v] == slot) slots_[v] = Points::npos;
            if (slots_[v] != Points::npos) values_[v * stride_ + slot] = newcomer[slots_[v]];
        }
    }
    void clear() { slots_.clear(); }

  private:
    void load(const Points& points, const Kernel& kernel, std::size_t slot) {
        // Over sparse rows a distance by coordinates is not summed alike both ways; foreign functions may do what they like.
        const bool symmetric = !kernel.needs_l1() && !points.may_fail();
        const std::size_t most = symmetric && slot == points.oldest() ? std::min<std::size_t>(left, 8) : 1;
        slots_.clear();
        for (std::size_t next = slot; slots_.size() < most && next != Points::npos; next = points.newer(next))
            slots_.push_back(next);
        stride_ = padded(points.size());
        values_.resize(slots_.size() * stride_);
        points.stored_rows(kernel, slots_, values_.data(), stride_);
    }

    std::vector<std::size_t> slots_;  // npos: it has left
    std::size_t stride_ = 0;
    Lines<double> values_;
};

}  // namespace gristmill
