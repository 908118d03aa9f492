// The derivative of sums of Maclaurin features by the product rule.
#include <algorithm>

#include "core/features/maps.hpp"
#include "core/kernels/check.hpp"
#include "core/kernels/gradient.hpp"

namespace gristmill {

namespace {

constexpr std::size_t kTile = 16;  // rows at a time

// Products without each of their factors: of the features [0, counts[l]) the l-th factors start at the sum of the
// earlier counts. `first`: initial value of a product.
template <class T>
void leave_out(const std::vector<std::size_t>& counts, const T* factors, std::vector<T> first, T* out) {
    std::size_t begin = 0;
    for (const std::size_t n : counts) {
        for (std::size_t f = 0; f < n; ++f) {
            out[begin + f] = first[f];
            first[f] *= factors[begin + f];
        }
        begin += n;
    }
    std::vector<T> last(first.size(), T(1));
    for (std::size_t l = counts.size(); l-- > 0;) {
        begin -= counts[l];
        for (std::size_t f = 0; f < counts[l]; ++f) {
            out[begin + f] *= last[f];
            last[f] *= factors[begin + f];
        }
    }
}

template <class T>
struct Complex {
    T re, im;
    Complex operator*(const Complex& z) const { return {re * z.re - im * z.im, re * z.im + im * z.re}; }
};

// The same for complex factors.
template <class T>
void leave_out(const std::vector<std::size_t>& counts, const T* re, const T* im, std::vector<Complex<T>> first,
               T* out_re, T* out_im) {
    std::size_t begin = 0;
    for (const std::size_t n : counts) {
        for (std::size_t f = 0; f < n; ++f) {
            out_re[begin + f] = first[f].re;
            out_im[begin + f] = first[f].im;
            first[f] = first[f] * Complex<T>{re[begin + f], im[begin + f]};
        }
        begin += n;
    }
    std::vector<Complex<T>> last(first.size(), {T(1), T(0)});
    for (std::size_t l = counts.size(); l-- > 0;) {
        begin -= counts[l];
        for (std::size_t f = 0; f < counts[l]; ++f) {
            const std::size_t at = begin + f;
            const Complex<T> rest = Complex<T>{out_re[at], out_im[at]} * last[f];
            out_re[at] = rest.re;
            out_im[at] = rest.im;
            last[f] = last[f] * Complex<T>{re[at], im[at]};
        }
    }
}

}  // namespace

template <class T>
UnsetLines<T> SignMatrix<T>::lines() const {
    return lines_of(blocks_.data(), slots() / kLanes<T>, width_);
}

template <class T>
void SignedHadamard<T>::pull(const T* weights, std::vector<T>& scratch, T* out) const {
    const std::size_t transforms = signs_.size() / width_;
    scratch.assign(transforms * size_, T(0));
    for (std::size_t i = 0; i < rows_.size(); ++i) scratch[rows_[i]] = weights[i];
    for (std::size_t t = 0; t < transforms; ++t) {
        T* folded = scratch.data() + t * size_;
        isa<T>().hadamard(folded, size_);  // symmetric
        const T* sign = signs_.data() + t * width_;
        for (std::size_t j = 0; j < width_; ++j) out[j] += sign[j] * folded[j & (size_ - 1)];
    }
}

// One tile of rows: their projections, then the weights of the projections in each gradient, then the sums.
template <class T>
class MaclaurinMap<T>::Pull {
  public:
    Pull(const MaclaurinMap& map, std::size_t outputs) : map_(map), outputs_(outputs) {
        for (const Features* features : {&map.real_, &map.pairs_}) {
            const auto counts = features->levels();
            std::size_t total = 0;
            for (const std::size_t n : counts) total += n;
            Shape& shape = features == &map.real_ ? real_ : pairs_;
            shape.counts = counts;
            shape.stride = (total + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
        }
        if (map.is_structured_) return;
        signs_ = map.signs_.lines();
        re_signs_ = map.pair_re_.lines();
        im_signs_ = map.pair_im_.lines();
    }

    void operator()(const Batch& batch, std::size_t first, std::size_t rows, const double* weights,
                    std::size_t row_stride, double* out) {
        const std::size_t count = rows * outputs_, width = map_.width_, stride = PointWeights<T>::filled(width);
        project(batch, first, rows);
        Lines<T> real(count * real_.stride), re(count * pairs_.stride), im(re.size()), sums(count * stride);
        for (std::size_t k = 0; k < count; ++k) {
            const double* w = weights + k / outputs_ * row_stride + k % outputs_ * map_.columns();
            const std::size_t r = k / outputs_;
            leave_out(real_.counts, factors_.data() + r * real_.stride, weighed(w), real.data() + k * real_.stride);
            leave_out(pairs_.counts, re_.data() + r * pairs_.stride, im_.data() + r * pairs_.stride, weighed_pairs(w),
                      re.data() + k * pairs_.stride, im.data() + k * pairs_.stride);
        }
        for (T& x : im) x = -x;  // Re(q i db) = -Im(q) db
        if (map_.is_structured_) pull(real, re, im, count, stride, sums);
        else {
            sum(real, real_.stride, signs_, count, stride, sums);
            sum(re, pairs_.stride, re_signs_, count, stride, sums);
            sum(im, pairs_.stride, im_signs_, count, stride, sums);
        }
        for (std::size_t k = 0; k < count; ++k) std::copy_n(sums.data() + k * stride, width, out + k * width);
    }

  private:
    struct Shape {
        std::vector<std::size_t> counts;  // projections by level
        std::size_t stride = 0;
    };

    void project(const Batch& batch, std::size_t first, std::size_t rows) {
        factors_.assign(rows * real_.stride, T(0));
        re_.assign(rows * pairs_.stride, T(0));
        im_.assign(rows * pairs_.stride, T(0));
        if (!map_.is_structured_) {
            if (real_.stride)
                map_.signs_.values(batch, first, rows, 0, map_.signs_.count(), factors_.data(), real_.stride);
            if (!pairs_.stride) return;
            map_.pair_re_.values(batch, first, rows, 0, map_.pair_re_.count(), re_.data(), pairs_.stride);
            map_.pair_im_.values(batch, first, rows, 0, map_.pair_im_.count(), im_.data(), pairs_.stride);
            return;
        }
        for (std::size_t r = 0; r < rows; ++r) {
            T *at = factors_.data() + r * real_.stride, *re = re_.data() + r * pairs_.stride,
              *im = im_.data() + r * pairs_.stride;
            for (const auto& level : map_.structured_) {
                level.values(batch, first + r, scratch_, at);
                at += level.count();
            }
            for (const auto& [a, b] : map_.structured_pairs_) {
                a.values(batch, first + r, scratch_, re);
                re += a.count();
                b.values(batch, first + r, scratch_, im);
                im += b.count();
            }
        }
    }
    // Initial values of the products: the weight of a feature times that of its column.
    std::vector<T> weighed(const double* w) const {
        std::vector<T> first(map_.real_.size());
        for (std::size_t f = 0; f < first.size(); ++f) first[f] = map_.start_[f] * static_cast<T>(w[f]);
        return first;
    }
    // u Re z + v Im z = Re((u - iv) z)
    std::vector<Complex<T>> weighed_pairs(const double* w) const {
        const std::size_t begin = map_.real_.size(), n = map_.pairs_.size();
        std::vector<Complex<T>> first(n);
        for (std::size_t f = 0; f < n; ++f) {
            const T weight = map_.start_[begin + f];
            first[f] = {weight * static_cast<T>(w[begin + f]), -weight * static_cast<T>(w[begin + n + f])};
        }
        return first;
    }
    static void sum(const Lines<T>& weights, std::size_t slots, const UnsetLines<T>& points, std::size_t count,
                    std::size_t stride, Lines<T>& sums) {
        if (slots == 0) return;
        std::vector<const T*> from(count);
        std::vector<T*> to(count);
        for (std::size_t k = 0; k < count; ++k) {
            from[k] = weights.data() + k * slots;
            to[k] = sums.data() + k * stride;
        }
        isa_gradient<T>().points(from.data(), count, nullptr, slots, points.data(), slots, stride, to.data());
    }
    void pull(const Lines<T>& real, const Lines<T>& re, const Lines<T>& im, std::size_t count, std::size_t stride,
              Lines<T>& sums) {
        for (std::size_t k = 0; k < count; ++k) {
            T* to = sums.data() + k * stride;
            const T *at = real.data() + k * real_.stride, *a = re.data() + k * pairs_.stride,
                    *b = im.data() + k * pairs_.stride;
            for (const auto& level : map_.structured_) {
                level.pull(at, scratch_, to);
                at += level.count();
            }
            for (const auto& [x, y] : map_.structured_pairs_) {
                x.pull(a, scratch_, to);
                a += x.count();
                y.pull(b, scratch_, to);
                b += y.count();
            }
        }
    }

    const MaclaurinMap& map_;
    std::size_t outputs_;
    Shape real_, pairs_;
    UnsetLines<T> signs_, re_signs_, im_signs_;  // as rows; unused by a structured map
    Lines<T> factors_, re_, im_;            // projections by row, then level
    std::vector<T> scratch_;
};

template <class T>
void MaclaurinMap<T>::gradients(const Batch& batch, const double* weights, std::size_t row_stride, std::size_t outputs,
                                double* out) const {
    Pull pull(*this, outputs);
    const std::size_t rows = batch_count(batch), each = outputs * width_;
    for (std::size_t first = 0; first < rows; first += kTile)
        pull(batch, first, std::min(kTile, rows - first), weights + first * row_stride, row_stride, out + first * each);
    for (std::size_t r = 0; r < rows; ++r)
        if (!all_finite(out + r * each, each))
            throw RowError(r,
                           "row " + std::to_string(r) + " is too large: its gradient overflows; scale the inputs down");
}

template UnsetLines<double> SignMatrix<double>::lines() const;
template UnsetLines<float> SignMatrix<float>::lines() const;
template void SignedHadamard<double>::pull(const double*, std::vector<double>&, double*) const;
template void SignedHadamard<float>::pull(const float*, std::vector<float>&, float*) const;
template void MaclaurinMap<double>::gradients(const Batch&, const double*, std::size_t, std::size_t, double*) const;
template void MaclaurinMap<float>::gradients(const Batch&, const double*, std::size_t, std::size_t, double*) const;

}  // namespace gristmill
