// Derivatives of kernels, and weighted sums of stored points and of signs: what a gradient needs beyond
// simd/kernel_blocks.hpp.
//
// A kernel is a function of <x, y>, <x, x> and sum |x - y|, so its derivative by x_j is
//     dot y_j + norm x_j + l1 sign(x_j - y_j)
// with three numbers per pair, which are computed here from the same expression as the kernel value.
#pragma once

#include <limits>

#include "core/simd/sign_sums.hpp"

namespace gristmill::GRISTMILL_ISA {

// The value of an expression and its three slopes, `size` numbers each, consecutively; null: not wanted, because it is
// 0 for all pairs.
template <class T>
struct Slopes {
    T *value, *dot, *norm, *l1;
    Slopes(T* at, std::size_t size, SlopesWanted wanted)
        : value(at), dot(wanted.dot ? at + size : nullptr), norm(wanted.norm ? at + 2 * size : nullptr),
          l1(wanted.l1 ? at + 3 * size : nullptr) {}
    SlopesWanted wanted() const { return {dot != nullptr, norm != nullptr, l1 != nullptr}; }
    template <class F>
    void each(F f) const {
        if (dot) f(dot, &Slopes::dot);
        if (norm) f(norm, &Slopes::norm);
        if (l1) f(l1, &Slopes::l1);
    }
};
template <class T, class F>
inline void each_vector(std::size_t size, F f) {
    for (std::size_t i = 0; i < size; i += kWidth<T>) f(i);
}
inline constexpr std::size_t kSlopeRows = 4;

// 1 + 2t + 3t^2 + ... + (terms-1) t^(terms-2), the derivative of `geometric`
template <class T>
inline Vec<T> geometric_slope(Vec<T> t, int terms) {
    Vec<T> sum = broadcast(T(1)), slope = {};
    for (int i = 1; i < terms; ++i) {
        slope = fma(slope, t, sum);
        sum = fma(sum, t, broadcast(T(1)));
    }
    return slope;
}

template <class T>
void leaf_slopes(const Node& node, const Pairs<T>& pairs, const Slopes<T>& out) {
    leaf(node, pairs, false, out.value);
    const T a = static_cast<T>(node.a), b = static_cast<T>(node.b);
    const int n = node.n;
    const auto each = [&](T* to, auto slope) {
        if (to) each_vector<T>(pairs.size, [&](std::size_t i) { store(to + i, slope(i)); });
    };
    const auto constant = [&](T* to, T x) { each(to, [=](std::size_t) { return broadcast(x); }); };
    const auto of_value = [&](T* to, auto f) { each(to, [&](std::size_t i) { return f(load(out.value + i)); }); };
    const auto of_dot = [&](auto f) { each(out.dot, [&](std::size_t i) { return f(load(pairs.dot + i)); }); };
    const auto only_dot = [&] {
        constant(out.norm, T(0));
        constant(out.l1, T(0));
    };
    switch (node.op) {
        case Op::linear: constant(out.dot, T(1)); return only_dot();
        case Op::polynomial: of_dot([=](Vec<T> t) { return T(n) * a * power<T>(a * t + b, n - 1); }); return only_dot();
        case Op::exponential: of_value(out.dot, [=](Vec<T> v) { return a * v; }); return only_dot();
        case Op::vovk:
            if (n > 0) of_dot([=](Vec<T> t) { return geometric_slope<T>(t, n); });
            else of_value(out.dot, [](Vec<T> v) { return v * v; });
            return only_dot();
        case Op::sigmoid: of_value(out.dot, [=](Vec<T> v) { return a * (T(1) - v * v); }); return only_dot();
        case Op::gaussian:
            of_value(out.dot, [=](Vec<T> v) { return (T(2) * a) * v; });
            of_value(out.norm, [=](Vec<T> v) { return (T(-2) * a) * v; });
            return constant(out.l1, T(0));
        case Op::squared_euclidean:
            constant(out.dot, T(2));
            constant(out.norm, T(-2));
            return constant(out.l1, T(0));
        case Op::laplacian:
            of_value(out.l1, [=](Vec<T> v) { return -a * v; });
            constant(out.dot, T(0));
            return constant(out.norm, T(0));
        case Op::manhattan:
            constant(out.l1, T(-1));
            constant(out.dot, T(0));
            return constant(out.norm, T(0));
        // no slopes are implemented: refused as not finite
        default: constant(out.dot, std::numeric_limits<T>::quiet_NaN()); return only_dot();
    }
}

template <class T>
void slopes_of(const Node* nodes, std::int32_t at, const Pairs<T>& pairs, T* scratch, const Slopes<T>& out);

// v = k / sqrt(k(x,x) k(y,y)): its slopes are those of k divided by the root, minus v/2 times the slope of log k(x,x).
// A symmetric kernel at (x, x) changes twice as fast as in its first argument alone.
template <class T>
void normalize_slopes(const Node* nodes, std::int32_t base, const Pairs<T>& pairs, T* scratch, const Slopes<T>& out) {
    const std::size_t size = pairs.size;
    constexpr std::size_t lanes = kLanes<T>;
    T* y_self = scratch;
    evaluate(nodes, base, pairs, true, scratch + size, y_self);
    T norms[lanes], zeros[lanes] = {};
    for (std::size_t l = 0; l < lanes; ++l) norms[l] = pairs.x_norm2;
    const Slopes<T> own(scratch + size, lanes, out.wanted());
    slopes_of(nodes, base, Pairs<T>{norms, zeros, pairs.x_norm2, norms, lanes}, scratch + size + kSlopeRows * lanes,
              own);
    const T x_self = own.value[0], x_slope = T(2) * ((own.dot ? own.dot[0] : T(0)) + (own.norm ? own.norm[0] : T(0)));
    for (std::size_t i = 0; i < size; ++i) {
        const T square = x_self * y_self[i];
        const T scale = square > T(0) ? T(1) / __builtin_sqrt(square) : T(0);
        out.value[i] *= scale;
        if (out.dot) out.dot[i] *= scale;
        if (out.l1) out.l1[i] *= scale;
        if (out.norm)
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
        const Vec<T> a = broadcast(static_cast<T>(node.a));
        const auto scale = [&](T* x) { each_vector<T>(size, [&](std::size_t i) { store(x + i, load(x + i) * a); }); };
        scale(out.value);
        return out.each([&](T* x, auto) { scale(x); });
    }
    const Slopes<T> right(scratch, size, out.wanted());
    slopes_of(nodes, node.right, pairs, scratch + kSlopeRows * size, right);
    const T *v = out.value, *w = right.value;
    if (node.op == Op::sum)
        out.each([&](T* x, auto part) {
            each_vector<T>(size, [&, y = right.*part](std::size_t i) { store(x + i, load(x + i) + load(y + i)); });
        });
    else
        out.each([&](T* x, auto part) {
            each_vector<T>(size, [&, y = right.*part](std::size_t i) {
                store(x + i, load(x + i) * load(w + i) + load(v + i) * load(y + i));
            });
        });
    each_vector<T>(size, [&](std::size_t i) {
        store(out.value + i, node.op == Op::sum ? load(v + i) + load(w + i) : load(v + i) * load(w + i));
    });
}

template <class T>
void slopes(const Node* nodes, std::int32_t root, const Pairs<T>& pairs, SlopesWanted wanted, T* scratch) {
    slopes_of(nodes, root, pairs, scratch + kSlopeRows * pairs.size, Slopes<T>(scratch, pairs.size, wanted));
}

// ---- sums of stored points --------------------------------------------------------------------------------------------

// Transposes a block of lanes by lanes numbers, a square of vectors at a time.
template <class T>
inline void transpose(const T* from, T* to) {
    constexpr std::size_t lanes = kLanes<T>, n = kWidth<T>;
    for (std::size_t a = 0; a < lanes; a += n)
        for (std::size_t b = 0; b < lanes; b += n) {
            Vec<T> x[n], y[n];
            for (std::size_t i = 0; i < n; ++i) x[i] = load(from + (b + i) * lanes + a);
            for (std::size_t step = 1; step < n; step *= 2) {
                for (std::size_t i = 0; i < n / 2; ++i) {
                    y[2 * i] = interleaved<false>(x[i], x[i + n / 2]);
                    y[2 * i + 1] = interleaved<true>(x[i], x[i + n / 2]);
                }
                for (std::size_t i = 0; i < n; ++i) x[i] = y[i];
            }
            for (std::size_t i = 0; i < n; ++i) store(to + (a + i) * lanes + b, x[i]);
        }
}

// Transposes points from blocks of lanes to contiguous features: the first cache line of every point, then the second,
// and so on. A last line that is not full ends in zeros.
template <class T>
void lines(const T* blocks, std::size_t n_blocks, std::size_t width, T* to) {
    constexpr std::size_t lanes = kLanes<T>;
    for (std::size_t first = 0; first < width; first += lanes) {
        const std::size_t features = width - first < lanes ? width - first : lanes;
        for (std::size_t b = 0; b < n_blocks; ++b, to += lanes * lanes) {
            const T* from = blocks + (b * width + first) * lanes;
            if (features == lanes) transpose(from, to);
            else
                for (std::size_t l = 0; l < lanes; ++l)
                    for (std::size_t j = 0; j < lanes; ++j)
                        to[l * lanes + j] = j < features ? from[j * lanes + l] : T(0);
        }
    }
}

// R weights by V vectors of features: out[r][j..] += sum_i weights[r][i] points[i][j..] over i = places[first], ... in
// order; without `Some`: i = first, ... `Fetch`: prefetches the following features.
template <bool Some, bool Fetch, int R, int V, class T>
inline void product_tile(const T* const* weights, std::size_t first, std::size_t count, const std::uint32_t* places,
                         const T* points, std::size_t n_points, std::size_t j, T* const* out) {
    constexpr std::size_t lanes = kLanes<T>;
    Vec<T> sum[R][V];
    const T *at[V], *next[V];
    for (int v = 0; v < V; ++v) {
        const std::size_t feature = j + v * kWidth<T>, later = feature + V * kWidth<T>;
        at[v] = points + feature / lanes * n_points * lanes + feature % lanes;
        next[v] = points + later / lanes * n_points * lanes;
        for (int r = 0; r < R; ++r) sum[r][v] = load(out[r] + feature);
    }
    for (std::size_t p = first; p < first + count; ++p) {
        const std::size_t i = Some ? places[p] : p;
        Vec<T> y[V];
        for (int v = 0; v < V; ++v) y[v] = load(at[v] + i * lanes);
        if constexpr (Fetch)
            for (int v = 0; v < V; v += kPerBlock) __builtin_prefetch(next[v] + i * lanes, 0, 2);
        for (int r = 0; r < R; ++r) {
            const Vec<T> w = broadcast(weights[r][i]);
            for (int v = 0; v < V; ++v) sum[r][v] = fma(w, y[v], sum[r][v]);
        }
    }
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) store(out[r] + j + v * kWidth<T>, sum[r][v]);
}

// out[k][j] += sum_i weights[k][i] points[i][j] over the n indices in `places`, rows of `width` numbers in whole cache
// lines. The points lie line by line, the first line of all of them, then the second, because rows a power of two apart
// would evict each other from the cache. Each sum runs in the order of the places, whatever the shape of the tile.
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
    constexpr std::size_t kDepth = 96;  // points of a tile that stay in the L1 cache
    for (std::size_t first = 0; first < n; first += kDepth) {
        const std::size_t deep = n - first < kDepth ? n - first : kDepth;
        const auto tile = [&]<int Q, int W>(std::size_t k, std::size_t j) {
            if (k == 0) product_tile<Some, true, Q, W>(weights, first, deep, places, points, n_points, j, out);
            else product_tile<Some, false, Q, W>(weights + k, first, deep, places, points, n_points, j, out + k);
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
void weighted_points(const T* const* weights, std::size_t count, const std::uint32_t* places, std::size_t n,
                     const T* points, std::size_t n_points, std::size_t width, T* const* out) {
    if (places) sum_points<true>(weights, count, places, n, points, n_points, width, out);
    else sum_points<false>(weights, count, places, n, points, n_points, width, out);
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
