// Derivatives of kernels, and sums of stored points and of signs by weights: what a gradient needs beside simd.hpp.
//
// A kernel is a function of <x, y>, <x, x> and sum |x - y|, so its derivative by x_j is
//     dot y_j + norm x_j + l1 sign(x_j - y_j)
// with three numbers of a pair, which are found here from the same expression as its value.
#pragma once

#include <limits>

#include "core/simd.hpp"

namespace gristmill::GRISTMILL_ISA {

// The value of an expression and its three slopes, `size` numbers each, one after the other.
template <class T>
struct Slopes {
    T *value, *dot, *norm, *l1;
    Slopes(T* at, std::size_t size) : value(at), dot(at + size), norm(at + 2 * size), l1(at + 3 * size) {}
};
inline constexpr std::size_t kSlopeRows = 4;

// 1 + 2t + 3t^2 + ... + (terms-1) t^(terms-2), the derivative of `geometric`
template <class T>
inline Vec<T> geometric_slope(Vec<T> t, int terms) {
    Vec<T> sum = splat(T(1)), slope = {};
    for (int i = 1; i < terms; ++i) {
        slope = fma(slope, t, sum);
        sum = fma(sum, t, splat(T(1)));
    }
    return slope;
}

template <class T>
void leaf_slopes(const Node& node, const Pairs<T>& pairs, const Slopes<T>& out) {
    leaf(node, pairs, false, out.value);
    const T a = static_cast<T>(node.a), b = static_cast<T>(node.b);
    const int n = node.n;
    const auto each = [&](T* to, auto slope) {
        for (std::size_t i = 0; i < pairs.size; i += kWidth<T>) store(to + i, slope(i));
    };
    const auto constant = [&](T* to, T x) { each(to, [=](std::size_t) { return splat(x); }); };
    const auto of_value = [&](T* to, auto f) { each(to, [&](std::size_t i) { return f(load(out.value + i)); }); };
    const auto of_dot = [&](auto f) { each(out.dot, [&](std::size_t i) { return f(load(pairs.dot + i)); }); };
    const auto only_dot = [&] { constant(out.norm, T(0)), constant(out.l1, T(0)); };
    switch (node.op) {
        case Op::linear: return constant(out.dot, T(1)), only_dot();
        case Op::polynomial: return of_dot([=](Vec<T> t) { return T(n) * a * power<T>(a * t + b, n - 1); }), only_dot();
        case Op::exponential: return of_value(out.dot, [=](Vec<T> v) { return a * v; }), only_dot();
        case Op::vovk:
            if (n > 0) of_dot([=](Vec<T> t) { return geometric_slope<T>(t, n); });
            else of_value(out.dot, [](Vec<T> v) { return v * v; });
            return only_dot();
        case Op::sigmoid: return of_value(out.dot, [=](Vec<T> v) { return a * (T(1) - v * v); }), only_dot();
        case Op::gaussian:
            of_value(out.dot, [=](Vec<T> v) { return (T(2) * a) * v; });
            of_value(out.norm, [=](Vec<T> v) { return (T(-2) * a) * v; });
            return constant(out.l1, T(0));
        case Op::squared_euclidean: return constant(out.dot, T(2)), constant(out.norm, T(-2)), constant(out.l1, T(0));
        case Op::laplacian:
            of_value(out.l1, [=](Vec<T> v) { return -a * v; });
            return constant(out.dot, T(0)), constant(out.norm, T(0));
        case Op::manhattan: return constant(out.l1, T(-1)), constant(out.dot, T(0)), constant(out.norm, T(0));
        default: return constant(out.dot, std::numeric_limits<T>::quiet_NaN()), only_dot();  // no slopes are known: refused as not finite
    }
}

template <class T>
void slopes_of(const Node* nodes, std::int32_t at, const Pairs<T>& pairs, T* scratch, const Slopes<T>& out);

// v = k / sqrt(k(x,x) k(y,y)): its slopes are those of k over the root, less v/2 times the slope of log k(x,x). A symmetric
// kernel at (x, x) changes twice as fast as in its first argument alone.
template <class T>
void normalize_slopes(const Node* nodes, std::int32_t base, const Pairs<T>& pairs, T* scratch, const Slopes<T>& out) {
    const std::size_t size = pairs.size;
    constexpr std::size_t lanes = kLanes<T>;
    T* y_self = scratch;
    evaluate(nodes, base, pairs, true, scratch + size, y_self);
    T norms[lanes], zeros[lanes] = {};
    for (std::size_t l = 0; l < lanes; ++l) norms[l] = pairs.x_norm2;
    const Slopes<T> own(scratch + size, lanes);
    slopes_of(nodes, base, Pairs<T>{norms, zeros, pairs.x_norm2, norms, lanes}, scratch + size + kSlopeRows * lanes, own);
    const T x_self = own.value[0], x_slope = T(2) * (own.dot[0] + own.norm[0]);
    for (std::size_t i = 0; i < size; ++i) {
        const T square = x_self * y_self[i];
        const T scale = square > T(0) ? T(1) / __builtin_sqrt(square) : T(0);
        out.value[i] *= scale, out.dot[i] *= scale, out.l1[i] *= scale;
        out.norm[i] = out.norm[i] * scale - (square > T(0) ? T(0.5) * out.value[i] * x_slope / x_self : T(0));
    }
}

template <class T>
void slopes_of(const Node* nodes, std::int32_t at, const Pairs<T>& pairs, T* scratch, const Slopes<T>& out) {
    const Node& node = nodes[at];
    if (node.left < 0) return leaf_slopes(node, pairs, out);
    slopes_of(nodes, node.left, pairs, scratch, out);
    if (node.op == Op::normalized) return normalize_slopes(nodes, node.left, pairs, scratch, out);
    const std::size_t size = pairs.size;
    if (node.op == Op::multiple) {
        for (std::size_t i = 0; i < kSlopeRows * size; ++i) out.value[i] *= static_cast<T>(node.a);
        return;
    }
    const Slopes<T> right(scratch, size);
    slopes_of(nodes, node.right, pairs, scratch + kSlopeRows * size, right);
    if (node.op == Op::sum) {
        for (std::size_t i = 0; i < kSlopeRows * size; ++i) out.value[i] += right.value[i];
        return;
    }
    for (std::size_t i = 0; i < size; ++i) {
        out.dot[i] = out.dot[i] * right.value[i] + out.value[i] * right.dot[i];
        out.norm[i] = out.norm[i] * right.value[i] + out.value[i] * right.norm[i];
        out.l1[i] = out.l1[i] * right.value[i] + out.value[i] * right.l1[i];
        out.value[i] *= right.value[i];
    }
}

template <class T>
void slopes(const Node* nodes, std::int32_t root, const Pairs<T>& pairs, T* scratch) {
    slopes_of(nodes, root, pairs, scratch + kSlopeRows * pairs.size, Slopes<T>(scratch, pairs.size));
}

// ---- sums of stored points --------------------------------------------------------------------------------------------

// The first halves of two vectors, or the second ones, number by number in turn.
template <bool Second, class T>
inline Vec<T> interleaved(Vec<T> a, Vec<T> b) {
    constexpr int n = kWidth<T>, at = Second ? n / 2 : 0;
#if !defined(__clang__) && __GNUC__ < 12  // which has no shuffles of this form
    Vec<T> out{};
    for (int i = 0; i < n / 2; ++i) out[2 * i] = a[at + i], out[2 * i + 1] = b[at + i];
    return out;
#else
    constexpr int to = n + at;
    if constexpr (n == 2) return __builtin_shufflevector(a, b, at, to);
    else if constexpr (n == 4) return __builtin_shufflevector(a, b, at, to, at + 1, to + 1);
    else if constexpr (n == 8)
        return __builtin_shufflevector(a, b, at, to, at + 1, to + 1, at + 2, to + 2, at + 3, to + 3);
    else
        return __builtin_shufflevector(a, b, at, to, at + 1, to + 1, at + 2, to + 2, at + 3, to + 3, at + 4, to + 4, at + 5, to + 5,
                                       at + 6, to + 6, at + 7, to + 7);
#endif
}

// A block of lanes by lanes numbers with rows and columns exchanged, a square of vectors at a time.
template <class T>
inline void exchange(const T* from, T* to) {
    constexpr std::size_t lanes = kLanes<T>, n = kWidth<T>;
    for (std::size_t a = 0; a < lanes; a += n)
        for (std::size_t b = 0; b < lanes; b += n) {
            Vec<T> x[n], y[n];
            for (std::size_t i = 0; i < n; ++i) x[i] = load(from + (b + i) * lanes + a);
            for (std::size_t step = 1; step < n; step *= 2) {
                for (std::size_t i = 0; i < n / 2; ++i) {
                    y[2 * i] = interleaved<false, T>(x[i], x[i + n / 2]);
                    y[2 * i + 1] = interleaved<true, T>(x[i], x[i + n / 2]);
                }
                for (std::size_t i = 0; i < n; ++i) x[i] = y[i];
            }
            for (std::size_t i = 0; i < n; ++i) store(to + (a + i) * lanes + b, x[i]);
        }
}

// Points in blocks of lanes with their features side by side instead: the first line of each point, then the second, ... A last
// line that is not full keeps what it has there, which is 0.
template <class T>
void lines(const T* blocks, std::size_t n_blocks, std::size_t width, T* to) {
    constexpr std::size_t lanes = kLanes<T>;
    for (std::size_t first = 0; first < width; first += lanes) {
        const std::size_t features = width - first < lanes ? width - first : lanes;
        for (std::size_t b = 0; b < n_blocks; ++b, to += lanes * lanes) {
            const T* from = blocks + (b * width + first) * lanes;
            if (features == lanes) exchange(from, to);
            else
                for (std::size_t l = 0; l < lanes; ++l)
                    for (std::size_t j = 0; j < features; ++j) to[l * lanes + j] = from[j * lanes + l];
        }
    }
}

// R weights by V vectors of features: out[r][j..] += sum_i weights[r][i] points[i][j..] over i = places[first], ..., one
// after the other; not `Some`: i = first, ...
template <bool Some, int R, int V, class T>
inline void product_tile(const T* const* weights, std::size_t first, std::size_t count, const std::uint32_t* places,
                         const T* points, std::size_t n_points, std::size_t j, T* const* out) {
    constexpr std::size_t lanes = kLanes<T>;
    Vec<T> sum[R][V];
    const T* at[V];
    for (int v = 0; v < V; ++v) {
        const std::size_t feature = j + v * kWidth<T>;
        at[v] = points + feature / lanes * n_points * lanes + feature % lanes;
        for (int r = 0; r < R; ++r) sum[r][v] = load(out[r] + feature);
    }
    for (std::size_t p = first; p < first + count; ++p) {
        const std::size_t i = Some ? places[p] : p;
        Vec<T> y[V];
        for (int v = 0; v < V; ++v) y[v] = load(at[v] + i * lanes);
        for (int r = 0; r < R; ++r) {
            const Vec<T> w = splat(weights[r][i]);
            for (int v = 0; v < V; ++v) sum[r][v] = fma(w, y[v], sum[r][v]);
        }
    }
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) store(out[r] + j + v * kWidth<T>, sum[r][v]);
}

// out[k][j] += sum_i weights[k][i] points[i][j] over the n places i, rows of `width` numbers, whole lines of the cache. The points
// lie line by line: the first line of all of them, then the second. (Rows a power of two apart would drive each other out of
// the cache.) The order of each sum is that of the places, whatever the shape of the tile.
template <bool Some, class T>
void sum_points(const T* const* weights, std::size_t count, const std::uint32_t* places, std::size_t n, const T* points,
                std::size_t n_points, std::size_t width, T* const* out) {
#if defined(__AVX512F__)
    constexpr int R = 8, V = 3;
#elif defined(__AVX2__)
    constexpr int R = 4, V = 3;
#elif defined(__aarch64__)
    constexpr int R = 4, V = 4;
#else
    constexpr int R = 4, V = 2;
#endif
    constexpr std::size_t kDeep = 128;  // so many points of a tile stay in the first-level cache
    for (std::size_t first = 0; first < n; first += kDeep) {
        const std::size_t deep = n - first < kDeep ? n - first : kDeep;
        const auto tile = [&]<int Q, int W>(std::size_t k, std::size_t j) {
            product_tile<Some, Q, W>(weights + k, first, deep, places, points, n_points, j, out + k);
        };
        const auto tiles = [&]<int W>(std::size_t j) {
            std::size_t k = 0;
            for (; k + R <= count; k += R) tile.template operator()<R, W>(k, j);
            for (; k + 2 <= count; k += 2) tile.template operator()<2, W>(k, j);
            for (; k < count; ++k) tile.template operator()<1, W>(k, j);
        };
        std::size_t j = 0, left = width / kWidth<T>;
        for (; left >= V + 2 || left == V; left -= V, j += V * kWidth<T>) tiles.template operator()<V>(j);
        for (; left >= 2; left -= 2, j += 2 * kWidth<T>) tiles.template operator()<2>(j);
        for (; left > 0; --left, j += kWidth<T>) tiles.template operator()<1>(j);
    }
}

template <class T>
void weighted_points(const T* const* weights, std::size_t count, const std::uint32_t* places, std::size_t n, const T* points,
                     std::size_t n_points, std::size_t width, T* const* out) {
    if (places) sum_points<true>(weights, count, places, n, points, n_points, width, out);
    else sum_points<false>(weights, count, places, n, points, n_points, width, out);
}

// ---- sums of signs -------------------------------------------------------------------------------------------------------

// The sign of x - y, 0 for equals: a difference underflows to 0 for equals alone.
#if defined(__AVX512F__)
// What becomes of a number by its kind, four bits each, the last kind first: +x, -x, +inf, -inf and 1 become 1 (0xA) or -1 (0x9),
// 0 and what is no number become +0 (0x8).
inline constexpr int kSigns = static_cast<int>(0xA9A9A888u);
inline Vec<double> sign_of(Vec<double> x, Vec<double> y) {
    const Vec<double> d = x - y;
    return _mm512_fixupimm_pd(d, d, _mm512_set1_epi64(kSigns), 0);
}
inline Vec<float> sign_of(Vec<float> x, Vec<float> y) {
    const Vec<float> d = x - y;
    return _mm512_fixupimm_ps(d, d, _mm512_set1_epi32(kSigns), 0);
}
#else
template <class V>
inline V sign_of(V x, V y) {
    const V one = V{} + 1, none = {};
    return x > y ? one : (x < y ? -one : none);
}
#endif

// The sum of a line of the cache by a fixed tree: of halves, their halves, and so on.
template <class T>
inline T line_sum(const T* x) {
    typedef T Half __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));
    typedef T Quarter __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));
    const Half h = *reinterpret_cast<const Half*>(x) + *reinterpret_cast<const Half*>(x + kLanes<T> / 2);
    const auto* quarters = reinterpret_cast<const Quarter*>(&h);
    const Quarter q = quarters[0] + quarters[1];
    if constexpr (sizeof(T) == 8) return q[0] + q[1];
    else return (q[0] + q[2]) + (q[1] + q[3]);
}

// K weights by J features over all blocks; `Shared`: all weights go with one row, whose signs are found once. A lane sums
// its own points in order, then comes one fixed tree over the lanes of a block: the order depends on the shape alone.
template <bool Shared, int K, int J, class T>
inline void sign_tile(const T* const* weights, const T* const* rows, const T* blocks, std::size_t n_blocks,
                      std::size_t width, std::size_t j, T* const* out) {
    constexpr std::size_t lanes = kLanes<T>;
    T line[K][J][lanes];
    for (int p = 0; p < kPerBlock; ++p) {
        Vec<T> sum[K][J];
        for (int k = 0; k < K; ++k)
            for (int f = 0; f < J; ++f) sum[k][f] = Vec<T>{};
        const T* at = blocks + j * lanes + p * kWidth<T>;
        for (std::size_t b = 0; b < n_blocks; ++b, at += width * lanes) {
            Vec<T> w[K];
            for (int k = 0; k < K; ++k) w[k] = load(weights[k] + b * lanes + p * kWidth<T>);
            for (int f = 0; f < J; ++f) {
                const Vec<T> y = load(at + f * lanes);
                Vec<T> sign;
                for (int k = 0; k < K; ++k) {
                    if (k == 0 || !Shared) sign = sign_of(splat(rows[k][j + f]), y);
                    sum[k][f] = fma(w[k], sign, sum[k][f]);
                }
            }
        }
        for (int k = 0; k < K; ++k)
            for (int f = 0; f < J; ++f) store(&line[k][f][p * kWidth<T>], sum[k][f]);
    }
    for (int k = 0; k < K; ++k)
        for (int f = 0; f < J; ++f) out[k][j + f] += line_sum(line[k][f]);
}

// J features from j on, all weights: few of them at a time stay in the first-level cache beside the points' features.
template <bool Shared, int K, int J, class T>
inline void sign_strip(const T* const* weights, const T* const* rows, std::size_t count, const T* blocks, std::size_t n_blocks,
                       std::size_t width, std::size_t j, T* const* out) {
    for (std::size_t k = 0, end; k < count; k = end) {
        end = count;
        if constexpr (Shared)  // those of one row
            for (end = k + 1; end < count && rows[end] == rows[k]; ++end) {}
        const auto tiles = [&]<int W>() {
            for (; k + W <= end; k += W) sign_tile<Shared, W, J>(weights + k, rows + k, blocks, n_blocks, width, j, out + k);
        };
        tiles.template operator()<K>();
        if constexpr (K > 4) tiles.template operator()<4>();
        if constexpr (K > 3) tiles.template operator()<3>();
        tiles.template operator()<2>(), tiles.template operator()<1>();
    }
}

// out[k][j] += sum_i weights[k][i] sign(rows[k][j] - y_ij) for `count` weights over the points of whole blocks. Few features
// of all points stay near while all weights pass by.
template <bool Shared, int K, int J, class T>
void sum_signs(const T* const* weights, const T* const* rows, std::size_t count, const T* blocks, std::size_t n_blocks,
               std::size_t width, T* const* out) {
    std::size_t j = 0;
    for (; j + J <= width; j += J) sign_strip<Shared, K, J>(weights, rows, count, blocks, n_blocks, width, j, out);
    for (; j < width; ++j) sign_strip<Shared, K, 1>(weights, rows, count, blocks, n_blocks, width, j, out);
}

// shared: weights of one and the same row lie side by side, and its signs are found once for several of them.
template <class T>
void weighted_signs(const T* const* weights, const T* const* rows, std::size_t count, bool shared, const T* blocks,
                    std::size_t n_blocks, std::size_t width, T* const* out) {
#if defined(__AVX512F__)
    if (shared) sum_signs<true, 5, 4>(weights, rows, count, blocks, n_blocks, width, out);
    else sum_signs<false, 4, 5>(weights, rows, count, blocks, n_blocks, width, out);
#else
    if (shared) sum_signs<true, 4, 2>(weights, rows, count, blocks, n_blocks, width, out);
    else sum_signs<false, 3, 3>(weights, rows, count, blocks, n_blocks, width, out);
#endif
}

// ---- number by number ----------------------------------------------------------------------------------------------------

template <class T>
void times(const T* a, const T* b, std::size_t n, T* out) {
    for (std::size_t i = 0; i < n; ++i) out[i] = a[i] * b[i];
}

template <class T>
void plus(const T* a, double c, const T* b, std::size_t n, double* out) {
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<double>(a[i]) + c * static_cast<double>(b[i]);
}

template <class T>
constexpr IsaGradient<T> gradient_table() {
    return {&slopes<T>, &lines<T>, &weighted_points<T>, &weighted_signs<T>, &times<T>, &plus<T>};
}

}  // namespace gristmill::GRISTMILL_ISA
