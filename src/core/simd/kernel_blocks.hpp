// Lanes, the fused dot product block, exp and kernel expressions. simd/kernel_blocks.cpp compiles this file once per
// instruction set.
//
// Why blocks of lanes: a stored point is one lane, so a row of dot products needs no horizontal sum, and each sum runs
// over the features in order whatever the shape of the tile. One row and a block of rows therefore agree bit for bit.
// Everything is in a namespace of its instruction set, so that the linker cannot mix them up.
#pragma once

#include "core/simd/dispatch.hpp"

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace gristmill::GRISTMILL_ISA {

#if defined(__AVX512F__)
inline constexpr std::size_t kBytes = 64;
inline constexpr int kTileRows = 8, kTileBlocks = 3;
#elif defined(__AVX2__)
inline constexpr std::size_t kBytes = 32;
inline constexpr int kTileRows = 3, kTileBlocks = 2;
#elif defined(__aarch64__)
inline constexpr std::size_t kBytes = 16;
inline constexpr int kTileRows = 4, kTileBlocks = 1;  // 16 sums, 4 values of y, 4 of x: 24 of 32 registers
#else
inline constexpr std::size_t kBytes = 16;
inline constexpr int kTileRows = 2, kTileBlocks = 1;
#endif
inline constexpr int kPerBlock = kLineBytes / kBytes;  // native vectors in a block
// Features are processed in strips so that a tile of blocks stays in the L1 cache; sums continue from strip to strip.
inline constexpr std::size_t kStrip = 1024;

template <class T>
struct VectorOf {
    typedef T type __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));
};
template <class T>
using Vec = typename VectorOf<T>::type;
template <class T>
inline constexpr std::size_t kWidth = kBytes / sizeof(T);

template <class T>
inline Vec<T> load(const T* p) {
    return *reinterpret_cast<const Vec<T>*>(p);
}
template <class T>
inline void store(T* p, Vec<T> v) {
    *reinterpret_cast<Vec<T>*>(p) = v;
}
#if defined(__AVX512F__)
inline Vec<double> broadcast(double x) { return _mm512_set1_pd(x); }
inline Vec<float> broadcast(float x) { return _mm512_set1_ps(x); }
#elif defined(__AVX2__)
inline Vec<double> broadcast(double x) { return _mm256_set1_pd(x); }
inline Vec<float> broadcast(float x) { return _mm256_set1_ps(x); }
#elif defined(__ARM_NEON) && defined(__aarch64__)
inline Vec<double> broadcast(double x) { return vdupq_n_f64(x); }
inline Vec<float> broadcast(float x) { return vdupq_n_f32(x); }
#else
// The vector extension broadcasts the scalar; subtracting +0 changes no number, not even -0.
template <class T>
inline Vec<T> broadcast(T x) {
    return x - Vec<T>{};
}
#endif

// a * b + c, fused in all operations of an instruction set or in none.
#if defined(__AVX512F__)
inline Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) { return _mm512_fmadd_pd(a, b, c); }
inline Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) { return _mm512_fmadd_ps(a, b, c); }
#elif defined(__AVX2__)
inline Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) { return _mm256_fmadd_pd(a, b, c); }
inline Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) { return _mm256_fmadd_ps(a, b, c); }
#elif defined(__ARM_NEON) && defined(__aarch64__)
inline Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) { return vfmaq_f64(c, a, b); }
inline Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) { return vfmaq_f32(c, a, b); }
#else
template <class V>
inline V fma(V a, V b, V c) {
    return a * b + c;
}
#endif
#if defined(__FMA__) || defined(__aarch64__)
inline double fma1(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float fma1(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
template <class T>
inline T fma1(T a, T b, T c) {
    return a * b + c;
}
#endif

// Clamps to [low, high]. NaN stays NaN, because it is the second operand.
#if defined(__AVX512F__)
inline Vec<double> clamp(Vec<double> x, Vec<double> low, Vec<double> high) {
    return _mm512_min_pd(high, _mm512_max_pd(low, x));
}
inline Vec<float> clamp(Vec<float> x, Vec<float> low, Vec<float> high) {
    return _mm512_min_ps(high, _mm512_max_ps(low, x));
}
#elif defined(__AVX2__)
inline Vec<double> clamp(Vec<double> x, Vec<double> low, Vec<double> high) {
    return _mm256_min_pd(high, _mm256_max_pd(low, x));
}
inline Vec<float> clamp(Vec<float> x, Vec<float> low, Vec<float> high) {
    return _mm256_min_ps(high, _mm256_max_ps(low, x));
}
#else
template <class V>
inline V clamp(V x, V low, V high) {
    return x < low ? low : (x > high ? high : x);
}
#endif

template <class V>
inline V max0(V v) {
    return v > V{} ? v : V{};
}
#if defined(__AVX512F__)
inline Vec<double> abs(Vec<double> v) { return _mm512_abs_pd(v); }
inline Vec<float> abs(Vec<float> v) { return _mm512_abs_ps(v); }
#elif defined(__AVX2__)
inline Vec<double> abs(Vec<double> v) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), v); }
inline Vec<float> abs(Vec<float> v) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v); }
#else
template <class V>
inline V abs(V v) {
    return v < V{} ? -v : v;
}
#endif

// ---- sums over features -------------------------------------------------------------------------------------------

struct DotTerm {
    template <class V>
    static V add(V sum, V x, V y) {
        return fma(x, y, sum);
    }
};
struct L1Term {
    template <class V>
    static V add(V sum, V x, V y) {
        return sum + abs(x - y);
    }
};

// One register tile: R rows by B blocks over features [from, to).
template <class Term, int R, int B, class T>
inline void tile(const T* const* rows, const T* blocks, std::size_t width, std::size_t from, std::size_t to, T* out,
                 std::size_t stride) {
    constexpr int V = B * kPerBlock;
    constexpr std::size_t lanes = kLanes<T>;
    Vec<T> sum[R][V];
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) sum[r][v] = from == 0 ? Vec<T>{} : load(out + r * stride + v * kWidth<T>);
    for (std::size_t j = from; j < to; ++j) {
        Vec<T> y[V];
        for (int b = 0; b < B; ++b)
            for (int p = 0; p < kPerBlock; ++p)
                y[b * kPerBlock + p] = load(blocks + (b * width + j) * lanes + p * kWidth<T>);
        for (int r = 0; r < R; ++r) {
            const Vec<T> x = broadcast(rows[r][j]);
            for (int v = 0; v < V; ++v) sum[r][v] = Term::add(sum[r][v], x, y[v]);
        }
    }
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) store(out + r * stride + v * kWidth<T>, sum[r][v]);
}

template <class Term, int B, class T>
inline void tile_rows(const T* const* rows, std::size_t count, const T* blocks, std::size_t width, std::size_t from,
                      std::size_t to, T* out, std::size_t stride) {
    std::size_t r = 0;
    for (; r + kTileRows <= count; r += kTileRows)
        tile<Term, kTileRows, B>(rows + r, blocks, width, from, to, out + r * stride, stride);
    for (; r + 2 <= count; r += 2) tile<Term, 2, B>(rows + r, blocks, width, from, to, out + r * stride, stride);
    for (; r < count; ++r) tile<Term, 1, B>(rows + r, blocks, width, from, to, out + r * stride, stride);
}

template <class Term, class T>
void feature_sums(const T* const* rows, std::size_t count, const T* blocks, std::size_t n_blocks, std::size_t width,
                  T* out, std::size_t stride) {
    std::size_t b = 0;
    if (count == 1) {
        // One row has no tile of rows to hide the latency of its sums, so as many blocks as possible run side by side.
        const auto single_row = [&]<int B>() {
            while (b + B <= n_blocks) {
                tile<Term, 1, B>(rows, blocks + b * width * kLanes<T>, width, 0, width, out + b * kLanes<T>, stride);
                b += B;
            }
        };
        if constexpr (kPerBlock == 1) {
            single_row.template operator()<8>();
            single_row.template operator()<7>();
            single_row.template operator()<6>();
            single_row.template operator()<5>();
        }
        if constexpr (kPerBlock <= 2) {
            single_row.template operator()<4>();
            single_row.template operator()<3>();
        }
        single_row.template operator()<2>();
        single_row.template operator()<1>();
        return;
    }
    while (b < n_blocks) {
        const bool full = b + kTileBlocks <= n_blocks;
        const T* at = blocks + b * width * kLanes<T>;
        T* to = out + b * kLanes<T>;
        for (std::size_t from = 0; from == 0 || from < width; from += kStrip) {
            const std::size_t end = from + kStrip < width ? from + kStrip : width;
            if (full) tile_rows<Term, kTileBlocks>(rows, count, at, width, from, end, to, stride);
            else tile_rows<Term, 1>(rows, count, at, width, from, end, to, stride);
        }
        b += full ? kTileBlocks : 1;
    }
}

template <class T>
void sparse_dots(const std::int32_t* columns, const T* values, std::size_t nonzeros, const T* blocks,
                 std::size_t n_blocks, std::size_t width, T* out) {
    constexpr int G = kPerBlock < 8 ? 8 / kPerBlock : 1;  // eight independent sums hide the latency
    std::size_t b = 0;
    auto run = [&]<int B>() {
        Vec<T> sum[B * kPerBlock] = {};
        const T* at = blocks + b * width * kLanes<T>;
        for (std::size_t i = 0; i < nonzeros; ++i) {
            const Vec<T> x = broadcast(values[i]);
            const T* line = at + static_cast<std::size_t>(columns[i]) * kLanes<T>;
            for (int k = 0; k < B; ++k)
                for (int p = 0; p < kPerBlock; ++p)
                    sum[k * kPerBlock + p] =
                        fma(x, load(line + k * width * kLanes<T> + p * kWidth<T>), sum[k * kPerBlock + p]);
        }
        for (int v = 0; v < B * kPerBlock; ++v) store(out + b * kLanes<T> + v * kWidth<T>, sum[v]);
        b += B;
    };
    while (b + G <= n_blocks) run.template operator()<G>();
    while (b < n_blocks) run.template operator()<1>();
}

// sum |x - y| = (sum |x| + sum |y|) + sum over the non-zeros of x of (|x - y| - (|x| + |y|)); `out` comes in holding
// the bracket. Where y is 0 the term is exactly 0, so exchanging x and y gives the same bits.
template <class T>
void sparse_l1s(const std::int32_t* columns, const T* values, std::size_t nonzeros, const T* blocks,
                std::size_t n_blocks, std::size_t width, T* out) {
    for (std::size_t b = 0; b < n_blocks; ++b)
        for (int p = 0; p < kPerBlock; ++p) {
            T* to = out + b * kLanes<T> + p * kWidth<T>;
            Vec<T> sum = {};
            for (std::size_t i = 0; i < nonzeros; ++i) {
                const Vec<T> x = broadcast(values[i]);
                const Vec<T> y = load(blocks + (b * width + columns[i]) * kLanes<T> + p * kWidth<T>);
                sum += abs(x - y) - (abs(x) + abs(y));
            }
            store(to, max0(load(to) + sum));
        }
}

// ---- functions of a lane ------------------------------------------------------------------------------------------

template <class T>
struct ExpTraits;
template <>
struct ExpTraits<double> {
    using Bits = std::int64_t;
    static constexpr double low = -708.0, high = 710.0, shift = 0x1.8p52, log2e = 0x1.71547652b82fep0;
    static constexpr double ln2_high = 0x1.62e42fefa0000p-1, ln2_low = 0x1.cf79abc9e3b39p-40;
    static constexpr Bits bias = 1023;
    static constexpr int mantissa = 52;
    // e^r = 1 + r + r^2/2 + r^3 q(r), highest power first; q of degree 8 has minimal relative error (2.4e-17) for |r|
    // <= ln(2)/2.
    static constexpr double series[] = {0x1.8abafa1485258p-26,
                                        0x1.289792fd01531p-22,
                                        0x1.71f4b75e60bf5p-19,
                                        0x1.a019b3747ae1cp-16,
                                        0x1.a019f7c0d14f8p-13,
                                        0x1.6c16c17a09cb5p-10,
                                        0x1.11111112d40cbp-7,
                                        0x1.5555555553af1p-5,
                                        0x1.5555555554eaep-3,
                                        0.5,
                                        1.0,
                                        1.0};
};
template <>
struct ExpTraits<float> {
    using Bits = std::int32_t;
    static constexpr float low = -87.0f, high = 89.0f, shift = 0x1.8p23f, log2e = 0x1.715476p0f;
    static constexpr float ln2_high = 0x1.63p-1f, ln2_low = -0x1.bd0106p-13f;
    static constexpr Bits bias = 127;
    static constexpr int mantissa = 23;
    static constexpr float series[] = {0x1.6fef4ep-10f, 0x1.1257d8p-7f, 0x1.5553p-5f, 0x1.555466p-3f, 0.5f, 1.0f, 1.0f};
};

// exp within 2 ulp; 0 below exp(low), infinity above the range; NaN stays NaN.
template <class T>
inline Vec<T> exp(Vec<T> x) {
    using E = ExpTraits<T>;
    typedef typename E::Bits Ints __attribute__((vector_size(kBytes)));
    const Vec<T> inside = clamp(x, broadcast(E::low), broadcast(E::high));
    // Adding 1.5 * 2^mantissa rounds to the nearest integer and leaves it in the low bits.
    const Vec<T> shifted = fma(inside, broadcast(E::log2e), broadcast(E::shift));
    const Vec<T> whole = shifted - E::shift;
    Vec<T> rest = fma(-whole, broadcast(E::ln2_high), inside);
    rest = fma(-whole, broadcast(E::ln2_low), rest);
    Vec<T> sum = broadcast(E::series[0]);
    constexpr int terms = sizeof(E::series) / sizeof(E::series[0]);
    for (int i = 1; i < terms; ++i) sum = fma(sum, rest, broadcast(E::series[i]));
    // 2^(n-1), then times 2: n itself may exceed the largest exponent by one.
    const Ints n = (Ints)shifted - (Ints)broadcast(E::shift);
    const Ints power = (n + (E::bias - 1)) << E::mantissa;
    const Vec<T> value = sum * (Vec<T>)power * T(2);
    return x < broadcast(E::low) ? Vec<T>{} : value;
}

template <class T>
inline Vec<T> tanh(Vec<T> x) {
    // 1 - 2/(exp(2|x|) + 1) loses digits near 0, where the odd series to x^9 is exact to rounding instead.
    const Vec<T> size = abs(x);
    const Vec<T> far = T(1) - T(2) / (exp<T>(size + size) + T(1));
    const Vec<T> s = x * x;
    const Vec<T> near =
        size * (T(1) + s * (T(-1.0 / 3) + s * (T(2.0 / 15) + s * (T(-17.0 / 315) + s * T(62.0 / 2835)))));
    const Vec<T> value = size < broadcast(T(0.02)) ? near : far;
    return x < Vec<T>{} ? -value : value;
}

template <class T>
inline Vec<T> power(Vec<T> base, int degree) {
    Vec<T> result = broadcast(T(1));
    for (; degree > 0; degree >>= 1) {
        if (degree & 1) result *= base;
        base *= base;
    }
    return result;
}

template <class T>
inline Vec<T> geometric(Vec<T> t, int terms) {  // 1 + t + ... + t^(terms-1)
    Vec<T> sum = broadcast(T(1));
    for (int i = 1; i < terms; ++i) sum = fma(sum, t, broadcast(T(1)));
    return sum;
}

// ---- the expression -----------------------------------------------------------------------------------------------

// Values of a leaf; `self`: y is x, so the distance is 0. The operation is chosen once per row, not once per pair.
template <class T>
void leaf(const Node& node, const Pairs<T>& pairs, bool self, T* out) {
    const T a = static_cast<T>(node.a), b = static_cast<T>(node.b);
    const int n = node.n;
    auto each = [&](auto value) {
        for (std::size_t i = 0; i < pairs.size; i += kWidth<T>) store(out + i, value(i));
    };
    auto of_dot = [&](auto f) {
        const T* dot = self ? pairs.y_norm2 : pairs.dot;
        each([&](std::size_t i) { return f(load(dot + i)); });
    };
    auto of_l1 = [&](auto f) {
        if (self) return each([&](std::size_t) { return f(Vec<T>{}); });
        each([&](std::size_t i) { return f(load(pairs.l1 + i)); });
    };
    auto of_square = [&](auto f) {  // ||x - y||^2 from norms and dot product; never negative
        if (self) return each([&](std::size_t) { return f(Vec<T>{}); });
        const Vec<T> x = broadcast(pairs.x_norm2);
        each([&](std::size_t i) { return f(max0((x + load(pairs.y_norm2 + i)) - T(2) * load(pairs.dot + i))); });
    };
    switch (node.op) {
        case Op::linear: return of_dot([](Vec<T> t) { return t; });
        case Op::polynomial: return of_dot([=](Vec<T> t) { return power<T>(a * t + b, n); });
        case Op::gaussian: return of_square([=](Vec<T> t) { return exp<T>(-a * t); });
        case Op::laplacian: return of_l1([=](Vec<T> t) { return exp<T>(-a * t); });
        case Op::exponential: return of_dot([=](Vec<T> t) { return exp<T>(a * t); });
        case Op::vovk:
            return n > 0 ? of_dot([=](Vec<T> t) { return geometric<T>(t, n); })
                         : of_dot([](Vec<T> t) { return T(1) / (T(1) - t); });
        case Op::sigmoid: return of_dot([=](Vec<T> t) { return tanh<T>(a * t + b); });
        case Op::manhattan: return of_l1([](Vec<T> t) { return -t; });
        case Op::squared_euclidean: return of_square([](Vec<T> t) { return -t; });
        default: return;
    }
}

template <class T>
void evaluate(const Node* nodes, std::int32_t at, const Pairs<T>& pairs, bool self, T* scratch, T* out);

// value / sqrt(k(x,x) k(y,y)), 0 where a diagonal entry is not positive.
template <class T>
void normalize(const Node* nodes, std::int32_t base, const Pairs<T>& pairs, bool self, T* scratch, T* out) {
    const std::size_t size = pairs.size;
    T* y_self = scratch;
    evaluate(nodes, base, pairs, true, scratch + size, y_self);
    T x_norm2[kLanes<T>], x_self[kLanes<T>];
    for (std::size_t l = 0; l < kLanes<T>; ++l) x_norm2[l] = pairs.x_norm2;
    const Pairs<T> own{nullptr, nullptr, pairs.x_norm2, x_norm2, kLanes<T>};
    evaluate(nodes, base, own, true, scratch + size, x_self);
    for (std::size_t i = 0; i < size; ++i) {
        const T scale = (self ? y_self[i] : x_self[0]) * y_self[i];
        out[i] = scale > T(0) ? (self ? T(1) : out[i] / __builtin_sqrt(scale)) : T(0);
    }
}

template <class T>
void evaluate(const Node* nodes, std::int32_t at, const Pairs<T>& pairs, bool self, T* scratch, T* out) {
    const Node& node = nodes[at];
    const std::size_t size = pairs.size;
    if (node.left < 0) {
        leaf(node, pairs, self, out);
        return;
    }
    evaluate(nodes, node.left, pairs, self, scratch, out);
    if (node.op == Op::normalized) {
        normalize(nodes, node.left, pairs, self, scratch, out);
    } else if (node.op == Op::multiple) {
        for (std::size_t i = 0; i < size; ++i) out[i] *= static_cast<T>(node.a);
    } else {
        evaluate(nodes, node.right, pairs, self, scratch + size, scratch);
        if (node.op == Op::sum)
            for (std::size_t i = 0; i < size; ++i) out[i] += scratch[i];
        else
            for (std::size_t i = 0; i < size; ++i) out[i] *= scratch[i];
    }
}

template <class T>
void evaluate_to_double(const Node* nodes, std::int32_t root, const Pairs<T>& pairs, bool self, T* scratch,
                        double* out) {
    if constexpr (sizeof(T) == sizeof(double)) {
        evaluate(nodes, root, pairs, self, scratch, out);
    } else {
        evaluate(nodes, root, pairs, self, scratch + pairs.size, scratch);
        for (std::size_t i = 0; i < pairs.size; ++i) out[i] = static_cast<double>(scratch[i]);
    }
}

template <class T>
void transform(const Node* nodes, std::int32_t root, const Pairs<T>& pairs, T* scratch, double* out) {
    evaluate_to_double(nodes, root, pairs, false, scratch, out);
}

template <class T>
void transform_self(const Node* nodes, std::int32_t root, const T* norm2, std::size_t size, T* scratch, double* out) {
    evaluate_to_double(nodes, root, Pairs<T>{nullptr, nullptr, T(0), norm2, size}, true, scratch, out);
}

// ---- scores -------------------------------------------------------------------------------------------------------

// Sixteen running sums, then one fixed tree: the order depends on n only.
inline double score_dot(const double* a, const double* b, std::size_t n) {
    constexpr int V = kPad / kWidth<double>;
    Vec<double> sum[V] = {};
    for (std::size_t i = 0; i < n; i += kPad)
        for (int v = 0; v < V; ++v)
            sum[v] = fma(load(a + i + v * kWidth<double>), load(b + i + v * kWidth<double>), sum[v]);
    double lanes[kPad];
    for (int v = 0; v < V; ++v) store(lanes + v * kWidth<double>, sum[v]);
    for (std::size_t half = kPad / 2; half > 0; half /= 2)
        for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    return lanes[0];
}

inline void axpy(double c, const double* b, double* a, std::size_t n) {
    const Vec<double> factor = broadcast(c);
    for (std::size_t i = 0; i < n; i += kWidth<double>) store(a + i, fma(factor, load(b + i), load(a + i)));
}

inline void scale(double c, double* a, std::size_t n) {
    const Vec<double> factor = broadcast(c);
    for (std::size_t i = 0; i < n; i += kWidth<double>) store(a + i, factor * load(a + i));
}

#if defined(__AVX512F__)
// The sum of each of eight vectors by the tree (l, l+4), (l, l+2), (l, l+1), in three shuffles for all eight.
inline Vec<double> sums_of_eight(const Vec<double>* v) {
    typedef long long Index __attribute__((vector_size(kBytes)));
    const Index low4 = {0, 1, 2, 3, 8, 9, 10, 11}, high4 = {4, 5, 6, 7, 12, 13, 14, 15};
    const Index low2 = {0, 1, 8, 9, 4, 5, 12, 13}, high2 = {2, 3, 10, 11, 6, 7, 14, 15};
    const Index low1 = {0, 8, 2, 10, 4, 12, 6, 14}, high1 = {1, 9, 3, 11, 5, 13, 7, 15};
    const auto fold = [](Vec<double> a, Vec<double> b, Index low, Index high) {
        return (Vec<double>)_mm512_permutex2var_pd(a, (__m512i)low, b) +
               (Vec<double>)_mm512_permutex2var_pd(a, (__m512i)high, b);
    };
    const Vec<double> a = fold(v[0], v[4], low4, high4), b = fold(v[1], v[5], low4, high4);
    const Vec<double> c = fold(v[2], v[6], low4, high4), d = fold(v[3], v[7], low4, high4);
    return fold(fold(a, c, low2, high2), fold(b, d, low2, high2), low1, high1);
}
#endif

// J features of all blocks. The first block initialises the sums: the compiler keeps sums initialised with zeros in
// memory instead of registers.
template <int J>
inline void lane_sums_of(const double* at, std::size_t n_blocks, std::size_t width, const double* weights,
                         double* out) {
    constexpr std::size_t lanes = kLanes<double>;
    Vec<double> sum[J][kPerBlock];
    for (int p = 0; p < kPerBlock; ++p)
        for (int k = 0; k < J; ++k)
            sum[k][p] = load(weights + p * kWidth<double>) * load(at + k * lanes + p * kWidth<double>);
    for (std::size_t b = 1; b < n_blocks; ++b) {
        at += width * lanes;
        for (int p = 0; p < kPerBlock; ++p) {
            const Vec<double> w = load(weights + b * lanes + p * kWidth<double>);
            for (int k = 0; k < J; ++k) sum[k][p] = fma(w, load(at + k * lanes + p * kWidth<double>), sum[k][p]);
        }
    }
#if defined(__AVX512F__)
    if constexpr (J == 8) return store(out, sums_of_eight(&sum[0][0]));
#endif
    for (int k = 0; k < J; ++k) {
        double line[lanes];
        for (int p = 0; p < kPerBlock; ++p) store(line + p * kWidth<double>, sum[k][p]);
        for (std::size_t half = lanes / 2; half > 0; half /= 2)
            for (std::size_t l = 0; l < half; ++l) line[l] += line[l + half];
        out[k] = line[0];
    }
}

// A few features at a time, block after block, then one fixed tree over the lanes: the order depends on the shape only.
inline void lane_sums(const double* blocks, std::size_t n_blocks, std::size_t width, const double* weights,
                      double* out) {
    constexpr int kUnroll = 8 / kPerBlock > 2 ? 8 / kPerBlock : 2;
    std::size_t j = 0;
    for (; j + kUnroll <= width; j += kUnroll)
        lane_sums_of<kUnroll>(blocks + j * kLanes<double>, n_blocks, width, weights, out + j);
    for (; j < width; ++j) lane_sums_of<1>(blocks + j * kLanes<double>, n_blocks, width, weights, out + j);
}

inline void ordered(const double* const* rows, std::size_t count, const double* y, std::size_t n, double* out) {
    auto run = [&]<int R>(std::size_t r) {
        double sum[R] = {};
        for (std::size_t j = 0; j < n; ++j)
            for (int k = 0; k < R; ++k) sum[k] = fma1(rows[r + k][j], y[j], sum[k]);
        for (int k = 0; k < R; ++k) out[r + k] = sum[k];
    };
    std::size_t r = 0;
    for (; r + 8 <= count; r += 8) run.template operator()<8>(r);
    for (; r < count; ++r) run.template operator()<1>(r);
}

inline void forward(const double* triangle, const double* inverse, const double* const* values, std::size_t count,
                    double* sums, double* const* z) {
    constexpr int V = kStair / kWidth<double>;
    auto run = [&]<int R>(std::size_t r) {  // several rows at a time, because each coordinate depends on the one before
        for (std::size_t j = 0; j < kStair; ++j)
            for (int k = 0; k < R; ++k) {
                double* sum = sums + (r + k) * kStair;
                const double next = (values[r + k][j] - sum[j]) * inverse[j];
                z[r + k][j] = next;
                const Vec<double> x = broadcast(next);
                for (int v = 0; v < V; ++v) {
                    double* at = sum + v * kWidth<double>;
                    store(at, fma(x, load(triangle + j * kStair + v * kWidth<double>), load(at)));
                }
            }
    };
    std::size_t r = 0;
    for (; r + 8 <= count; r += 8) run.template operator()<8>(r);
    for (; r < count; ++r) run.template operator()<1>(r);
}

// Each sum is one long chain of additions; eight rows at a time hide its latency.
template <class T>
void norms2(const T* const* rows, std::size_t count, std::size_t width, T* out) {
    auto run = [&]<int R>(std::size_t r) {
        T sum[R] = {};
        for (std::size_t j = 0; j < width; ++j)
            for (int k = 0; k < R; ++k) sum[k] = fma1(rows[r + k][j], rows[r + k][j], sum[k]);
        for (int k = 0; k < R; ++k) out[r + k] = sum[k];
    };
    std::size_t r = 0;
    for (; r + 8 <= count; r += 8) run.template operator()<8>(r);
    for (; r < count; ++r) run.template operator()<1>(r);
}

// ---- signed projections -------------------------------------------------------------------------------------------

template <class T>
void fold(const T* x, const T* s, std::size_t n, T* y) {
    std::size_t i = 0;
    for (; i + kWidth<T> <= n; i += kWidth<T>) store(y + i, fma(load(s + i), load(x + i), load(y + i)));
    for (; i < n; ++i) y[i] = fma1(s[i], x[i], y[i]);
}

template <class T>
void hadamard(T* x, std::size_t n) {
    std::size_t h = 1;
    if (n >= 4) {  // the first two stages in one pass: they are shorter than a vector
        for (std::size_t i = 0; i < n; i += 4) {
            const T a = x[i] + x[i + 1], b = x[i] - x[i + 1], c = x[i + 2] + x[i + 3], d = x[i + 2] - x[i + 3];
            x[i] = a + c;
            x[i + 1] = b + d;
            x[i + 2] = a - c;
            x[i + 3] = b - d;
        }
        h = 4;
    }
    for (; h < n; h *= 2)
        for (std::size_t i = 0; i < n; i += 2 * h) {
            T *low = x + i, *high = x + i + h;
            std::size_t j = 0;
            for (; j + kWidth<T> <= h; j += kWidth<T>) {
                const Vec<T> a = load(low + j), b = load(high + j);
                store(low + j, a + b);
                store(high + j, a - b);
            }
            for (; j < h; ++j) {
                const T a = low[j], b = high[j];
                low[j] = a + b;
                high[j] = a - b;
            }
        }
}

#define GRISTMILL_STRING_(x) #x
#define GRISTMILL_STRING(x) GRISTMILL_STRING_(x)
template <class T>
constexpr Isa<T> table() {
    return {GRISTMILL_STRING(GRISTMILL_ISA),
            &feature_sums<DotTerm, T>,
            &feature_sums<L1Term, T>,
            &sparse_dots<T>,
            &sparse_l1s<T>,
            &norms2<T>,
            &transform<T>,
            &transform_self<T>,
            &fold<T>,
            &hadamard<T>};
}

}  // namespace gristmill::GRISTMILL_ISA
