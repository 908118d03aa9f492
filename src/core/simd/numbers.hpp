// Vector operations of the fleet code beyond simd/kernel_blocks.hpp: exp of non-positive numbers, widening, masks.
#pragma once

#include "core/simd/kernel_blocks.hpp"

namespace gristmill::GRISTMILL_ISA {

#if defined(__AVX512F__)
inline bool any_below(Vec<float> x, float low) { return _mm512_cmp_ps_mask(x, _mm512_set1_ps(low), _CMP_LT_OQ) != 0; }
inline bool any_below(Vec<double> x, double low) { return _mm512_cmp_pd_mask(x, _mm512_set1_pd(low), _CMP_LT_OQ) != 0; }
inline Vec<float> at_least0(Vec<float> x) { return _mm512_max_ps(x, _mm512_setzero_ps()); }
inline Vec<double> at_least0(Vec<double> x) { return _mm512_max_pd(x, _mm512_setzero_pd()); }
inline Vec<float> lesser(Vec<float> a, Vec<float> b) { return _mm512_min_ps(b, a); }
inline Vec<double> lesser(Vec<double> a, Vec<double> b) { return _mm512_min_pd(b, a); }
#elif defined(__AVX2__)
inline bool any_below(Vec<float> x, float low) {
    return _mm256_movemask_ps(_mm256_cmp_ps(x, _mm256_set1_ps(low), _CMP_LT_OQ)) != 0;
}
inline bool any_below(Vec<double> x, double low) {
    return _mm256_movemask_pd(_mm256_cmp_pd(x, _mm256_set1_pd(low), _CMP_LT_OQ)) != 0;
}
inline Vec<float> at_least0(Vec<float> x) { return _mm256_max_ps(x, _mm256_setzero_ps()); }
inline Vec<double> at_least0(Vec<double> x) { return _mm256_max_pd(x, _mm256_setzero_pd()); }
inline Vec<float> lesser(Vec<float> a, Vec<float> b) { return _mm256_min_ps(b, a); }
inline Vec<double> lesser(Vec<double> a, Vec<double> b) { return _mm256_min_pd(b, a); }
#else
template <class V>
inline V at_least0(V x) {
    return max0(x);
}
template <class V>
inline V lesser(V a, V b) {
    return b < a ? b : a;
}  // std::min
#endif

// exp of N vectors of non-positive numbers, with the bits of exp<T>. If no result is near the smallest normal number,
// the power of two is added to the exponent bits directly. The N vectors advance together, because each has a long
// dependency chain and the processor overlaps only nearby instructions.
#if defined(__AVX512F__) || defined(__AVX2__)
template <std::size_t N, class T>
[[gnu::always_inline]] inline void exp_nonpositive(Vec<T>* x) {
    using E = ExpTraits<T>;
    typedef typename E::Bits Ints __attribute__((vector_size(kBytes)));
    constexpr T near = E::low + T(2);
    constexpr int terms = sizeof(E::series) / sizeof(E::series[0]);
    const auto each = [](auto f) __attribute__((always_inline)) {
#pragma GCC unroll 8
        for (std::size_t i = 0; i < N; ++i) f(i);
    };
    Vec<T> least = x[0], shifted[N], rest[N], sum[N];
    each([&](std::size_t i) { least = lesser(least, x[i]); });
    if (__builtin_expect(any_below(least, near), 0)) return each([&](std::size_t i) { x[i] = exp<T>(x[i]); });
    each([&](std::size_t i) { shifted[i] = fma(x[i], broadcast(E::log2e), broadcast(E::shift)); });
    each([&](std::size_t i) { sum[i] = shifted[i] - E::shift; });
    each([&](std::size_t i) { rest[i] = fma(sum[i], broadcast(-E::ln2_high), x[i]); });
    each([&](std::size_t i) { rest[i] = fma(sum[i], broadcast(-E::ln2_low), rest[i]); });
    each([&](std::size_t i) { sum[i] = broadcast(E::series[0]); });
#pragma GCC unroll 16
    for (int t = 1; t < terms; ++t)
        each([&](std::size_t i) { sum[i] = fma(sum[i], rest[i], broadcast(E::series[t])); });
    each([&](std::size_t i) { x[i] = (Vec<T>)((Ints)sum[i] + ((Ints)shifted[i] << E::mantissa)); });
}
#else
template <std::size_t N, class T>
inline void exp_nonpositive(Vec<T>* x) {
    for (std::size_t i = 0; i < N; ++i) x[i] = exp<T>(x[i]);
}
#endif

inline Vec<double> wide(const double* p) { return load(p); }
inline Vec<double> wide(const float* p) {
#if defined(__AVX512F__)
    return _mm512_cvtps_pd(_mm256_loadu_ps(p));  // the compiler would use two half-width conversions
#elif defined(__AVX2__)
    return _mm256_cvtps_pd(_mm_loadu_ps(p));
#else
    typedef float Half __attribute__((vector_size(kBytes / 2), aligned(4), may_alias));
    return __builtin_convertvector(*reinterpret_cast<const Half*>(p), Vec<double>);
#endif
}

// The sum of sixteen numbers by the tree of score_dot: (l, l+8), (l, l+4), (l, l+2), (l, l+1).
inline double tree(const Vec<double>* sums) {
#if defined(__AVX512F__)
    const __m512d eight = sums[0] + sums[1];
    const __m256d four = _mm512_castpd512_pd256(eight) + _mm512_extractf64x4_pd(eight, 1);
    const __m128d two = _mm256_castpd256_pd128(four) + _mm256_extractf128_pd(four, 1);
    return two[0] + two[1];
#else
    alignas(64) double sum[kPad];
    for (std::size_t k = 0; k < kPad; k += kWidth<double>) store(sum + k, sums[k / kWidth<double>]);
    for (std::size_t half = kPad / 2; half > 0; half /= 2)
        for (std::size_t k = 0; k < half; ++k) sum[k] += sum[k + half];
    return sum[0];
#endif
}

typedef long long Mask __attribute__((vector_size(kBytes), aligned(8), may_alias));
typedef std::uint32_t Counts __attribute__((vector_size(kBytes / 2), aligned(4), may_alias));
using Real = Vec<double>;

inline Real reals(Counts counts) { return __builtin_convertvector(counts, Real); }

// Loads the first `count` numbers of a list, with 0 behind them. Other bytes must not be loaded as numbers: subnormal
// values slow arithmetic down a hundredfold.
#if defined(__AVX512F__)
inline Vec<double> load_first(const double* list, std::size_t count) {
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>(count < 8 ? (1u << count) - 1 : 0xffu), list);
}
inline Vec<float> load_first(const float* list, std::size_t count) {
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>(count < 16 ? (1u << count) - 1 : 0xffffu), list);
}
#elif defined(__AVX2__)
// All ones, then all zeros: a mask of any number of leading ones is one load.
template <class I>
struct LeadingOnes {
    I at[2 * kBytes / sizeof(I)] = {};
    constexpr LeadingOnes() {
        for (std::size_t k = 0; k < kBytes / sizeof(I); ++k) at[k] = -1;
    }
    __m256i first(std::size_t count) const {
        constexpr std::size_t all = kBytes / sizeof(I);
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + all - (count < all ? count : all)));
    }
};
inline constexpr LeadingOnes<std::int32_t> kIntMasks;
inline constexpr LeadingOnes<std::int64_t> kLongMasks;
inline Vec<float> load_first(const float* list, std::size_t count) {
    return _mm256_maskload_ps(list, kIntMasks.first(count));
}
inline Vec<double> load_first(const double* list, std::size_t count) {
    return _mm256_maskload_pd(list, kLongMasks.first(count));
}
#else
template <class T>
inline Vec<T> load_first(const T* list, std::size_t count) {
    if (count >= kWidth<T>) return load(list);
    Vec<T> found = {};
    for (std::size_t k = 0; k < count; ++k) found[k] = list[k];
    return found;
}
#endif

inline Real root(Real v) {
    for (std::size_t i = 0; i < kWidth<double>; ++i) v[i] = __builtin_sqrt(v[i]);
    return v;
}
#if defined(__AVX512F__)
inline Real greater(Real a, Real b) { return _mm512_max_pd(b, a); }
inline Real magnitude(Real v) { return _mm512_abs_pd(v); }
#elif defined(__AVX2__)
inline Real greater(Real a, Real b) { return _mm256_max_pd(b, a); }
inline Real magnitude(Real v) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), v); }
#else
inline Real greater(Real a, Real b) { return a < b ? b : a; }
inline Real magnitude(Real v) { return abs(v); }
#endif

// A set of lanes: the result of a comparison. AVX-512 has mask registers for it.
#if defined(__AVX512F__)
using Flags = __mmask8;
inline Flags below(Real a, Real b) { return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ); }
inline Flags at_most(Real a, Real b) { return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ); }
inline Flags at_most(Mask a, Mask b) { return _mm512_cmple_epi64_mask((__m512i)a, (__m512i)b); }
inline Flags differs(Real a, Real b) { return _mm512_cmp_pd_mask(a, b, _CMP_NEQ_UQ); }
inline Real choice(Flags which, Real yes, Real no) { return _mm512_mask_blend_pd(which, no, yes); }
inline Flags flags_of(std::uint32_t found) { return static_cast<Flags>(found); }
inline std::uint32_t bits(Flags which) { return which; }
inline Flags both(Flags a, Flags b) { return _kand_mask8(a, b); }
#else
using Flags = Mask;
inline Flags below(Real a, Real b) { return a < b; }
inline Flags at_most(Real a, Real b) { return a <= b; }
inline Flags at_most(Mask a, Mask b) { return a <= b; }
inline Flags differs(Real a, Real b) { return a != b; }
inline Real choice(Flags which, Real yes, Real no) { return which ? yes : no; }
inline Flags flags_of(std::uint32_t found) {
    Mask bit;
    for (std::size_t k = 0; k < kWidth<double>; ++k) bit[k] = 1ll << k;
    return (bit & (Mask{} + static_cast<long long>(found))) != 0;
}
inline std::uint32_t bits(Flags which) {
#if defined(__AVX2__)
    return static_cast<std::uint32_t>(_mm256_movemask_pd((__m256d)which));
#else
    std::uint32_t found = 0;
    for (std::size_t k = 0; k < kWidth<double>; ++k) found |= static_cast<std::uint32_t>(which[k] & 1) << k;
    return found;
#endif
}
inline Flags both(Flags a, Flags b) { return a & b; }
#endif
inline Flags is_finite(Real v) { return at_most(magnitude(v), broadcast(__DBL_MAX__)); }

}  // namespace gristmill::GRISTMILL_ISA
