// Which stored point leaves, in each lane of a block of learners: the vector twins of DropSmallest and DropOldest.
#pragma once

#include "core/isa_fleet.hpp"
#include "core/simd_numbers.hpp"

namespace gristmill::GRISTMILL_ISA {

// Of each lane: the slot of its least coefficient, a bound above the size of that, and whether another is so near that rounding
// may make them the same in the true scale.
template <class T>
struct Weakest {
    static constexpr std::size_t parts = kLanes<T> / kWidth<double>;
    alignas(64) std::uint32_t slot[kLanes<T>];
    std::uint32_t tied = 0;  // a bit a lane
    Real high[parts];
};

struct SlotNumbers {
    long long at[kMostTogether];
    constexpr SlotNumbers() : at() {
        for (std::size_t s = 0; s < kMostTogether; ++s) at[s] = static_cast<long long>(s);
    }
};
inline constexpr SlotNumbers kSlotNumbers;

// The size of a coefficient with the number of its slot in the place of its lowest bits.
inline Real marked(Real coef, const long long* slot) {
    constexpr long long kept = 0x7fffffffffffffffll & ~static_cast<long long>(kMostTogether - 1);
#if defined(__AVX512F__)
    return (Real)_mm512_ternarylogic_epi64((__m512i)coef, _mm512_set1_epi64(kept), _mm512_set1_epi64(*slot), 0xEA);
#else
    return (Real)(((Mask)coef & (Mask{} + kept)) | (Mask{} + *slot));
#endif
}

// The number of the slot travels in the lowest bits, so that one comparison carries both.
template <class T>
inline void weakest(const double* coef, std::size_t slots, Weakest<T>& out) {
    constexpr std::size_t lanes = kLanes<T>, parts = Weakest<T>::parts, chains = 2;  // even and odd slots: one chain waits for itself
    constexpr long long number = kMostTogether - 1;
    Real least[chains][parts], next[chains][parts];
    for (std::size_t c = 0; c < chains; ++c)
        for (std::size_t p = 0; p < parts; ++p) least[c][p] = next[c][p] = splat(__builtin_inf());
    const auto take = [&](std::size_t c, std::size_t s) __attribute__((always_inline)) {
        for (std::size_t p = 0; p < parts; ++p) {
            const Real here = marked(load(coef + s * lanes + p * kWidth<double>), &kSlotNumbers.at[s]);
            next[c][p] = lesser(next[c][p], greater(least[c][p], here));
            least[c][p] = lesser(least[c][p], here);
        }
    };
    std::size_t s = 0;
    for (; s + chains <= slots; s += chains) take(0, s), take(1, s + 1);
    if (s < slots) take(0, s);
    out.tied = 0;
    for (std::size_t p = 0; p < parts; ++p) {
        const Mask first = (Mask)lesser(least[0][p], least[1][p]);
        const Mask second = (Mask)lesser(greater(least[0][p], least[1][p]), lesser(next[0][p], next[1][p]));
        *reinterpret_cast<Counts*>(out.slot + p * kWidth<double>) = __builtin_convertvector(first & number, Counts);
        out.tied |= bits(at_most((second >> kTogetherBits) - (first >> kTogetherBits), Mask{} + 1)) << p * kWidth<double>;
        out.high[p] = (Real)(first | number);
    }
}

#if defined(__AVX512F__)
// The same by the upper halves of the coefficients, all lanes in one vector: half the work, and now and then a tie that is none.
inline void weakest_by_halves(const double* coef, std::size_t slots, Weakest<float>& out) {
    constexpr std::size_t lanes = kLanes<float>, chains = 2;
    constexpr int number = kMostTogether - 1;
    __m512i least[chains], next[chains];
    for (std::size_t c = 0; c < chains; ++c) least[c] = next[c] = _mm512_set1_epi32(0x7fffffff);
    const auto take = [&](std::size_t c, std::size_t s) __attribute__((always_inline)) {
        const __m512 upper = _mm512_shuffle_ps((__m512)load(coef + s * lanes), (__m512)load(coef + s * lanes + lanes / 2), 0xDD);
        const __m512i slot = _mm512_set1_epi32(reinterpret_cast<const std::int32_t*>(kSlotNumbers.at + s)[0]);
        const __m512i here = _mm512_ternarylogic_epi32((__m512i)upper, _mm512_set1_epi32(0x7fffffff & ~number), slot, 0xEA);
        next[c] = _mm512_min_epi32(next[c], _mm512_max_epi32(least[c], here));
        least[c] = _mm512_min_epi32(least[c], here);
    };
    std::size_t s = 0;
    for (; s + chains <= slots; s += chains) take(0, s), take(1, s + 1);
    if (s < slots) take(0, s);
    // The shuffle left the lanes as 0 1 8 9 2 3 10 11 and so on.
    const __m512i order = _mm512_set_epi32(15, 14, 11, 10, 7, 6, 3, 2, 13, 12, 9, 8, 5, 4, 1, 0);
    const __m512i first = _mm512_permutexvar_epi32(order, _mm512_min_epi32(least[0], least[1]));
    const __m512i second = _mm512_permutexvar_epi32(order, _mm512_min_epi32(_mm512_max_epi32(least[0], least[1]), _mm512_min_epi32(next[0], next[1])));
    _mm512_store_si512(out.slot, _mm512_and_epi32(first, _mm512_set1_epi32(number)));
    const __m512i apart = _mm512_sub_epi32(_mm512_srai_epi32(second, kTogetherBits), _mm512_srai_epi32(first, kTogetherBits));
    out.tied = _mm512_cmple_epi32_mask(apart, _mm512_set1_epi32(1));
    // Above whatever the lower half may be.
    const __m512i above = _mm512_add_epi32(_mm512_or_epi32(first, _mm512_set1_epi32(number)), _mm512_set1_epi32(1));
    out.high[0] = (Real)_mm512_slli_epi64(_mm512_cvtepi32_epi64(_mm512_castsi512_si256(above)), 32);
    out.high[1] = (Real)_mm512_slli_epi64(_mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(above, 1)), 32);
}
#endif

// For the lanes of `which`, a bit each; of the others nothing is said.
template <class T>
inline void find_weakest(const double* coef, std::size_t slots, [[maybe_unused]] std::uint32_t which, Weakest<T>& out) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) {
        weakest_by_halves(coef, slots, out);
        if (__builtin_expect((out.tied & which) == 0, 1)) return;
    }
#endif
    weakest<T>(coef, slots, out);
}

// The slot of the least number, lane by lane.
template <class T>
inline void find_oldest(const std::uint32_t* ids, std::size_t slots, std::uint32_t* slot) {
    constexpr std::size_t lanes = kLanes<T>;
    for (std::size_t l = 0; l < lanes; l += kWidth<double>) {
        Counts found = {}, first = Counts{} - 1;
        for (std::size_t s = 0; s < slots; ++s) {
            const Counts here = *reinterpret_cast<const Counts*>(ids + s * lanes + l);
            const auto less = here < first;
            found = less ? Counts{} + static_cast<std::uint32_t>(s) : found;
            first = less ? here : first;
        }
        *reinterpret_cast<Counts*>(slot + l) = found;
    }
}

}  // namespace gristmill::GRISTMILL_ISA
