// One event against the points of one record: lanes run across its slots.
#pragma once

#include "core/simd_numbers.hpp"

namespace gristmill::GRISTMILL_ISA {

// Sums over features of each slot, and 0 behind the last.
template <class Term, class T>
void record_sums(const T* x, const T* points, std::size_t stride, std::size_t slots, std::size_t width, T* out) {
    for (std::size_t s = 0; s < slots; s += kWidth<T>) {
        Vec<T> sum = {};
        for (std::size_t j = 0; j < width; ++j) sum = Term::add(sum, splat(x[j]), some(points + j * stride + s, slots - s));
        store(out + s, sum);
    }
}

template <class T>
void record_norms(const T* points, std::size_t stride, std::size_t slots, std::size_t width, T* out) {
    for (std::size_t s = 0; s < slots; s += kWidth<T>) {
        Vec<T> sum = {};
        for (std::size_t j = 0; j < width; ++j) {
            const Vec<T> y = some(points + j * stride + s, slots - s);
            sum = fma(y, y, sum);
        }
        store(out + s, sum);
    }
}

// Kernel values of the slots from s on; behind the last they mean nothing, and are finite.
template <class T>
inline Vec<T> record_values(T gamma, const T* x, T x_norm2, const T* points, std::size_t stride, std::size_t s, std::size_t slots,
                            std::size_t width) {
    Vec<T> dot = {}, norm2 = {};
    for (std::size_t j = 0; j < width; ++j) {
        const Vec<T> y = some(points + j * stride + s, slots - s);
        dot = fma(splat(x[j]), y, dot);
        norm2 = fma(y, y, norm2);
    }
    return exp_below<T>(-gamma * at_least0(fma(splat(T(-2)), dot, splat(x_norm2) + norm2)));
}

template <class T>
double record_gaussian(T gamma, const T* x, T x_norm2, const T* points, std::size_t stride, std::size_t slots,
                       std::size_t width, const double* coef) {
    constexpr std::size_t wide_lanes = kWidth<double>, few = kWidth<T> / wide_lanes;
    Real sums[kPad / wide_lanes] = {};
    alignas(64) T values[kWidth<T>];
    for (std::size_t s = 0; s < slots; s += kWidth<T>) {
        store(values, record_values(gamma, x, x_norm2, points, stride, s, slots, width));
        for (std::size_t h = 0; h < few && s + h * wide_lanes < slots; ++h) {
            const std::size_t first = s + h * wide_lanes;
            Real& sum = sums[first / wide_lanes % (kPad / wide_lanes)];
            sum = fma(some(coef + first, slots - first), wide(values + h * wide_lanes), sum);
        }
    }
    return tree(sums);
}

template <class T>
std::size_t record_oldest(const std::uint32_t* ids, std::size_t slots) {
#if defined(__AVX512F__)
    __m512i least = _mm512_set1_epi32(-1);
    for (std::size_t s = 0; s < slots; s += 16) {
        const auto there = static_cast<__mmask16>(slots - s >= 16 ? 0xffff : (1u << (slots - s)) - 1);
        least = _mm512_min_epu32(least, _mm512_mask_loadu_epi32(_mm512_set1_epi32(-1), there, ids + s));
    }
    const __m512i first = _mm512_set1_epi32(static_cast<int>(_mm512_reduce_min_epu32(least)));
    for (std::size_t s = 0; s < slots; s += 16) {
        const auto there = static_cast<__mmask16>(slots - s >= 16 ? 0xffff : (1u << (slots - s)) - 1);
        const __mmask16 found = _mm512_mask_cmpeq_epi32_mask(there, _mm512_maskz_loadu_epi32(there, ids + s), first);
        if (found) return s + static_cast<std::size_t>(__builtin_ctz(found));
    }
    return 0;
#else
    std::size_t found = 0;
    for (std::size_t s = 1; s < slots; ++s)
        if (ids[s] < ids[found]) found = s;
    return found;
#endif
}

}  // namespace gristmill::GRISTMILL_ISA
