// Random Maclaurin maps: a feature is a weight times a product of `degree` random projections of x.
//
// Features are sorted by degree, highest first, so that those with a j-th projection are a prefix and every product is
// computed in place. Signs are a pure function of the seed, so a map is defined by its seed, degrees and weights.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/batch.hpp"
#include "core/base/random.hpp"

namespace gristmill {

struct Features {
    std::vector<std::int32_t> degrees;  // descending
    std::vector<double> weights;

    std::size_t size() const { return degrees.size(); }
    std::vector<std::size_t> levels() const;  // how many features have a first projection, a second, ...
};

// Sign vectors onto which x is projected; `values` computes the projections of a few rows of x.
template <class T>
class SignMatrix {
  public:
    SignMatrix(std::size_t count, std::size_t width) : count_(count), width_(width) {
        blocks_.assign((count + kLanes<T> - 1) / kLanes<T> * width * kLanes<T>, T(0));
    }
    std::size_t count() const { return count_; }
    void set(std::size_t row, std::size_t column, T sign) {
        blocks_[(row / kLanes<T> * width_ + column) * kLanes<T> + row % kLanes<T>] = sign;
    }
    // Projections [from, from + size) of the rows, in out[r * stride + i]; from: a multiple of the lanes.
    void values(const Batch& batch, std::size_t first, std::size_t rows, std::size_t from, std::size_t size, T* out,
                std::size_t stride) const;
    // The sign vectors as contiguous rows, for weighted sums of them (kernels/gradient.hpp).
    UnsetLines<T> lines() const;
    std::size_t slots() const { return (count_ + kLanes<T> - 1) / kLanes<T> * kLanes<T>; }
    std::size_t bytes() const { return blocks_.size() * sizeof(T); }

  private:
    std::size_t count_, width_;
    Lines<T> blocks_;
};

// Signed Hadamard projections: x is folded by random signs to a power of two, then transformed. Each row of the implied
// matrix is a uniform sign vector, so products over independent blocks are as unbiased as with independent rows.
template <class T>
class SignedHadamard {
  public:
    SignedHadamard(std::size_t count, std::size_t width, Random& random);
    // Real and imaginary part of projections with the signs 1, i, -1, -i.
    static std::pair<SignedHadamard, SignedHadamard> complex(std::size_t count, std::size_t width, Random& random);
    // All projections of one row of x into out[0..count).
    void values(const Batch& batch, std::size_t row, std::vector<T>& scratch, T* out) const;
    // The transpose: out[j] += sum_i weights[i] times the entry of column j in projection i.
    void pull(const T* weights, std::vector<T>& scratch, T* out) const;
    std::size_t count() const { return rows_.size(); }
    std::size_t bytes() const { return signs_.size() * sizeof(T) + rows_.size() * sizeof rows_[0]; }

  private:
    std::size_t width_, size_;  // size: length of one transform
    std::vector<T> signs_;  // by transform, then column
    std::vector<std::uint32_t> rows_;  // row and transform of projection i
};

template <class T>
class MaclaurinMap {
  public:
    // Columns: `real`, then the real and then the imaginary parts of `pairs`, whose signs are 1, i, -1 or -i.
    MaclaurinMap(std::size_t width, Features real, Features pairs, bool structured, std::uint64_t seed);
    std::size_t width() const { return width_; }
    std::size_t columns() const { return real_.size() + 2 * pairs_.size(); }
    // Rows [first, first + count) of the batch; throws RowError where a feature overflows.
    void transform(const Batch& batch, std::size_t first, std::size_t count, T* out, std::size_t stride) const;
    // Gradient of weighted sums of the features by x: (row, output, input) in out. weights: columns() numbers per
    // output; those of the next row are `row_stride` further on; 0: all rows have the same weights.
    void gradients(const Batch& batch, const double* weights, std::size_t row_stride, std::size_t outputs,
                   double* out) const;
    std::size_t bytes() const;

  private:
    class Pull;
    bool finite_row(const Batch& batch, std::size_t row) const;
    void real_part(const Batch& batch, std::size_t first, std::size_t count, T* out, std::size_t stride) const;
    void pair_part(const Batch& batch, std::size_t first, std::size_t count, T* out, std::size_t stride) const;
    void structured_parts(const Batch& batch, std::size_t first, std::size_t count, T* out, std::size_t stride) const;

    std::size_t width_;
    Features real_, pairs_;
    std::vector<T> start_;  // initial value of a row of features
    // The projections of all first factors, then of all second ones, and so on, in one matrix, so that the few features
    // of high degree do not cost a block of lanes each.
    SignMatrix<T> signs_, pair_re_, pair_im_;
    std::vector<SignedHadamard<T>> structured_;  // one per level
    std::vector<std::pair<SignedHadamard<T>, SignedHadamard<T>>> structured_pairs_;
    bool is_structured_;
};

}  // namespace gristmill
