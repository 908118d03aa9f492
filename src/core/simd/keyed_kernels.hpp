// One event against the points of one record of a keyed fleet: lanes run across its slots.
#pragma once

#include <utility>

#include "core/simd/numbers.hpp"

namespace gristmill::GRISTMILL_ISA {

// Sums over features of each slot, with 0 behind the last slot.
template <class Term, class T>
void record_sums(const T* x, const T* points, std::size_t stride, std::size_t slots, std::size_t width, T* out) {
    for (std::size_t s = 0; s < slots; s += kWidth<T>) {
        Vec<T> sum = {};
        for (std::size_t j = 0; j < width; ++j)
            sum = Term::add(sum, broadcast(x[j]), load_first(points + j * stride + s, slots - s));
        store(out + s, sum);
    }
}

template <class T>
void record_norms(const T* points, std::size_t stride, std::size_t slots, std::size_t width, T* out) {
    for (std::size_t s = 0; s < slots; s += kWidth<T>) {
        Vec<T> sum = {};
        for (std::size_t j = 0; j < width; ++j) {
            const Vec<T> y = load_first(points + j * stride + s, slots - s);
            sum = fma(y, y, sum);
        }
        store(out + s, sum);
    }
}

// Slots processed at a time: their values fit into registers, and a slot's running sum follows from its position.
inline constexpr std::size_t kRecordSlots = 2 * kPad;

// Adds coef_s exp(-gamma ||x - y_s||^2) of N vectors of slots to the running sums; the first slot belongs to sum 0.
// Values behind the last slot are arbitrary but finite, and their coefficients are 0.
template <std::size_t N, class T>
[[gnu::always_inline]] inline void record_terms(T gamma, const T* x, T x_norm2, const T* points, std::size_t stride,
                                                std::size_t slots, std::size_t width, const double* coef, Real* sums) {
    constexpr std::size_t wide_lanes = kWidth<double>, few = kWidth<T> / wide_lanes;
    const auto left = [&](std::size_t first) { return slots > first ? slots - first : 0; };
    Vec<T> value[N] = {}, norm2[N] = {};
    for (std::size_t j = 0; j < width; ++j) {
        const Vec<T> mine = broadcast(x[j]);
#pragma GCC unroll 8
        for (std::size_t i = 0; i < N; ++i) {
            const Vec<T> y = i + 1 < N ? load(points + j * stride + i * kWidth<T>)
                                       : load_first(points + j * stride + i * kWidth<T>, left(i * kWidth<T>));
            value[i] = fma(mine, y, value[i]);
            norm2[i] = fma(y, y, norm2[i]);
        }
    }
#pragma GCC unroll 8
    for (std::size_t i = 0; i < N; ++i)
        value[i] = -gamma * at_least0(fma(broadcast(T(-2)), value[i], broadcast(x_norm2) + norm2[i]));
    exp_nonpositive<N, T>(value);
    alignas(64) T values[N * kWidth<T>];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < N; ++i) store(values + i * kWidth<T>, value[i]);
#pragma GCC unroll 16
    for (std::size_t h = 0; h < N * few; ++h) {
        const std::size_t first = h * wide_lanes;
        const Real weight = h + few < N * few ? load(coef + first) : load_first(coef + first, left(first));
        sums[h % (kPad / wide_lanes)] = fma(weight, wide(values + first), sums[h % (kPad / wide_lanes)]);
    }
}

template <class T>
double record_gaussian(T gamma, const T* x, T* x_norm2, const T* points, std::size_t stride, std::size_t slots,
                       std::size_t width, const double* coef) {
    T own = 0;
    for (std::size_t j = 0; j < width; ++j) own = fma1(x[j], x[j], own);
    *x_norm2 = own;
    constexpr std::size_t most = kRecordSlots / kWidth<T>;
    Real sums[kPad / kWidth<double>] = {};
    const auto run = [&]<std::size_t N>() __attribute__((always_inline)) {
        record_terms<N>(gamma, x, own, points, stride, slots, width, coef, sums);
    };
    for (; slots >= kRecordSlots; slots -= kRecordSlots, points += kRecordSlots, coef += kRecordSlots)
        run.template operator()<most>();
    // The remaining slots, with just as many vectors as they need.
    [&]<std::size_t... N>(std::index_sequence<N...>) __attribute__((always_inline)) {
        const std::size_t vectors = (slots + kWidth<T> - 1) / kWidth<T>;
        ((vectors == N + 1 ? run.template operator()<N + 1>() : void()), ...);
    }(std::make_index_sequence<most>());
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
