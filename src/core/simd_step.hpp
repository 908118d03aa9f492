// One event in each lane of a block of learners, learned at once: the vector twins of rules and budgets.
#pragma once

#include "core/isa_fleet.hpp"
#include "core/simd_numbers.hpp"

namespace gristmill::GRISTMILL_ISA {

// What a rule proposes for a few lanes; see rules.hpp, whose operations these are, in their order.
struct Proposal {
    Real coefficient, shrink, width, intercept;
};

inline Proposal propose(const LaneSettings& s, Real score, Real label, Real weight, Real self, Real width, Real step) {
    const Real zero = {}, one = splat(1.0);
    Proposal out{zero, one, width, zero};
    switch (s.rule) {
        case LaneRule::implicit_hinge: {
            const Real cap = splat(s.cap) * weight, kept = s.keep * score;
            const Real excess = width - label * kept, wanted = s.unit ? excess : excess / self;
            const Real size = choice(wanted < zero, zero, choice(cap < wanted, cap, wanted));
            out.coefficient = choice(self > zero, label * size, zero);
            out.shrink = splat(s.keep);
            break;
        }
        case LaneRule::sgd_hinge:
        case LaneRule::sgd_squared: {
            const Real rate = s.by_root ? s.rate / root(step) : splat(s.rate);
            const Real pace = rate * weight, agreement = label * score;
            const Mask beyond = s.strict ? Mask(agreement < width) : Mask(agreement <= width);
            out.coefficient = pace * (s.rule == LaneRule::sgd_squared ? label - score : choice(beyond, label, zero));
            if (s.adapts) out.width = width + pace * (s.nu - choice(beyond, one, zero));
            out.shrink = 1.0 - rate * s.reg;
            if (s.intercept) out.intercept = out.coefficient;
            break;
        }
        case LaneRule::passive_aggressive: {
            const Real error = label - score;
            const Real loss = s.regression ? abs(error) - s.epsilon : 1.0 - label * score;
            const Real sign = s.regression ? choice(error < zero, -one, one) : label;
            const Real limit = s.cap * weight;
            const Real extent = s.variant == 2 ? self + 1.0 / (2.0 * limit) : self;
            const Real full = s.unit && s.variant != 2 ? loss : loss / extent;
            const Real size = s.variant == 1 ? lesser(limit, full) : full;
            out.coefficient = choice((loss > zero) & (self >= zero) & (extent > zero), sign * size, zero);
            break;
        }
        default: out.coefficient = choice(label * score <= zero, label * weight, zero);  // the Perceptron
    }
    return out;
}

// The size of a coefficient with the number of its slot in the place of its lowest bits.
inline Real marked(Real coef, const long long* slot) {
    constexpr long long kept = 0x7fffffffffffffffll & ~static_cast<long long>(kMostTogether - 1);
#if defined(__AVX512F__)
    return (Real)_mm512_ternarylogic_epi64((__m512i)coef, _mm512_set1_epi64(kept), _mm512_set1_epi64(*slot), 0xEA);
#else
    return (Real)(((Mask)coef & (Mask{} + kept)) | (Mask{} + *slot));
#endif
}

struct SlotNumbers {
    long long at[kMostTogether];
    constexpr SlotNumbers() : at() {
        for (std::size_t s = 0; s < kMostTogether; ++s) at[s] = static_cast<long long>(s);
    }
};
inline constexpr SlotNumbers kSlotNumbers;

// Of each lane: the slot of its least coefficient, two bounds of the size of that, and whether another is so near that rounding
// may make them the same in the true scale.
template <class T>
struct Weakest {
    static constexpr std::size_t parts = kLanes<T> / kWidth<double>;
    Mask found[parts], tied[parts];
    Real low[parts], high[parts];
};

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
    for (std::size_t p = 0; p < parts; ++p) {
        const Mask first = (Mask)lesser(least[0][p], least[1][p]);
        const Mask second = (Mask)lesser(greater(least[0][p], least[1][p]), lesser(next[0][p], next[1][p]));
        out.found[p] = first & number;
        out.tied[p] = (second >> kTogetherBits) - (first >> kTogetherBits) <= 1;
        out.low[p] = (Real)(first & ~number);
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
    for (int p = 0; p < 2; ++p) {
        const auto part = [&](__m512i v) { return (Mask)_mm512_cvtepi32_epi64(p ? _mm512_extracti64x4_epi64(v, 1) : _mm512_castsi512_si256(v)); };
        const Mask one = part(first), two = part(second);
        out.found[p] = one & number;
        out.tied[p] = (two >> kTogetherBits) - (one >> kTogetherBits) <= 1;
        out.low[p] = (Real)((one & ~static_cast<long long>(number)) << 32);
        out.high[p] = (Real)((((one | number) + 1) << 32) - 1);
    }
}
#endif

// Whether some lanes of `which`, a bit each, have a tie.
template <class T>
inline bool any_tied(const Weakest<T>& weak, std::uint32_t which) {
    std::uint32_t tied = 0;
    for (std::size_t p = 0; p < Weakest<T>::parts; ++p) tied |= bits(weak.tied[p]) << p * kWidth<double>;
    return (tied & which) != 0;
}

// For the lanes of `which`; of the others nothing is said.
template <class T>
inline void find_weakest(const double* coef, std::size_t slots, [[maybe_unused]] std::uint32_t which, Weakest<T>& out) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) {
        weakest_by_halves(coef, slots, out);
        if (__builtin_expect(!any_tied(out, which), 1)) return;
    }
#endif
    weakest<T>(coef, slots, out);
}

template <class T>
inline Mask oldest(const std::uint32_t* ids, std::size_t slots) {
    constexpr std::size_t lanes = kLanes<T>;
    Mask found = {}, first = Mask{} + (1ll << 40);
    for (std::size_t s = 0; s < slots; ++s) {
        const Mask here = __builtin_convertvector(*reinterpret_cast<const Counts*>(ids + s * lanes), Mask);
        const Mask less = here < first;
        found = less ? Mask{} + static_cast<long long>(s) : found;
        first = less ? here : first;
    }
    return found;
}

// The lanes of `which`, a bit each, go into the slots of those that leave. W: the width, if it is small; otherwise 0.
template <std::size_t W, class T>
inline void store_lanes(const LaneSettings& s, const LaneBlock<T>& to, const LaneEvents<T>& in, std::uint32_t which,
                        const long long* slots, const double* coefs) {
    constexpr std::size_t lanes = kLanes<T>;
    const LaneBlock<T> block = to;
    const std::size_t width = W ? W : s.width;
    const T *x = in.x, *norm2 = in.norm2;
    for (std::uint32_t rest = which; rest; rest &= rest - 1) {
        const auto l = static_cast<std::size_t>(__builtin_ctz(rest)), at = static_cast<std::size_t>(slots[l]) * lanes + l;
        T* point = block.points + (at - l) * width + l;
        for (std::size_t j = 0; j < width; ++j) point[j * lanes] = x[j * lanes + l];
        block.norm2[at] = norm2[l];
        block.ids[at] = block.seen[l];
        block.coef[at] = coefs[l];
    }
    if (block.code || block.target)
        for (std::uint32_t rest = which; rest; rest &= rest - 1) {
            const auto l = static_cast<std::size_t>(__builtin_ctz(rest)), at = static_cast<std::size_t>(slots[l]) * lanes + l;
            if (block.code) block.code[at] = static_cast<std::uint16_t>(in.label[l]);
            else block.target[at] = in.label[l];
        }
}

// What the rule makes of the events of a few lanes, before anything has changed.
struct Trials {
    Real scale, score, width, after;  // after: the scale that comes of it
    Proposal step;
    Mask enters;
};

template <class T>
inline Trials try_lanes(const LaneSettings& s, const LaneBlock<T>& block, const LaneEvents<T>& in, std::size_t l) {
    Trials out;
    out.scale = load(block.scale + l);
    out.score = load(block.intercept + l) + out.scale * load(in.raw + l);
    out.width = block.number ? load(block.number + l) : splat(s.margin);
    const Real given = load(in.label + l), label = s.classes ? 2.0 * given - 1.0 : given;
    store(in.shown + l, s.novelty ? out.score - (s.measured ? out.width : splat(1.0)) : out.score);
    out.step = propose(s, out.score, label, load(in.weight + l), load(in.self + l), out.width,
                       reals(*reinterpret_cast<const Counts*>(block.steps + l)) + 1.0);
    out.after = out.scale * out.step.shrink;
    out.enters = out.step.coefficient != Real{};
    return out;
}

// Lanes whose event is smaller than all that is stored: it does not enter.
template <class T>
inline Mask stays(const Trials& trial, const Weakest<T>& weak, const double* coef, std::size_t l) {
    const std::size_t p = l / kWidth<double>;
    const Real size = magnitude(trial.step.coefficient), scale = magnitude(trial.scale), shrink = magnitude(trial.step.shrink);
    const Mask sure = size < scale * weak.low[p] * shrink, maybe = size < scale * weak.high[p] * shrink;
    if (__builtin_expect(bits((sure ^ maybe) & trial.enters) == 0, 1)) return sure;
    Real lowest = {};
    for (std::size_t k = 0; k < kWidth<double>; ++k) lowest[k] = coef[static_cast<std::size_t>(weak.found[p][k]) * kLanes<T> + l + k];
    return size < scale * magnitude(lowest) * shrink;
}

// Lanes that may be learned here, and not by learn_member, if there is an event.
template <class T>
inline Mask easy_lanes(const LaneSettings& s, const LaneBlock<T>& block, const LaneEvents<T>& in, const Trials& trial, Mask tied, std::size_t l) {
    const Real zero = {}, weight = load(in.weight + l), self = load(in.self + l), after = magnitude(trial.after);
    const Mask full = __builtin_convertvector(*reinterpret_cast<const Counts*>(block.size + l), Mask) == static_cast<long long>(s.slots);
    return (trial.score - trial.score == zero) & (weight != zero) &
           (magnitude(trial.step.coefficient) <= splat(1e150)) & (magnitude(trial.step.shrink) <= splat(1.0)) & (self - self == zero) &
           (trial.step.intercept - trial.step.intercept == zero) & (after >= splat(1e-100)) & (after <= splat(1e100)) &
           (reals(*reinterpret_cast<const Counts*>(block.seen + l)) < splat(4294967295.0)) & (~trial.enters | (full & ~tied));
}

template <class T>
std::uint32_t fleet_step(const LaneSettings& settings, const LaneBlock<T>& memory, const LaneEvents<T>& events) {
    // Copies, which no store can change: they are not looked at again after each.
    const LaneSettings s = settings;
    const LaneBlock<T> block = memory;
    const LaneEvents<T> in = events;
    constexpr std::size_t lanes = kLanes<T>, few = kWidth<double>;
    std::uint32_t left = 0, stored = 0, enter = 0;
    alignas(64) long long slots[lanes];
    alignas(64) double coefs[lanes];
    Trials trials[lanes / few];
    for (std::size_t l = 0; l < lanes; l += few) {
        trials[l / few] = try_lanes(s, block, in, l);
        enter |= bits(trials[l / few].enters) << l;
    }
    Weakest<T> weak;
    for (std::size_t p = 0; p < lanes / few; ++p) weak.found[p] = weak.tied[p] = Mask{}, weak.low[p] = weak.high[p] = Real{};
    if (!s.oldest && enter) find_weakest<T>(block.coef, s.slots, enter, weak);
    for (std::size_t l = 0; l < lanes; l += few) {
        const Trials& trial = trials[l / few];
        const Mask easy = lanes_of(in.here >> l) & easy_lanes(s, block, in, trial, weak.tied[l / few], l);
        const Mask out = s.oldest ? Mask{} : stays<T>(trial, weak, block.coef, l);
        store(block.scale + l, choice(easy, trial.after, trial.scale));
        if (block.number) store(block.number + l, choice(easy, trial.step.width, trial.width));
        if (s.intercept) store(block.intercept + l, choice(easy, load(block.intercept + l) + trial.step.intercept, load(block.intercept + l)));
        store(coefs + l, Real(Real{} + trial.step.coefficient / trial.after));
        *reinterpret_cast<Mask*>(slots + l) = s.oldest && enter ? oldest<T>(block.ids + l, s.slots) : weak.found[l / few];
        stored |= bits(easy & trial.enters & ~out) << l;
        left |= bits(~easy) << l;
        *reinterpret_cast<Counts*>(block.steps + l) -= __builtin_convertvector(easy, Counts);  // all ones where done
    }
    switch (s.width) {
        case 1: store_lanes<1>(s, block, in, stored, slots, coefs); break;
        case 2: store_lanes<2>(s, block, in, stored, slots, coefs); break;
        case 3: store_lanes<3>(s, block, in, stored, slots, coefs); break;
        case 4: store_lanes<4>(s, block, in, stored, slots, coefs); break;
        default: store_lanes<0>(s, block, in, stored, slots, coefs);
    }
    for (std::size_t l = 0; l < lanes; ++l) block.seen[l] += ~left >> l & 1;
    return left;
}

}  // namespace gristmill::GRISTMILL_ISA
