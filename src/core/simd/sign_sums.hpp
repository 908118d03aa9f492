// Weighted sums of signs: the gradient of the L1 distance.
//
// A lane sums its own points in order, followed by one fixed tree over the lanes of a block: the order depends on the
// shape only. A few features of all points are copied together first, because rows of points a power of two apart evict
// each other from the cache. The copies are numbers whose differences show their sign to one instruction.
#pragma once

#include "core/simd/kernel_blocks.hpp"

namespace gristmill::GRISTMILL_ISA {

// Interleaves the first halves of two vectors, or the second halves.
template <bool Second, class V>
inline V interleaved(V a, V b) {
    constexpr int n = sizeof(V) / sizeof(a[0]), at = Second ? n / 2 : 0;
#if !defined(__clang__) && __GNUC__ < 12  // has no __builtin_shufflevector
    V out{};
    for (int i = 0; i < n / 2; ++i) {
        out[2 * i] = a[at + i];
        out[2 * i + 1] = b[at + i];
    }
    return out;
#else
    constexpr int to = n + at;
    if constexpr (n == 2) return __builtin_shufflevector(a, b, at, to);
    else if constexpr (n == 4) return __builtin_shufflevector(a, b, at, to, at + 1, to + 1);
    else if constexpr (n == 8)
        return __builtin_shufflevector(a, b, at, to, at + 1, to + 1, at + 2, to + 2, at + 3, to + 3);
    else
        return __builtin_shufflevector(a, b, at, to, at + 1, to + 1, at + 2, to + 2, at + 3, to + 3, at + 4, to + 4,
                                       at + 5, to + 5, at + 6, to + 6, at + 7, to + 7);
#endif
}

// A monotone map of x such that differences are +0 for equal numbers and otherwise have a bit set in their upper half.
// Numbers of one sign beyond 2^991 count as equal.
template <class T>
inline Vec<T> comparable(Vec<T> x) {
    if constexpr (sizeof(T) == sizeof(float)) return x + T(0);  // -0 is 0
    else return clamp(x * 0x1p32, broadcast(-0x1.fffffffffffffp1023), broadcast(0x1.fffffffffffffp1023)) + T(0);
}

// kSignUnit times the sign of a difference of comparable numbers; 0 for equal ones.
#if defined(__AVX512F__)
inline constexpr int kSignUnit = 1;
// The table of fixupimm, four bits per class of number, last class first: +x, -x, +inf, -inf and 1 become 1 (0xA) or -1
// (0x9); 0 and NaN become +0 (0x8).
inline constexpr int kSigns = static_cast<int>(0xA9A9A888u);
inline Vec<double> sign_of(Vec<double> d) { return _mm512_fixupimm_pd(d, d, _mm512_set1_epi64(kSigns), 0); }
inline Vec<float> sign_of(Vec<float> d) { return _mm512_fixupimm_ps(d, d, _mm512_set1_epi32(kSigns), 0); }
// sum + w sign(d) with other instructions: computing a fourth of the terms this way balances the execution ports.
inline Vec<double> add_signed(Vec<double> sum, Vec<double> w, Vec<double> d) {
    const __m512i bits = (__m512i)d, sign = _mm512_set1_epi64(1ull << 63);
    return _mm512_mask_add_pd(sum, _mm512_test_epi64_mask(bits, bits), sum,
                              (__m512d)_mm512_ternarylogic_epi64((__m512i)w, bits, sign, 0x78));
}
inline Vec<float> add_signed(Vec<float> sum, Vec<float> w, Vec<float> d) {
    const __m512i bits = (__m512i)d, sign = _mm512_set1_epi32(1u << 31);
    return _mm512_mask_add_ps(sum, _mm512_test_epi32_mask(bits, bits), sum,
                              (__m512)_mm512_ternarylogic_epi32((__m512i)w, bits, sign, 0x78));
}
#elif defined(__AVX2__)
inline constexpr int kSignUnit = 2;
// As a 32-bit integer, the negated bits of 2 are the bits of -2.
inline Vec<double> sign_of(Vec<double> d) {
    return (Vec<double>)_mm256_sign_epi32((__m256i)_mm256_set1_pd(2), (__m256i)d);
}
inline Vec<float> sign_of(Vec<float> d) {
    return (Vec<float>)_mm256_sign_epi32((__m256i)_mm256_set1_ps(2), (__m256i)d);
}
#else
inline constexpr int kSignUnit = 1;
template <class V>
inline V sign_of(V d) {
    const V one = V{} + 1, none = {};
    return d > none ? one : (d < none ? -one : none);
}
#endif

// Scratch memory of a call: S features of all points; for each row and output, those features of the row and S sums per
// lane.
template <int S, class T>
struct SignScratch {
    T *points, *x, *sums;
    SignScratch(T* scratch, std::size_t n_blocks, std::size_t count)
        : points(scratch), x(points + n_blocks * S * kLanes<T>), sums(x + padded(count * S)) {}
};

// out[f] += the sum of the lanes of each of J <= 4 lines, by one tree: halves, their halves, and so on.
template <int J, class T>
inline void add_trees(const T* lines, T* out) {
    constexpr std::size_t bytes = kBytes < 32 ? kBytes : 32, n = bytes / sizeof(T), parts = kLanes<T> / n;
    typedef T V __attribute__((vector_size(bytes), aligned(sizeof(T)), may_alias));
    const auto fold = [](V a, V b) { return interleaved<false, V>(a, b) + interleaved<true, V>(a, b); };
    const auto part = [&](int f, int p) {
        return f < J ? *reinterpret_cast<const V*>(lines + f * kLanes<T> + p * n) : V{};
    };
    const auto whole = [&](int f) {
        if constexpr (parts == 2) return part(f, 0) + part(f, 1);
        else return (part(f, 0) + part(f, 2)) + (part(f, 1) + part(f, 3));
    };
    T four[n < 4 ? 4 : n];  // the sums of the four lines, interleaved
    V* to = reinterpret_cast<V*>(four);
    if constexpr (n < 4) {
        to[0] = fold(whole(0), whole(1));
        to[1] = fold(whole(2), whole(3));
    } else {
        to[0] = fold(fold(whole(0), whole(2)), fold(whole(1), whole(3)));
    }
    for (int f = 0; f < J; ++f) out[f] += (n == 8 ? four[f] + four[n - 4 + f] : four[f]) * (T(1) / T(kSignUnit));
}

// K rows (`Shared`: K outputs of one row, whose signs are computed once) by J features over blocks [from, to); k and j
// are the first row and feature.
template <bool Shared, int K, int S, int J, class T>
inline void sign_tile(const T* const* weights, const SignScratch<S, T>& scratch, std::size_t k, std::size_t from,
                      std::size_t to, bool last, std::size_t j, T* const* out) {
    constexpr std::size_t lanes = kLanes<T>;
    constexpr int P = kPerBlock;
    Vec<T> sum[K][J][P], x[Shared ? 1 : K][J];
    T* kept = scratch.sums + k * S * lanes;
    for (int i = 0; i < K; ++i)
        for (int f = 0; f < J; ++f) {
            for (int p = 0; p < P; ++p)
                sum[i][f][p] = from == 0 ? Vec<T>{} : load(kept + (i * S + f) * lanes + p * kWidth<T>);
            if (i == 0 || !Shared) x[i][f] = broadcast(scratch.x[(k + i) * S + f]);
        }
    const T* at = scratch.points + from * S * lanes;
    for (std::size_t b = from; b < to; ++b, at += S * lanes)
        for (int p = 0; p < P; ++p) {
            Vec<T> w[K];
            for (int i = 0; i < K; ++i) w[i] = load(weights[k + i] + b * lanes + p * kWidth<T>);
            for (int f = 0; f < J; ++f) {
                const Vec<T> y = load(at + f * lanes + p * kWidth<T>);
                Vec<T> sign;
                for (int i = 0; i < K; ++i) {
#if defined(__AVX512F__)
                    if (!Shared && f == 3) {
                        sum[i][f][p] = add_signed(sum[i][f][p], w[i], x[i][f] - y);
                        continue;
                    }
#endif
                    if (i == 0 || !Shared) sign = sign_of(x[i][f] - y);
                    sum[i][f][p] = fma(w[i], sign, sum[i][f][p]);
                }
            }
        }
    for (int i = 0; i < K; ++i)
        for (int f = 0; f < J; ++f)
            for (int p = 0; p < P; ++p) store(kept + (i * S + f) * lanes + p * kWidth<T>, sum[i][f][p]);
    for (int i = 0; last && i < K; ++i) add_trees<J, T>(kept + i * S * lanes, out[k + i] + j);
}

template <bool Shared, int K, int S, int J, class T>
inline void sign_tiles(const T* const* weights, const T* const* rows, std::size_t count, std::size_t n_blocks,
                       const SignScratch<S, T>& scratch, std::size_t j, const T* next, std::size_t stride,
                       T* const* out) {
    constexpr std::size_t kDepth = 64;  // blocks of a stripe that stay in the L1 cache while all sums are updated
    for (std::size_t from = 0; from < n_blocks; from += kDepth) {
        const std::size_t to = from + kDepth < n_blocks ? from + kDepth : n_blocks;
        for (std::size_t k = 0, end, fetched = from; k < count; k = end) {
            end = count;
            if constexpr (Shared)  // the outputs of one row
                for (end = k + 1; end < count && rows[end] == rows[k]; ++end) {
                }
            const auto tiles = [&]<int W>() {
                for (; k + W <= end; k += W) {
                    for (; fetched < from + (to - from) * (k + W) / count; ++fetched)  // prefetch the next stripe
                        for (int f = 0; f < S; ++f) __builtin_prefetch(next + fetched * stride + f * kLanes<T>, 0, 2);
                    sign_tile<Shared, W, S, J>(weights, scratch, k, from, to, to == n_blocks, j, out);
                }
            };
            tiles.template operator()<K>();
            if constexpr (K > 4) tiles.template operator()<4>();
            if constexpr (K > 3) tiles.template operator()<3>();
            if constexpr (K > 2) tiles.template operator()<2>();
            if constexpr (K > 1) tiles.template operator()<1>();
        }
    }
}

// Features j, ..., j + J - 1; scratch rows hold S features.
template <bool Shared, int K, int S, int J, class T>
inline void sign_stripe(const T* const* weights, const T* const* rows, std::size_t count, const T* blocks,
                        std::size_t n_blocks, std::size_t width, std::size_t j, const SignScratch<S, T>& scratch,
                        T* const* out) {
    constexpr std::size_t lanes = kLanes<T>;
    const T* at = blocks + j * lanes;
    for (std::size_t b = 0; b < n_blocks; ++b)
        for (std::size_t l = 0; l < J * lanes; l += kWidth<T>)
            store(scratch.points + b * S * lanes + l, comparable<T>(load(at + b * width * lanes + l)));
    for (std::size_t k = 0; k < count; ++k)
        for (int f = 0; f < J; ++f) scratch.x[k * S + f] = rows[k][j + f];
    for (std::size_t i = 0; i < padded(count * S); i += kWidth<T>)
        store(scratch.x + i, comparable<T>(load(scratch.x + i)));
    sign_tiles<Shared, K, S, J>(weights, rows, count, n_blocks, scratch, j, at + J * lanes, width * lanes, out);
}

template <bool Shared, int K, int S, class T>
void sum_signs(const T* const* weights, const T* const* rows, std::size_t count, const T* blocks, std::size_t n_blocks,
               std::size_t width, T* scratch, T* const* out) {
    const SignScratch<S, T> in(scratch, n_blocks, count);
    std::size_t j = 0;
    const auto stripe = [&]<int J>() {
        sign_stripe<Shared, K, S, J>(weights, rows, count, blocks, n_blocks, width, j, in, out);
    };
    for (; j + S <= width; j += S) stripe.template operator()<S>();
    if constexpr (S > 3)
        if (width - j == 3) stripe.template operator()<3>();
    if constexpr (S > 2)
        if (width - j == 2) stripe.template operator()<2>();
    if (width - j == 1) stripe.template operator()<1>();
}

template <class T>
void weighted_signs(const T* const* weights, const T* const* rows, std::size_t count, bool shared, const T* blocks,
                    std::size_t n_blocks, std::size_t width, T* scratch, T* const* out) {
    constexpr bool wide = kPerBlock == 1;  // the sums of a block fit into one register
    if (shared)
        sum_signs<true, wide ? 5 : 2, wide ? 4 : 2>(weights, rows, count, blocks, n_blocks, width, scratch, out);
    else sum_signs<false, wide ? 2 : 1, 4>(weights, rows, count, blocks, n_blocks, width, scratch, out);
}

}  // namespace gristmill::GRISTMILL_ISA
