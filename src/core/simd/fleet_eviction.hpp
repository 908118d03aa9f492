// The point to evict in each lane of a block of learners: vector implementations of DropSmallest and DropOldest.
#pragma once

#include "core/simd/fleet_dispatch.hpp"
#include "core/simd/numbers.hpp"

namespace gristmill::GRISTMILL_ISA {

// Per lane: the slot of the smallest |coefficient|, an upper bound of it, and whether another slot is so close that
// rounding may make them equal in the true scale.
template <class T>
struct SmallestCoef {
    static constexpr std::size_t parts = kLanes<T> / kWidth<double>;
    alignas(64) std::uint32_t slot[kLanes<T>];
    std::uint32_t tied = 0;  // bit mask of lanes
    Real high[parts];
};

struct SlotNumbers {
    long long at[kMostLaneSlots];
    constexpr SlotNumbers() : at() {
        for (std::size_t s = 0; s < kMostLaneSlots; ++s) at[s] = static_cast<long long>(s);
    }
};
inline constexpr SlotNumbers kSlotNumbers;

// |coef| with the slot number in its lowest bits.
inline Real tag_slot(Real coef, const long long* slot) {
    constexpr long long kept = 0x7fffffffffffffffll & ~static_cast<long long>(kMostLaneSlots - 1);
#if defined(__AVX512F__)
    return (Real)_mm512_ternarylogic_epi64((__m512i)coef, _mm512_set1_epi64(kept), _mm512_set1_epi64(*slot), 0xEA);
#else
    return (Real)(((Mask)coef & (Mask{} + kept)) | (Mask{} + *slot));
#endif
}

// The slot number is in the lowest bits, so that one comparison carries both.
template <class T>
inline void smallest(const double* coef, std::size_t slots, SmallestCoef<T>& out) {
    // even and odd slots: two dependency chains
    constexpr std::size_t lanes = kLanes<T>, parts = SmallestCoef<T>::parts, chains = 2;
    constexpr long long number = kMostLaneSlots - 1;
    Real least[chains][parts], next[chains][parts];
    for (std::size_t c = 0; c < chains; ++c)
        for (std::size_t p = 0; p < parts; ++p) least[c][p] = next[c][p] = broadcast(__builtin_inf());
    const auto take = [&](std::size_t c, std::size_t s) __attribute__((always_inline)) {
        for (std::size_t p = 0; p < parts; ++p) {
            const Real here = tag_slot(load(coef + s * lanes + p * kWidth<double>), &kSlotNumbers.at[s]);
            next[c][p] = lesser(next[c][p], greater(least[c][p], here));
            least[c][p] = lesser(least[c][p], here);
        }
    };
    std::size_t s = 0;
    for (; s + chains <= slots; s += chains) {
        take(0, s);
        take(1, s + 1);
    }
    if (s < slots) take(0, s);
    out.tied = 0;
    for (std::size_t p = 0; p < parts; ++p) {
        const Mask first = (Mask)lesser(least[0][p], least[1][p]);
        const Mask second = (Mask)lesser(greater(least[0][p], least[1][p]), lesser(next[0][p], next[1][p]));
        *reinterpret_cast<Counts*>(out.slot + p * kWidth<double>) = __builtin_convertvector(first & number, Counts);
        out.tied |= bits(at_most((second >> kLaneSlotBits) - (first >> kLaneSlotBits), Mask{} + 1))
                    << p * kWidth<double>;
        out.high[p] = (Real)(first | number);
    }
}

#if defined(__AVX512F__) || defined(__AVX2__)
// Vectors of the upper 32 bits of coefficients.
#if defined(__AVX512F__)
using Halves = __m512i;
inline Halves lesser(Halves a, Halves b) { return _mm512_min_epi32(a, b); }
inline Halves greater(Halves a, Halves b) { return _mm512_max_epi32(a, b); }
inline Halves halves(int x) { return _mm512_set1_epi32(x); }
// Lane order of the result: 0 1 8 9 2 3 10 11 and so on.
inline Halves upper(const double* coef) {
    return (Halves)_mm512_shuffle_ps((__m512)load(coef), (__m512)load(coef + 8), 0xDD);
}
inline Halves in_order(Halves v) {
    return _mm512_permutexvar_epi32(_mm512_set_epi32(15, 14, 11, 10, 7, 6, 3, 2, 13, 12, 9, 8, 5, 4, 1, 0), v);
}
inline Halves tag_slot(Halves upper, Halves kept, Halves slot) {
    return _mm512_ternarylogic_epi32(upper, kept, slot, 0xEA);
}
inline std::uint32_t within_one(Halves a, Halves b) {
    return _mm512_cmple_epi32_mask(
        _mm512_sub_epi32(_mm512_srai_epi32(b, kLaneSlotBits), _mm512_srai_epi32(a, kLaneSlotBits)), halves(1));
}
inline Real as_upper(Halves v, int part) {
    return (Real)_mm512_slli_epi64(
        _mm512_cvtepi32_epi64(part ? _mm512_extracti64x4_epi64(v, 1) : _mm512_castsi512_si256(v)), 32);
}
#else
using Halves = __m256i;
inline Halves lesser(Halves a, Halves b) { return _mm256_min_epi32(a, b); }
inline Halves greater(Halves a, Halves b) { return _mm256_max_epi32(a, b); }
inline Halves halves(int x) { return _mm256_set1_epi32(x); }
// Lane order of the result: 0 1 4 5 2 3 6 7.
inline Halves upper(const double* coef) {
    return (Halves)_mm256_shuffle_ps((__m256)load(coef), (__m256)load(coef + 4), 0xDD);
}
inline Halves in_order(Halves v) { return _mm256_permute4x64_epi64(v, 0xD8); }
inline Halves tag_slot(Halves upper, Halves kept, Halves slot) {
    return _mm256_or_si256(_mm256_and_si256(upper, kept), slot);
}
inline std::uint32_t within_one(Halves a, Halves b) {
    const Halves apart = _mm256_sub_epi32(_mm256_srai_epi32(b, kLaneSlotBits), _mm256_srai_epi32(a, kLaneSlotBits));
    return static_cast<std::uint32_t>(_mm256_movemask_ps((__m256)_mm256_cmpgt_epi32(halves(2), apart)));
}
inline Real as_upper(Halves v, int part) {
    return (Real)_mm256_slli_epi64(
        _mm256_cvtepi32_epi64(part ? _mm256_extracti128_si256(v, 1) : _mm256_castsi256_si128(v)), 32);
}
#endif

// The same by the upper 32 bits of the coefficients: twice as many lanes per vector, at the price of occasional false
// ties.
inline void smallest_by_upper_half(const double* coef, std::size_t slots, SmallestCoef<float>& out) {
    constexpr std::size_t lanes = kLanes<float>, wide = kWidth<float>, groups = lanes / wide, chains = 2;
    constexpr int number = kMostLaneSlots - 1;
    Halves least[chains][groups], next[chains][groups];
    for (std::size_t c = 0; c < chains; ++c)
        for (std::size_t g = 0; g < groups; ++g) least[c][g] = next[c][g] = halves(0x7fffffff);
    const auto take = [&](std::size_t c, std::size_t s) __attribute__((always_inline)) {
        const Halves slot = halves(reinterpret_cast<const std::int32_t*>(kSlotNumbers.at + s)[0]);
        for (std::size_t g = 0; g < groups; ++g) {
            const Halves here = tag_slot(upper(coef + s * lanes + g * wide), halves(0x7fffffff & ~number), slot);
            next[c][g] = lesser(next[c][g], greater(least[c][g], here));
            least[c][g] = lesser(least[c][g], here);
        }
    };
    std::size_t s = 0;
    for (; s + chains <= slots; s += chains) {
        take(0, s);
        take(1, s + 1);
    }
    if (s < slots) take(0, s);
    out.tied = 0;
    for (std::size_t g = 0; g < groups; ++g) {
        const Halves first = in_order(lesser(least[0][g], least[1][g]));
        const Halves second = in_order(lesser(greater(least[0][g], least[1][g]), lesser(next[0][g], next[1][g])));
        *reinterpret_cast<Halves*>(out.slot + g * wide) = first & halves(number);
        out.tied |= within_one(first, second) << g * wide;
        // An upper bound for any lower half.
        typedef std::int32_t Ints __attribute__((vector_size(kBytes), may_alias));
        const Halves above = (Halves)((Ints)(first | halves(number)) + 1);
        for (int part = 0; part < 2; ++part) out.high[2 * g + static_cast<std::size_t>(part)] = as_upper(above, part);
    }
}
#endif

// For the lanes in the bit mask `which`; the result of other lanes is unspecified.
template <class T>
inline void find_smallest(const double* coef, std::size_t slots, [[maybe_unused]] std::uint32_t which,
                          SmallestCoef<T>& out) {
#if defined(__AVX512F__) || defined(__AVX2__)
    if constexpr (sizeof(T) == 4) {
        smallest_by_upper_half(coef, slots, out);
        if (__builtin_expect((out.tied & which) == 0, 1)) return;
    }
#endif
    smallest<T>(coef, slots, out);
}

// Over several outputs and in the true scale: the slot of the smallest point, and whether another slot ties with it.
template <class T>
void fleet_smallest(const double* coef, std::size_t outputs, std::size_t stride, std::size_t slots, const double* scale,
                    std::int64_t* slot, std::int64_t* tied) {
    constexpr std::size_t lanes = kLanes<T>;
    typedef long long Ints __attribute__((vector_size(kBytes), aligned(8), may_alias));
    for (std::size_t l = 0; l < lanes; l += kWidth<double>) {
        const Vec<double> size = abs(load(scale + l));
        Vec<double> least = broadcast(__builtin_inf());
        Ints found = {}, same = {};
        for (std::size_t s = 0; s < slots; ++s) {
            Vec<double> largest = abs(load(coef + s * lanes + l));
            for (std::size_t o = 1; o < outputs; ++o) {
                const Vec<double> here = abs(load(coef + o * stride + s * lanes + l));
                largest = here > largest ? here : largest;
            }
            const Vec<double> here = size * largest;
            const Ints less = here < least, equal = here == least;
            same = less ? Ints{} : (same | equal);
            found = less ? Ints{} + static_cast<long long>(s) : found;
            least = less ? here : least;
        }
        *reinterpret_cast<Ints*>(slot + l) = found;
        *reinterpret_cast<Ints*>(tied + l) = same;
    }
}

// The slot of the smallest id, lane by lane.
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
