// A tree compiled for prediction: sorted keys, and at each key the sums of everything to its left and right.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/additive/tree.hpp"

namespace gristmill {

// Sorted keys, searched for many values at once: the steps of different searches are independent.
class SortedKeys {
  public:
    static constexpr std::size_t kTogether = 16;

    void assign(std::span<const TreeEntry> entries) {
        keys_.clear();
        for (const TreeEntry& entry : entries) keys_.push_back(entry.key);
        keys_.shrink_to_fit();
    }
    std::size_t size() const { return keys_.size(); }
    double operator[](std::size_t j) const { return keys_[j]; }
    std::size_t bytes() const { return keys_.capacity() * sizeof(double); }
    // at[r]: how many keys are <= x[r]. Products instead of branches, which would be mispredicted half of the time.
    void search(const double* x, std::size_t rows, std::size_t* at) const {
        const double* keys = keys_.data();
        for (std::size_t r = 0; r < rows; ++r) at[r] = 0;
        std::size_t length = keys_.size();
        for (; length > 1; length -= length / 2) {
            const std::size_t half = length / 2;
            for (std::size_t r = 0; r < rows; ++r)
                at[r] += half * static_cast<std::size_t>(keys[at[r] + half - 1] <= x[r]);
        }
        if (length == 1)
            for (std::size_t r = 0; r < rows; ++r) at[r] += static_cast<std::size_t>(keys[at[r]] <= x[r]);
    }

  private:
    std::vector<double> keys_;
};

// A long sum with the rounding error of a short one: recent terms are summed apart from the bulk.
class RunningSum {
  public:
    void add(double x) {
        recent_ += x;
        if (++count_ % 1024 == 0) {
            bulk_ += recent_;
            recent_ = 0;
        }
    }
    double value() const { return bulk_ + recent_; }

  private:
    double bulk_ = 0, recent_ = 0;
    std::size_t count_ = 0;
};

template <class Piece>
class Compiled;

template <>
class Compiled<LaplacePiece> {
  public:
    void build(const LaplacePiece& piece, std::span<const TreeEntry> entries) {
        const std::size_t n = entries.size();
        keys_.assign(entries);
        sums_.assign(n, {});
        for (std::size_t j = 0; j < n; ++j)
            sums_[j][0] =
                entries[j].coef + (j > 0 ? sums_[j - 1][0] * piece.factor(entries[j].key - entries[j - 1].key) : 0.0);
        for (std::size_t j = n; j-- > 0;)
            sums_[j][1] = entries[j].coef +
                          (j + 1 < n ? sums_[j + 1][1] * piece.factor(entries[j + 1].key - entries[j].key) : 0.0);
    }
    void prefetch(std::size_t at) const { __builtin_prefetch(sums_.data() + (at > 0 ? at - 1 : 0)); }
    double value(const LaplacePiece& piece, std::size_t at, double x) const {
        double sum = 0;
        if (at > 0) sum += sums_[at - 1][0] * piece.factor(x - keys_[at - 1]);
        if (at < keys_.size()) sum += sums_[at][1] * piece.factor(keys_[at] - x);
        return sum;
    }
    const SortedKeys& keys() const { return keys_; }
    std::size_t bytes() const { return keys_.bytes() + sums_.capacity() * sizeof sums_[0]; }

  private:
    SortedKeys keys_;
    std::vector<std::array<double, 2>> sums_;  // left and right sum at the key
};

template <int Order>
class Compiled<SplinePiece<Order>> {
    using Piece = SplinePiece<Order>;
    static constexpr std::size_t kAll = Piece::kAll, kSide = Piece::kSide;

  public:
    void build(const Piece&, std::span<const TreeEntry> entries) {
        const std::size_t n = entries.size();
        keys_.assign(entries);
        polynomials_.assign(n + 1, {});
        std::vector<std::array<double, kSide>> after(n + 1);  // power sums of the entries from j on
        RunningSum right[kSide], left[kAll];
        for (std::size_t j = n; j-- > 0;) {
            double term = entries[j].coef;
            for (std::size_t k = 0; k < kSide; ++k, term *= entries[j].key) {
                right[k].add(term);
                after[j][k] = right[k].value();
            }
        }
        for (std::size_t j = 0; j <= n; ++j) {
            double before[kAll];
            for (std::size_t k = 0; k < kAll; ++k) before[k] = left[k].value();
            Piece::combine(before, after[j].data(), polynomials_[j].data());
            if (j == n) break;
            double term = entries[j].coef;
            for (std::size_t k = 0; k < kAll; ++k, term *= entries[j].key) left[k].add(term);
        }
    }
    void prefetch(std::size_t at) const { __builtin_prefetch(polynomials_.data() + at); }
    double value(const Piece&, std::size_t at, double x) const { return Piece::horner(polynomials_[at].data(), x); }
    const SortedKeys& keys() const { return keys_; }
    std::size_t bytes() const { return keys_.bytes() + polynomials_.capacity() * sizeof polynomials_[0]; }

  private:
    SortedKeys keys_;
    std::vector<std::array<double, kAll>> polynomials_;  // one per interval between the keys, and beyond both ends
};

}  // namespace gristmill
