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

// The slot of the least coefficient in each lane; `tied` where another is so near that rounding may make them the same in the
// true scale. The number of the slot travels in the lowest bits, so that one comparison carries both.
template <class T>
inline void weakest(const double* coef, std::size_t slots, Mask* found, Mask* tied) {
    constexpr std::size_t lanes = kLanes<T>, parts = lanes / kWidth<double>, chains = 2;  // even and odd slots: one chain waits for itself
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
    Real first[parts], second[parts];
    for (std::size_t p = 0; p < parts; ++p) {
        first[p] = lesser(least[0][p], least[1][p]);
        second[p] = lesser(greater(least[0][p], least[1][p]), lesser(next[0][p], next[1][p]));
    }
    for (std::size_t p = 0; p < parts; ++p) {
        found[p] = (Mask)first[p] & static_cast<long long>(kMostTogether - 1);
        tied[p] = ((Mask)second[p] >> kTogetherBits) - ((Mask)first[p] >> kTogetherBits) <= 1;
    }
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

template <class T>
std::uint32_t fleet_step(const LaneSettings& s, const LaneBlock<T>& block, const LaneEvents<T>& in) {
    constexpr std::size_t lanes = kLanes<T>, few = kWidth<double>;
    std::uint32_t left = 0, stored = 0;
    alignas(64) long long slots[lanes];
    alignas(64) double coefs[lanes];
    Mask leaves[lanes / few] = {}, close[lanes / few] = {};
    if (!s.oldest) weakest<T>(block.coef, s.slots, leaves, close);
    for (std::size_t l = 0; l < lanes; l += few) {
        const Real scale = load(block.scale + l), zero = {};
        const Real score = load(block.intercept + l) + scale * load(in.raw + l);
        const Real width = block.number ? load(block.number + l) : splat(s.margin);
        const Real given = load(in.label + l), label = s.classes ? 2.0 * given - 1.0 : given;
        const Real weight = load(in.weight + l), self = load(in.self + l);
        const Counts seen = *reinterpret_cast<const Counts*>(block.seen + l);
        Counts& steps = *reinterpret_cast<Counts*>(block.steps + l);
        store(in.shown + l, s.novelty ? score - (s.measured ? width : splat(1.0)) : score);
        const Proposal step = propose(s, score, label, weight, self, width, reals(steps) + 1.0);
        const Real after = scale * step.shrink, size = magnitude(step.coefficient);
        const Mask enters = step.coefficient != zero;
        const Mask tied = close[l / few];
        Mask found = leaves[l / few];
        Real lowest = zero;
        if (s.oldest) {
            found = oldest<T>(block.ids + l, s.slots);
        } else {
            for (std::size_t k = 0; k < few; ++k) lowest[k] = block.coef[static_cast<std::size_t>(found[k]) * lanes + l + k];
            lowest = magnitude(lowest);
        }
        const Mask full = __builtin_convertvector(*reinterpret_cast<const Counts*>(block.size + l), Mask) == static_cast<long long>(s.slots);
        const Mask easy = (*reinterpret_cast<const Mask*>(in.here + l) != 0) & (score - score == zero) & (weight != zero) &
                          (size <= splat(1e150)) & (magnitude(step.shrink) <= splat(1.0)) & (self - self == zero) &
                          (step.intercept - step.intercept == zero) & (magnitude(after) >= splat(1e-100)) & (magnitude(after) <= splat(1e100)) &
                          (reals(seen) < splat(4294967295.0)) & (~enters | (full & ~tied));
        const Mask stays = s.oldest ? Mask{} : Mask(size < magnitude(scale) * lowest * magnitude(step.shrink));
        store(block.scale + l, choice(easy, after, scale));
        if (block.number) store(block.number + l, choice(easy, step.width, width));
        if (s.intercept) store(block.intercept + l, choice(easy, load(block.intercept + l) + step.intercept, load(block.intercept + l)));
        store(coefs + l, Real(zero + step.coefficient / after));
        *reinterpret_cast<Mask*>(slots + l) = found;
        stored |= bits(easy & enters & ~stays) << l;
        left |= bits(~easy) << l;
        steps -= __builtin_convertvector(easy, Counts);  // all ones where done
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
