// One-coordinate kernels whose sums over sorted centres split into a left and a right part.
//
// A piece defines what is stored of the terms (Leaf), of a subtree (Summary) and between the children of a node
// (Links), and how a search carries the two parts down (Carry). Every sum is a function of what is below it and is
// recomputed, never corrected: removed terms leave no trace in the sums, and a restored tree has the same bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/base/elementary.hpp"

namespace gristmill {

// A node is full, and is split at once, with this many entries or children. A leaf of 31 with its header fills whole
// cache lines; the sums between children are dependency chains and should be short.
inline constexpr std::size_t kLeafFan = 31, kInnerFan = 16;

// One key of a tree. Terms with the same key are one entry; coef (1 + rest) is their sum with 77 bits, so that removing
// a large coefficient leaves a small one exact.
struct TreeEntry {
    double key = 0, coef = 0;
    float rest = 0;
    std::uint32_t times = 0;  // number of terms

    void add(double value) {
        const double sum = coef + value, virtual_part = sum - coef;
        const double lost = (coef - (sum - virtual_part)) + (value - virtual_part) + static_cast<double>(rest) * coef;
        coef = sum + lost;
        rest = coef != 0 ? static_cast<float>((lost - (coef - sum)) / coef) : 0.0f;
    }
};

// Entries as separate arrays: a search reads only keys and coefficients.
struct Entries {
    double key[kLeafFan], coef[kLeafFan];
    float rest[kLeafFan];
    std::uint32_t times[kLeafFan];

    TreeEntry get(std::size_t j) const { return {key[j], coef[j], rest[j], times[j]}; }
    void set(std::size_t j, const TreeEntry& e) {
        key[j] = e.key, coef[j] = e.coef, rest[j] = e.rest, times[j] = e.times;
    }
};

// exp(-gamma |p - q|). Every sum is anchored at a key of its subtree and moved from key to key by factors exp(-gamma
// distance) <= 1: nothing overflows for any gamma and input.
struct LaplacePiece {
    double gamma = 1;

    struct alignas(64) Leaf {
        std::uint64_t count;
        double gap[kLeafFan];  // factor from each entry to the next
        Entries entry;
        static constexpr std::size_t kHot = (1 + 3 * kLeafFan) * sizeof(double);  // bytes that a search reads
    };
    struct Summary {
        double low, high;  // smallest and largest key
        double left, right;  // sum a exp(-gamma (high - x)), sum a exp(-gamma (x - low))
        double span;  // exp(-gamma (high - low))
        bool same_edges(const Summary& other) const { return low == other.low && high == other.high; }
    };
    struct Links {
        double gap[kInnerFan];  // factor from child i's high to child i+1's low
        // sums of the children before i, at the high of child i-1
        double left[kInnerFan + 1], left_span[kInnerFan + 1];
        double right[kInnerFan], right_span[kInnerFan];  // sums of the children after i, at the low of child i+1
    };
    struct Carry {
        double left = 0;  // sum of all keys to the left, at the node's low
        double right = 0;  // sum of all keys to the right, at `next`
        double next = std::numeric_limits<double>::infinity();  // first key to the right
        double bridge = 0;  // factor from the node's high to `next`
    };

    double factor(double distance) const { return elementary::exp(-gamma * distance); }
    double self(double) const { return 1; }
    double value(double p, double q) const { return factor(std::abs(p - q)); }
    const char* refusal(double) const { return nullptr; }

    // Entries first..last are new, or entries between them and their neighbours were removed.
    void leaf_changed(Leaf& leaf, std::size_t first, std::size_t last) const {
        for (std::size_t j = first > 0 ? first - 1 : 0; j <= last && j + 1 < leaf.count; ++j)
            leaf.gap[j] = factor(leaf.entry.key[j + 1] - leaf.entry.key[j]);
    }
    Summary leaf_summary(const Leaf& leaf) const {
        const std::size_t n = leaf.count;
        const double *key = leaf.entry.key, *coef = leaf.entry.coef;
        Summary s{key[0], key[n - 1], coef[0], coef[n - 1], 1};
        for (std::size_t j = 1; j < n; ++j) {
            s.left = s.left * leaf.gap[j - 1] + coef[j];
            s.right = s.right * leaf.gap[n - 1 - j] + coef[n - 1 - j];
            s.span *= leaf.gap[j - 1];
        }
        return s;
    }
    // Children first..last have changed; `edges`: their keys too.
    void link(Links& links, const Summary* sum, std::size_t n, std::size_t first, std::size_t last, bool edges) const {
        if (edges)
            for (std::size_t i = first > 0 ? first - 1 : 0; i <= last && i + 1 < n; ++i)
                links.gap[i] = factor(sum[i + 1].low - sum[i].high);
        links.left[0] = 0;
        links.left_span[0] = 1;
        for (std::size_t i = first; i < n; ++i) {
            const double move = i == 0 ? 1.0 : links.gap[i - 1] * sum[i].span;
            links.left[i + 1] = sum[i].left + links.left[i] * move;
            links.left_span[i + 1] = i == 0 ? sum[0].span : links.left_span[i] * move;
        }
        links.right[n - 1] = 0;
        links.right_span[n - 1] = 1;
        if (n < 2) return;
        for (std::size_t i = std::min(last, n - 2) + 1; i-- > 0;) {
            const double move = i + 2 < n ? sum[i + 1].span * links.gap[i + 1] : sum[i + 1].span;
            links.right[i] = sum[i + 1].right + (i + 2 < n ? links.right[i + 1] * move : 0.0);
            links.right_span[i] = i + 2 < n ? links.right_span[i + 1] * move : move;
        }
    }
    Summary inner_summary(const Links& links, const Summary* sum, std::size_t n) const {
        const double rest = n > 1 ? links.right[0] * links.gap[0] * sum[0].span : 0.0;
        return {sum[0].low, sum[n - 1].high, links.left[n], sum[0].right + rest, links.left_span[n]};
    }
    void descend(Carry& carry, const Links& links, const double* low, std::size_t n, std::size_t i) const {
        if (i > 0) carry.left = (links.left[i] + carry.left * links.left_span[i]) * links.gap[i - 1];
        if (i + 1 < n) {
            carry.right = links.right[i] + carry.right * carry.bridge * links.right_span[i];
            carry.next = low[i + 1];
            carry.bridge = links.gap[i];
        }
    }
    double finish(const Carry& carry, const Leaf& leaf, double x) const {
        const Sides sides = both(carry, leaf, x);
        return sides.left + sides.right;
    }
    // The derivative by x; at a key, the mean of both sides.
    double slope(const Carry& carry, const Leaf& leaf, double x) const {
        const Sides sides = both(carry, leaf, x);
        return gamma * (sides.right - (sides.left - sides.here));
    }

  private:
    struct Sides {
        double left, right;  // sums of the keys up to x, and of those beyond
        double here;  // part of the left sum at x itself
    };
    Sides both(const Carry& carry, const Leaf& leaf, double x) const {
        const double *key = leaf.entry.key, *coef = leaf.entry.coef;
        const std::size_t n = leaf.count;
        std::size_t j = 0;
        for (std::size_t t = 0; t < n; ++t) j += key[t] <= x;
        double left = 0, right = carry.right, next = carry.next, here = 0;
        if (j > 0) {  // x is below the leaf only if there is no key to the left
            left = carry.left + coef[0];
            for (std::size_t t = 1; t < j; ++t) left = left * leaf.gap[t - 1] + coef[t];
            left *= factor(x - key[j - 1]);
            here = key[j - 1] == x ? coef[j - 1] : 0.0;
        }
        if (j < n) {
            right = right * carry.bridge + coef[n - 1];
            for (std::size_t t = n - 1; t-- > j;) right = right * leaf.gap[t] + coef[t];
            next = key[j];
        }
        return {left, right != 0 ? right * factor(next - x) : 0.0, here};
    }
};

// sum_r (pq)^r + integral_0^min(p,q) (p-u)^z (q-u)^z du on [0, inf), z = Order.
//
// For centres left of x every monomial p^(z+1+i) x^(z-i) of the expanded integral is at most 2z+1 times K(p, x), and on
// the right likewise. So power sums that never mix the two sides and are never subtracted from each other keep the
// accuracy of the naive sum for inputs of any size.
template <int Order>
struct SplinePiece {
    static constexpr std::size_t kSide = Order + 1, kAll = 2 * Order + 2;
    static constexpr double kLargest = 1e30;  // its seventh power times a coefficient is finite

    struct alignas(64) Leaf {
        std::uint64_t count;
        Entries entry;
        static constexpr std::size_t kHot = (1 + 2 * kLeafFan) * sizeof(double);
    };
    struct Summary {
        double low;
        double power[kAll];  // sum a x^k
        bool same_edges(const Summary& other) const { return low == other.low; }
    };
    struct Links {
        double before[kInnerFan + 1][kAll];  // sums over the children before i
        double after[kInnerFan][kSide];  // sums over the children after i
    };
    struct Carry {
        double left[kAll] = {}, right[kSide] = {};
    };

    // A_i of integral = sum_i A_i p^(z+1+i) q^(z-i), p <= q: (-1)^i binom(z,i) z! i! / (z+i+1)!
    static constexpr double coefficient(int i) {
        auto factorial = [](int n) {
            double product = 1;
            for (int k = 2; k <= n; ++k) product *= k;
            return product;
        };
        const double size = factorial(Order) * factorial(Order) / (factorial(Order - i) * factorial(Order + i + 1));
        return i % 2 ? -size : size;
    }
    static constexpr double choose(int r) {
        double product = 1;
        for (int k = 0; k < r; ++k) product = product * (Order - k) / (k + 1);
        return product;
    }

    double value(double p, double q) const {
        const double least = std::min(p, q), apart = std::abs(p - q), both = p * q;
        double sum = 0, inner = 0;
        for (int r = Order; r >= 0; --r) sum = sum * both + 1;
        // Horner in `apart` from the highest power: sum_r binom(z,r)/(2z-r+1) least^(z-r) apart^r, all terms positive
        double power = 1;
        for (int r = Order; r >= 0; --r) {
            double term = choose(r) / (2 * Order - r + 1) * power;
            for (int k = 0; k < r; ++k) term *= apart;
            inner += term;
            power *= least;
        }
        double outer = least;
        for (int k = 0; k < Order; ++k) outer *= least;
        return sum + inner * outer;
    }
    // The derivative of the value by q; for Order 0 and p = q, the mean of both sides.
    double slope(double p, double q) const {
        if constexpr (Order == 0) return q < p ? 1.0 : (q > p ? 0.0 : 0.5);
        double sum = 0;  // sum_r r p^r q^(r-1)
        for (int r = Order; r >= 1; --r) sum = sum * (p * q) + r;
        sum *= p;
        // z integral_0^least (p-u)^z (q-u)^(z-1) du, in powers of the excess of p and q over the least: all terms
        // positive.
        const double least = std::min(p, q), beyond = std::abs(p - q);
        const int high = q < p ? Order : Order - 1;  // the exponent of the longer factor
        double inner = 0, binomial = 1;
        for (int k = 0; k <= high; ++k) {
            double term = binomial / (2 * Order - high + k);
            for (int i = 0; i < high - k; ++i) term *= beyond;
            for (int i = 0; i < 2 * Order - high + k; ++i) term *= least;
            inner += term;
            binomial = binomial * (high - k) / (k + 1);
        }
        return sum + Order * inner;
    }
    double self(double x) const { return value(x, x); }
    const char* refusal(double x) const {
        if (x < 0)
            return "is below 0, where Spline is not a kernel; scale the inputs to [0, 1], for example with "
                   "MinMaxScaler";
        if (x > kLargest) return "is too large for Spline; scale the inputs to [0, 1], for example with MinMaxScaler";
        return nullptr;
    }

    void leaf_changed(Leaf&, std::size_t, std::size_t) const {}
    Summary leaf_summary(const Leaf& leaf) const {
        Summary s{};
        s.low = leaf.entry.key[0];
        double term[kLeafFan];
        std::copy_n(leaf.entry.coef, leaf.count, term);
        for (std::size_t k = 0; k < kAll; ++k) {
            double even = 0, odd = 0;  // two independent sums in a fixed order
            std::size_t j = 0;
            for (; j + 1 < leaf.count; j += 2) {
                even += term[j];
                odd += term[j + 1];
            }
            if (j < leaf.count) even += term[j];
            s.power[k] = even + odd;
            for (j = 0; j < leaf.count; ++j) term[j] *= leaf.entry.key[j];
        }
        return s;
    }
    void link(Links& links, const Summary* sum, std::size_t n, std::size_t first, std::size_t last, bool) const {
        for (std::size_t k = 0; k < kAll; ++k) links.before[0][k] = 0;
        for (std::size_t i = first; i < n; ++i)
            for (std::size_t k = 0; k < kAll; ++k) links.before[i + 1][k] = links.before[i][k] + sum[i].power[k];
        for (std::size_t k = 0; k < kSide; ++k) links.after[n - 1][k] = 0;
        for (std::size_t i = std::min(last, n - 1); i-- > 0;)
            for (std::size_t k = 0; k < kSide; ++k) links.after[i][k] = links.after[i + 1][k] + sum[i + 1].power[k];
    }
    Summary inner_summary(const Links& links, const Summary* sum, std::size_t n) const {
        Summary s{};
        s.low = sum[0].low;
        for (std::size_t k = 0; k < kAll; ++k) s.power[k] = links.before[n][k];
        return s;
    }
    void descend(Carry& carry, const Links& links, const double*, std::size_t, std::size_t i) const {
        for (std::size_t k = 0; k < kAll; ++k) carry.left[k] += links.before[i][k];
        for (std::size_t k = 0; k < kSide; ++k) carry.right[k] += links.after[i][k];
    }
    double finish(const Carry& carry, const Leaf& leaf, double x) const {
        double polynomial[kAll], near[kLeafFan];
        combine(carry.left, carry.right, polynomial);
        for (std::size_t j = 0; j < leaf.count; ++j) near[j] = leaf.entry.coef[j] * value(leaf.entry.key[j], x);
        double total = 0;
        for (std::size_t j = 0; j < leaf.count; ++j) total += near[j];
        return total + horner(polynomial, x);
    }
    double slope(const Carry& carry, const Leaf& leaf, double x) const {
        double polynomial[kAll], sum = 0, total = 0;
        combine(carry.left, carry.right, polynomial);
        for (std::size_t j = 0; j < leaf.count; ++j) total += leaf.entry.coef[j] * slope(leaf.entry.key[j], x);
        for (std::size_t k = kAll; k-- > 1;) sum = sum * x + static_cast<double>(k) * polynomial[k];
        return total + sum;
    }
    // The polynomial in x of left centres (all power sums) and right centres (the lower ones) together.
    static void combine(const double* left, const double* right, double* polynomial) {
        for (std::size_t k = 0; k < kSide; ++k) {
            polynomial[k] = (left[k] + right[k]) + coefficient(static_cast<int>(Order - k)) * left[kAll - 1 - k];
            polynomial[kSide + k] = coefficient(static_cast<int>(k)) * right[Order - k];
        }
    }
    static double horner(const double* polynomial, double x) {
        double sum = 0;
        for (std::size_t k = kAll; k-- > 0;) sum = sum * x + polynomial[k];
        return sum;
    }
};

}  // namespace gristmill
