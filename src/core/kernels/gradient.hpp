// The gradient of an expansion at a few rows: the weight of each stored point, then weighted sums of the points. Points
// are summed panel by panel, while their weights are in the cache; signs, which are summed by lanes, after the last
// panel.
//
// d f / d x_j = sum_i c_i (dot_i y_ij + norm_i x_j + l1_i sign(x_j - y_ij)), with the slopes of the kernel at each
// pair.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>

#include "core/base/batch.hpp"
#include "core/kernels/kernels.hpp"

namespace gristmill {

// Transposes points from blocks of lanes to contiguous features. Weighted sums of points are then a matrix product,
// which blocks of lanes would scatter.
template <class T>
UnsetLines<T> lines_of(const T* blocks, std::size_t n_blocks, std::size_t width) {
    constexpr std::size_t lanes = kLanes<T>;
    UnsetLines<T> table((width + lanes - 1) / lanes * n_blocks * lanes * lanes);
    isa_gradient<T>().lines(blocks, n_blocks, width, table.data());
    return table;
}

template <class T>
class PointWeights {
  public:
    // coefs: one line of `slots` numbers per output; slots: a multiple of kPad; rows: the largest number of rows at
    // once; panel: number of slots that are weighted before their points are summed.
    PointWeights(const Kernel& kernel, std::span<const Lines<double>> coefs, std::size_t rows, std::size_t slots,
                 std::size_t panel)
        : coefs_(coefs), slots_(slots), panel_(std::max(std::min(panel, slots), kPad)), by_dot_(kernel.needs_dot()),
          by_norm_(kernel.needs_norm()), by_l1_(kernel.needs_l1()), dot_(by_dot_ ? rows * coefs.size() * panel_ : 0),
          l1_(by_l1_ ? rows * coefs.size() * slots : 0), norm_(rows * coefs.size()), slopes_(panel_),
          places_(coefs.size()) {
        if constexpr (!std::is_same_v<T, double>)
            for (const auto& line : coefs) short_.emplace_back(line.begin(), line.end());
        for (std::size_t o = 0; o < coefs.size(); ++o)
            for (std::size_t slot = 0; slot < slots; ++slot) {
                if (slot % panel_ == 0) places_[o].emplace_back();
                if (coefs[o][slot] != 0) places_[o].back().push_back(static_cast<std::uint32_t>(slot % panel_));
            }
    }
    // Starts a new set of rows of `width` features.
    void start(std::size_t rows, std::size_t width) {
        stride_ = filled(width);
        std::fill(norm_.begin(), norm_.end(), 0.0);
        sums_.assign(rows * coefs_.size() * stride_, T(0));
    }

    std::size_t slots() const { return slots_; }
    std::size_t panel() const { return panel_; }
    // Takes the slopes of a row at the `size` slots of the panel from `first` on, in the order of IsaGradient: value,
    // dot, norm, l1.
    void take(std::size_t row, std::size_t first, std::size_t size, const T* slopes) {
        const T *dot = slopes + size, *norm = slopes + 2 * size, *l1 = slopes + 3 * size;
        if (by_norm_ && !std::is_same_v<T, double>) std::copy_n(norm, size, slopes_.begin());
        for (std::size_t o = 0; o < coefs_.size(); ++o) {
            const std::size_t at = row * coefs_.size() + o;
            const T* factor = factors(o) + first;
            if (by_dot_) isa_gradient<T>().times(factor, dot, size, dot_.data() + at * panel_);
            if (by_l1_) isa_gradient<T>().times(factor, l1, size, l1_.data() + at * slots_ + first);
            if (by_norm_) norm_[at] += isa_score().dot(coefs_[o].data() + first, in_double(norm), size);
        }
    }
    const T* dot(std::size_t at) const { return by_dot_ ? dot_.data() + at * panel_ : zeros(); }
    const T* l1(std::size_t at) const { return by_l1_ ? l1_.data() + at * slots_ : zeros(); }
    double norm(std::size_t at) const { return norm_[at]; }

    // Row length rounded up to whole cache lines.
    static std::size_t filled(std::size_t width) { return (width + kLanes<T> - 1) / kLanes<T> * kLanes<T>; }
    bool by_points() const { return by_dot_; }
    // Adds the weighted points of the current panel; table: all points with contiguous features.
    void add_points(std::size_t rows, std::size_t first, std::size_t size, const T* table) {
        std::vector<const T*> weights(rows);
        std::vector<T*> to(rows);
        for (std::size_t o = 0; o < coefs_.size(); ++o) {
            for (std::size_t r = 0; r < rows; ++r) {
                const std::size_t at = r * coefs_.size() + o;
                weights[r] = dot(at);
                to[r] = sums_.data() + at * stride_;
            }
            // Points without a coefficient in this output are skipped: with many classes that is most of them.
            const auto& places = places_[o][first / panel_];
            const bool most = 8 * places.size() > 7 * size;  // if most are used, a sequential pass is faster
            isa_gradient<T>().points(weights.data(), rows, most ? nullptr : places.data(), most ? size : places.size(),
                                     table + first * kLanes<T>, slots_, stride_, to.data());
        }
    }
    // Writes (row, output, feature) after the last panel; blocks: the points in blocks of lanes.
    void gather(std::span<const T* const> rows, const T* blocks, std::size_t width, double* out) {
        const std::size_t outputs = coefs_.size(), count = rows.size() * outputs, n_blocks = slots_ / kLanes<T>;
        std::vector<const T*> l1s(count), xs(count);
        std::vector<T*> to(count);
        for (std::size_t k = 0; k < count; ++k) {
            l1s[k] = l1(k);
            xs[k] = rows[k / outputs];
            to[k] = sums_.data() + k * stride_;
        }
        if (by_l1_) {
            sign_scratch_.resize(sign_scratch_size<T>(n_blocks, count));
            isa_gradient<T>().signs(l1s.data(), xs.data(), count, outputs > 1, blocks, n_blocks, width,
                                    sign_scratch_.data(), to.data());
        }
        for (std::size_t k = 0; k < count; ++k, out += width)
            isa_gradient<T>().plus(to[k], norm_[k], xs[k], width, out);
    }

  private:
    const double* in_double([[maybe_unused]] const T* norm) const {
        if constexpr (std::is_same_v<T, double>) return norm;
        else return slopes_.data();
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
    std::size_t slots_, panel_, stride_ = 0;
    bool by_dot_, by_norm_, by_l1_;
    Lines<T> dot_, l1_;  // coefficient times slope, by row and output, then slot (of the panel; of all)
    std::vector<double> norm_;
    Lines<double> slopes_;
    std::vector<std::vector<std::vector<std::uint32_t>>> places_;  // by output and panel: the points with a coefficient
    std::vector<Lines<T>> short_;  // the coefficients in the precision of the points
    Lines<T> sums_, sign_scratch_;
    mutable Lines<T> zeros_;
};

}  // namespace gristmill
