// The gradient of an expansion at a few rows: each stored point's weight in it, then sums of the points by those weights.
//
// d f / d x_j = sum_i c_i (dot_i y_ij + norm_i x_j + l1_i sign(x_j - y_ij)), with the slopes of the kernel at each pair.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>

#include "core/batch.hpp"
#include "core/kernels.hpp"

namespace gristmill {

// Points in blocks of lanes, in lines of features instead. Sums of points by weights are then a product of matrices, which lanes of
// points would spread out.
template <class T>
Lines<T> lines_of(const T* blocks, std::size_t n_blocks, std::size_t width) {
    constexpr std::size_t lanes = kLanes<T>;
    Lines<T> table((width + lanes - 1) / lanes * n_blocks * lanes * lanes);
    isa_gradient<T>().lines(blocks, n_blocks, width, table.data());
    return table;
}

template <class T>
class PointWeights {
  public:
    // coefs: one line an output, `slots` numbers each; slots: a multiple of kPad.
    PointWeights(const Kernel& kernel, std::span<const Lines<double>> coefs, std::size_t rows, std::size_t slots)
        : coefs_(coefs), slots_(slots), by_dot_(kernel.needs_dot()), by_norm_(kernel.needs_norm()), by_l1_(kernel.needs_l1()),
          dot_(by_dot_ ? rows * coefs.size() * slots : 0), l1_(by_l1_ ? rows * coefs.size() * slots : 0),
          norm_(rows * coefs.size()), slopes_(slots), places_(coefs.size()) {
        if constexpr (!std::is_same_v<T, double>)
            for (const auto& line : coefs) short_.emplace_back(line.begin(), line.end());
        for (std::size_t o = 0; o < coefs.size(); ++o)
            for (std::size_t slot = 0; slot < slots; ++slot)
                if (coefs[o][slot] != 0) places_[o].push_back(static_cast<std::uint32_t>(slot));
    }
    // As made, for other rows.
    void restart() { std::fill(norm_.begin(), norm_.end(), 0.0); }

    std::size_t slots() const { return slots_; }
    // The slopes of a row at `size` slots from `first` on, in the order of IsaGradient: value, dot, norm, l1. Slots ascend.
    void take(std::size_t row, std::size_t first, std::size_t size, const T* slopes) {
        const T *dot = slopes + size, *norm = slopes + 2 * size, *l1 = slopes + 3 * size;
        if (by_norm_)
            for (std::size_t i = 0; i < size; ++i) slopes_[i] = static_cast<double>(norm[i]);
        for (std::size_t o = 0; o < coefs_.size(); ++o) {
            const std::size_t at = row * coefs_.size() + o;
            const double* coef = coefs_[o].data() + first;
            const T* factor = factors(o) + first;
            if (by_dot_) isa_gradient<T>().times(factor, dot, size, dot_.data() + at * slots_ + first);
            if (by_l1_) isa_gradient<T>().times(factor, l1, size, l1_.data() + at * slots_ + first);
            if (by_norm_) norm_[at] += isa_score().dot(coef, slopes_.data(), size);
        }
    }
    const T* dot(std::size_t at) const { return by_dot_ ? dot_.data() + at * slots_ : zeros(); }
    const T* l1(std::size_t at) const { return by_l1_ ? l1_.data() + at * slots_ : zeros(); }
    double norm(std::size_t at) const { return norm_[at]; }

    // Numbers of a row that is filled up to whole lines of the cache.
    static std::size_t filled(std::size_t width) { return (width + kLanes<T> - 1) / kLanes<T> * kLanes<T>; }
    bool by_points() const { return by_dot_; }
    // out: (row, output, feature), from points in blocks of lanes, and (where the slopes by <x, y> count) in lines of features.
    void gather(std::span<const T* const> rows, const T* blocks, const T* table, std::size_t width, double* out) const {
        const std::size_t outputs = coefs_.size(), count = rows.size() * outputs, n_blocks = slots_ / kLanes<T>;
        const std::size_t stride = filled(width);
        Lines<T> sums(count * stride);
        std::vector<const T*> l1s(count), xs(count);
        std::vector<T*> to(count);
        for (std::size_t k = 0; k < count; ++k) l1s[k] = l1(k), xs[k] = rows[k / outputs], to[k] = sums.data() + k * stride;
        for (std::size_t o = 0; by_dot_ && o < outputs; ++o) sum_points(o, rows.size(), table, stride, sums.data());
        if (by_l1_) isa_gradient<T>().signs(l1s.data(), xs.data(), count, outputs > 1, blocks, n_blocks, width, to.data());
        for (std::size_t k = 0; k < count; ++k, out += width) isa_gradient<T>().plus(to[k], norm_[k], xs[k], width, out);
    }

  private:
    // Of one output: a point that is nothing to it adds nothing. (With many classes most points are nothing to most of them.)
    void sum_points(std::size_t output, std::size_t rows, const T* table, std::size_t stride, T* sums) const {
        std::vector<const T*> weights(rows);
        std::vector<T*> to(rows);
        for (std::size_t r = 0; r < rows; ++r) {
            const std::size_t at = r * coefs_.size() + output;
            weights[r] = dot(at), to[r] = sums + at * stride;
        }
        const auto& places = places_[output];
        const bool most = 8 * places.size() > 7 * slots_;  // one after the other is faster than by places
        isa_gradient<T>().points(weights.data(), rows, most ? nullptr : places.data(), most ? slots_ : places.size(), table, slots_,
                                 stride, to.data());
    }
    const T* factors(std::size_t output) const {
        if constexpr (std::is_same_v<T, double>) return coefs_[output].data();
        else return short_[output].data();
    }
    const T* zeros() const {
        if (zeros_.empty()) zeros_.resize(slots_);
        return zeros_.data();
    }

    std::span<const Lines<double>> coefs_;
    std::size_t slots_;
    bool by_dot_, by_norm_, by_l1_;
    Lines<T> dot_, l1_;  // coefficient times slope, by row and output, then slot
    std::vector<double> norm_;
    Lines<double> slopes_;
    std::vector<std::vector<std::uint32_t>> places_;  // of the points that an output has a coefficient for
    std::vector<Lines<T>> short_;  // the coefficients as the points are kept
    mutable Lines<T> zeros_;
};

}  // namespace gristmill
