// Kernel values of the stored points that will be evicted next.
//
// A budget that evicts by age has a known order of eviction. So the rows of the next few points are computed together,
// at the speed of a matrix product, and updated as new points replace old ones. The values are the same, bit for bit,
// as those of a single row: k(x, y) and k(y, x) sum the same terms in the same order.
#pragma once

#include <algorithm>
#include <vector>

#include "core/kernels/points.hpp"

namespace gristmill {

class EvictedRows {
  public:
    // Upper limit of evictions before the chunk ends: no more rows are computed ahead.
    std::size_t left = 1;

    // Kernel values of the point in `slot` at all slots; valid until the next point is stored.
    const double* row(const Points& points, const Kernel& kernel, std::size_t slot) {
        auto at = std::find(slots_.begin(), slots_.end(), slot);
        if (at == slots_.end()) {
            load(points, kernel, slot);
            at = slots_.begin();
        }
        return values_.data() + static_cast<std::size_t>(at - slots_.begin()) * stride_;
    }
    // A new point with the kernel values `newcomer` has replaced the one in `slot`.
    void stored(const double* newcomer, std::size_t slot) {
        if (slot >= stride_) return clear();  // a budget written in Python may let the store grow again
        for (std::size_t v = 0; v < slots_.size(); ++v) {
            if (slots_[v] == slot) slots_[v] = Points::npos;
            if (slots_[v] != Points::npos) values_[v * stride_ + slot] = newcomer[slots_[v]];
        }
    }
    void clear() { slots_.clear(); }

  private:
    void load(const Points& points, const Kernel& kernel, std::size_t slot) {
        // The L1 distance of sparse rows depends on the order of the arguments, and Python kernels may do anything.
        const bool symmetric = !kernel.needs_l1() && !points.may_fail();
        const std::size_t most = symmetric && slot == points.oldest() ? std::min<std::size_t>(left, 8) : 1;
        slots_.clear();
        for (std::size_t next = slot; slots_.size() < most && next != Points::npos; next = points.newer(next))
            slots_.push_back(next);
        stride_ = padded(points.size());
        values_.resize(slots_.size() * stride_);
        points.stored_rows(kernel, slots_, values_.data(), stride_);
    }

    std::vector<std::size_t> slots_;  // npos: evicted
    std::size_t stride_ = 0;
    Lines<double> values_;
};

}  // namespace gristmill
