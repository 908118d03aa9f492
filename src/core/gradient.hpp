// The gradient of an expansion at a few rows: each stored point's weight in it, then sums of the points by those weights.
//
// d f / d x_j = sum_i c_i (dot_i y_ij + norm_i x_j + l1_i sign(x_j - y_ij)), with the slopes of the kernel at each pair.
#pragma once

#include <span>
#include <type_traits>

#include "core/batch.hpp"
#include "core/kernels.hpp"

namespace gristmill {

// Points in blocks of lanes with their features side by side instead: the first line of each point, then the second, ... Sums of
// points by weights are then a product of matrices, which lanes of points would spread out.
template <class T>
Lines<T> lines_of(const T* blocks, std::size_t n_blocks, std::size_t width) {
    constexpr std::size_t lanes = kLanes<T>;
    const std::size_t lines = (width + lanes - 1) / lanes;
    Lines<T> table(lines * n_blocks * lanes * lanes);
    T* to = table.data();
    for (std::size_t line = 0; line < lines; ++line) {
        const std::size_t features = std::min(lanes, width - line * lanes);
        for (std::size_t b = 0; b < n_blocks; ++b, to += lanes * lanes) {
            const T* from = blocks + (b * width + line * lanes) * lanes;
            for (std::size_t l = 0; l < lanes; ++l)
                for (std::size_t j = 0; j < features; ++j) to[l * lanes + j] = from[j * lanes + l];
        }
    }
    return table;
}

template <class T>
class PointWeights {
  public:
    // coefs: one line an output, `slots` numbers each; slots: a multiple of kPad.
    PointWeights(const Kernel& kernel, std::span<const Lines<double>> coefs, std::size_t rows, std::size_t slots)
        : coefs_(coefs), slots_(slots), by_dot_(kernel.needs_dot()), by_norm_(kernel.needs_norm()), by_l1_(kernel.needs_l1()),
          dot_(by_dot_ ? rows * coefs.size() * slots : 0), l1_(by_l1_ ? rows * coefs.size() * slots : 0),
          norm_(rows * coefs.size()), slopes_(slots) {
        if constexpr (!std::is_same_v<T, double>)
            for (const auto& line : coefs) short_.emplace_back(line.begin(), line.end());
    }

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
        std::vector<const T*> dots(count), l1s(count), xs(count);
        std::vector<T*> to(count);
        for (std::size_t k = 0; k < count; ++k)
            dots[k] = dot(k), l1s[k] = l1(k), xs[k] = rows[k / outputs], to[k] = sums.data() + k * stride;
        if (by_dot_) isa_gradient<T>().points(dots.data(), count, table, slots_, stride, to.data());
        if (by_l1_) isa_gradient<T>().signs(l1s.data(), xs.data(), count, outputs > 1, blocks, n_blocks, width, to.data());
        for (std::size_t k = 0; k < count; ++k, out += width) isa_gradient<T>().plus(to[k], norm_[k], xs[k], width, out);
    }

  private:
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
    std::vector<Lines<T>> short_;  // the coefficients as the points are kept
    mutable Lines<T> zeros_;
};

}  // namespace gristmill
