#include "core/features/maps.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/base/threads.hpp"
#include "core/kernels/check.hpp"

namespace gristmill {

namespace {

constexpr std::size_t kTile = 64;    // rows at a time: their projections stay in the L2 cache
constexpr std::size_t kPanel = 24;   // blocks of lanes at a time, for the same reason

constexpr std::size_t kShortest = 64;  // shorter transforms would make folding the bottleneck

// One bit of the generator per sign; a sign matrix is the same for float and double.
class Bits {
  public:
    explicit Bits(Random& random) : random_(random) {}
    bool next() {
        if (left_ == 0) {
            word_ = random_.next();
            left_ = 64;
        }
        --left_;
        const bool bit = word_ & 1u;
        word_ >>= 1;
        return bit;
    }

  private:
    Random& random_;
    std::uint64_t word_ = 0;
    int left_ = 0;
};

template <class T>
void times(T* out, const T* factor, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] *= factor[i];
}

// (a + ib) <- (a + ib)(c + id)
template <class T>
void times(T* a, T* b, const T* c, const T* d, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        const T real = a[i] * c[i] - b[i] * d[i];
        b[i] = a[i] * d[i] + b[i] * c[i];
        a[i] = real;
    }
}

std::size_t total(const Features& features) {
    std::size_t sum = 0;
    for (const std::int32_t degree : features.degrees) sum += static_cast<std::size_t>(std::max(degree, 0));
    return sum;
}

// Walks the projections of a map panel by panel and maps each range of them to its features.
class Spans {
  public:
    explicit Spans(const Features& features) : levels_(features.levels()) {}
    // f(first feature, offset in the panel, length) for the projections [from, from + panel)
    template <class F>
    void within(std::size_t from, std::size_t panel, F f) {
        for (std::size_t at = 0; at < panel && level_ < levels_.size();) {
            const std::size_t feature = from + at - begin_;
            const std::size_t size = std::min(panel - at, levels_[level_] - feature);
            f(feature, at, size);
            at += size;
            if (feature + size == levels_[level_]) begin_ += levels_[level_++];
        }
    }

  private:
    std::vector<std::size_t> levels_;
    std::size_t level_ = 0, begin_ = 0;  // current level, and its first projection
};

}  // namespace

std::vector<std::size_t> Features::levels() const {
    std::vector<std::size_t> counts;
    for (std::size_t n = size(); n > 0;) {
        const auto level = static_cast<std::int32_t>(counts.size()) + 1;
        while (n > 0 && degrees[n - 1] < level) --n;
        if (n > 0) counts.push_back(n);
    }
    return counts;
}

template <class T>
void SignMatrix<T>::values(const Batch& batch, std::size_t first, std::size_t rows, std::size_t from, std::size_t size,
                           T* out, std::size_t stride) const {
    const std::size_t n_blocks = (size + kLanes<T> - 1) / kLanes<T>;
    const T* at = blocks_.data() + from * width_;
    if (const auto* dense = std::get_if<DenseRows<T>>(&batch)) {
        const T* pointers[kTile];
        for (std::size_t r = 0; r < rows; ++r) pointers[r] = dense->row(first + r);
        isa<T>().dots(pointers, rows, at, n_blocks, width_, out, stride);
        return;
    }
    const auto& sparse = std::get<SparseRows<T>>(batch);
    for (std::size_t r = 0; r < rows; ++r)
        isa<T>().sparse_dots(sparse.columns(first + r), sparse.values(first + r), sparse.nonzeros(first + r), at,
                             n_blocks, width_, out + r * stride);
}

template <class T>
SignedHadamard<T>::SignedHadamard(std::size_t count, std::size_t width, Random& random)
    : width_(width), size_(std::bit_ceil(std::min(std::max(count, kShortest), width))) {
    const std::size_t transforms = (count + size_ - 1) / size_;
    signs_.resize(transforms * width);
    Bits bits(random);
    for (T& sign : signs_) sign = bits.next() ? T(1) : T(-1);
    rows_.resize(transforms * size_);
    for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i] = static_cast<std::uint32_t>(i);
    // Another order of the rows at each level, so that two features do not share all neighbours.
    for (std::size_t i = rows_.size(); i > 1; --i) std::swap(rows_[i - 1], rows_[random.below(i)]);
    rows_.resize(count);
}

template <class T>
std::pair<SignedHadamard<T>, SignedHadamard<T>> SignedHadamard<T>::complex(std::size_t count, std::size_t width,
                                                                           Random& random) {
    SignedHadamard real(count, width, random), imaginary = real;
    Bits bits(random);
    for (std::size_t i = 0; i < real.signs_.size(); ++i) (bits.next() ? real : imaginary).signs_[i] = T(0);
    return {std::move(real), std::move(imaginary)};
}

template <class T>
void SignedHadamard<T>::values(const Batch& batch, std::size_t row, std::vector<T>& scratch, T* out) const {
    const std::size_t transforms = signs_.size() / width_;
    scratch.assign(transforms * size_, T(0));
    for (std::size_t t = 0; t < transforms; ++t) {
        T* folded = scratch.data() + t * size_;
        const T* sign = signs_.data() + t * width_;
        if (const auto* dense = std::get_if<DenseRows<T>>(&batch)) {
            const T* x = dense->row(row);
            for (std::size_t from = 0; from < width_; from += size_) {
                isa<T>().fold(x + from, sign + from, std::min(size_, width_ - from), folded);
            }
        } else {
            const auto& sparse = std::get<SparseRows<T>>(batch);
            for (std::size_t k = 0; k < sparse.nonzeros(row); ++k) {
                const auto j = static_cast<std::size_t>(sparse.columns(row)[k]);
                folded[j & (size_ - 1)] += sign[j] * sparse.values(row)[k];
            }
        }
        isa<T>().hadamard(folded, size_);
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) out[i] = scratch[rows_[i]];
}

template <class T>
MaclaurinMap<T>::MaclaurinMap(std::size_t width, Features real, Features pairs, bool structured, std::uint64_t seed)
    : width_(width), real_(std::move(real)), pairs_(std::move(pairs)), signs_(structured ? 0 : total(real_), width),
      pair_re_(structured ? 0 : total(pairs_), width), pair_im_(structured ? 0 : total(pairs_), width),
      is_structured_(structured) {
    for (const Features* features : {&real_, &pairs_})
        if (features->degrees.size() != features->weights.size() ||
            !std::is_sorted(features->degrees.rbegin(), features->degrees.rend()) ||
            (features->size() > 0 && features->degrees.back() < 0))
            throw std::invalid_argument("a map needs one weight a feature, and degrees >= 0, highest first");
    for (const double weight : real_.weights) start_.push_back(static_cast<T>(weight));
    for (const double weight : pairs_.weights) start_.push_back(static_cast<T>(weight));
    start_.resize(columns(), T(0));
    Random random{seed};
    if (structured) {
        for (const std::size_t count : real_.levels()) structured_.emplace_back(count, width, random);
        for (const std::size_t count : pairs_.levels())
            structured_pairs_.push_back(SignedHadamard<T>::complex(count, width, random));
    }
    Bits bits(random);
    for (std::size_t i = 0; i < signs_.count(); ++i)
        for (std::size_t j = 0; j < width; ++j) signs_.set(i, j, bits.next() ? T(1) : T(-1));
    for (std::size_t i = 0; i < pair_re_.count(); ++i)
        for (std::size_t j = 0; j < width; ++j) {
            const bool imaginary = bits.next();
            (imaginary ? pair_im_ : pair_re_).set(i, j, bits.next() ? T(1) : T(-1));
        }
}

template <class T>
void MaclaurinMap<T>::real_part(const Batch& batch, std::size_t first, std::size_t count, T* out,
                                std::size_t stride) const {
    constexpr std::size_t panel = kPanel * kLanes<T>;
    Lines<T> factor(signs_.count() > 0 ? count * panel : 0);
    Spans spans(real_);
    for (std::size_t from = 0; from < signs_.count(); from += panel) {
        signs_.values(batch, first, count, from, std::min(panel, signs_.count() - from), factor.data(), panel);
        spans.within(from, panel, [&](std::size_t feature, std::size_t at, std::size_t size) {
            for (std::size_t r = 0; r < count; ++r)
                times(out + r * stride + feature, factor.data() + r * panel + at, size);
        });
    }
}

template <class T>
void MaclaurinMap<T>::pair_part(const Batch& batch, std::size_t first, std::size_t count, T* out,
                                std::size_t stride) const {
    constexpr std::size_t panel = kPanel * kLanes<T>;
    Lines<T> re(pair_re_.count() > 0 ? count * panel : 0), im(re.size());
    Spans spans(pairs_);
    for (std::size_t from = 0; from < pair_re_.count(); from += panel) {
        const std::size_t here = std::min(panel, pair_re_.count() - from);
        pair_re_.values(batch, first, count, from, here, re.data(), panel);
        pair_im_.values(batch, first, count, from, here, im.data(), panel);
        spans.within(from, panel, [&](std::size_t feature, std::size_t at, std::size_t size) {
            for (std::size_t r = 0; r < count; ++r) {
                T* a = out + r * stride + feature;
                times(a, a + pairs_.size(), re.data() + r * panel + at, im.data() + r * panel + at, size);
            }
        });
    }
}

template <class T>
void MaclaurinMap<T>::structured_parts(const Batch& batch, std::size_t first, std::size_t count, T* out,
                                       std::size_t stride) const {
    std::vector<T> scratch, factor(std::max(real_.size(), pairs_.size())), imaginary(pairs_.size());
    // A few rows at a time use the signs of one level while both are in the L2 cache.
    const std::size_t few = std::clamp<std::size_t>((256u << 10) / (width_ * sizeof(T)), 1, kTile);
    for (std::size_t from = 0; from < count; from += few) {
        const std::size_t to = std::min(count, from + few);
        for (const auto& level : structured_)
            for (std::size_t r = from; r < to; ++r) {
                level.values(batch, first + r, scratch, factor.data());
                times(out + r * stride, factor.data(), level.count());
            }
        for (const auto& [re, im] : structured_pairs_)
            for (std::size_t r = from; r < to; ++r) {
                re.values(batch, first + r, scratch, factor.data());
                im.values(batch, first + r, scratch, imaginary.data());
                T* row = out + r * stride + real_.size();
                times(row, row + pairs_.size(), factor.data(), imaginary.data(), re.count());
            }
    }
}

template <class T>
bool MaclaurinMap<T>::finite_row(const Batch& batch, std::size_t row) const {
    if (const auto* dense = std::get_if<DenseRows<T>>(&batch)) return all_finite(dense->row(row), width_);
    const auto& sparse = std::get<SparseRows<T>>(batch);
    return all_finite(sparse.values(row), sparse.nonzeros(row));
}

template <class T>
void MaclaurinMap<T>::transform(const Batch& batch, std::size_t first, std::size_t count, T* out,
                                std::size_t stride) const {
    const std::size_t tiles = (count + kTile - 1) / kTile;
    const bool alone = threads_allowed() == 1 || count * columns() * 16 < kWorthThreads;
    parallel(tiles, alone ? 1 : threads_allowed(), [&](std::size_t tile) {
        const std::size_t done = tile * kTile, rows = std::min(kTile, count - done);
        T* at = out + done * stride;
        for (std::size_t r = 0; r < rows; ++r) std::copy(start_.begin(), start_.end(), at + r * stride);
        if (is_structured_) {
            structured_parts(batch, first + done, rows, at, stride);
        } else {
            real_part(batch, first + done, rows, at, stride);
            pair_part(batch, first + done, rows, at + real_.size(), stride);
        }
        for (std::size_t r = 0; r < rows; ++r)
            if (!finite_row(batch, first + done + r) || !all_finite(at + r * stride, columns()))
                throw RowError(first + done + r, "row " + std::to_string(first + done + r) +
                                                     " is too large: its features overflow; scale the inputs down");
    });
}

template <class T>
std::size_t MaclaurinMap<T>::bytes() const {
    std::size_t sum = sizeof *this + (real_.size() + pairs_.size()) * (sizeof(std::int32_t) + sizeof(double));
    sum += signs_.bytes() + pair_re_.bytes() + pair_im_.bytes();
    for (const auto& level : structured_) sum += level.bytes();
    for (const auto& [re, im] : structured_pairs_) sum += re.bytes() + im.bytes();
    return sum;
}

template class SignMatrix<double>;
template class SignMatrix<float>;
template class SignedHadamard<double>;
template class SignedHadamard<float>;
template class MaclaurinMap<double>;
template class MaclaurinMap<float>;

}  // namespace gristmill
