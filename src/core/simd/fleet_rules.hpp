// Updates all lanes of a block of learners with one event each: vector implementations of rules and budgets.
#pragma once

#include "core/simd/fleet_eviction.hpp"

namespace gristmill::GRISTMILL_ISA {

// The step a rule proposes for a few lanes: the operations of parts/rules.hpp in the same order.
struct Proposal {
    Real coefficient, shrink, width, intercept;
};

template <LaneRule R>
[[gnu::always_inline]] inline Proposal propose(const LaneSettings& s, Real score, Real label, Real weight, Real self,
                                               Real width, Real step) {
    const Real zero = {}, one = broadcast(1.0);
    Proposal out{zero, one, width, zero};
    if constexpr (R == LaneRule::implicit_hinge) {
        const Real cap = broadcast(s.cap) * weight, kept = s.keep * score;
        const Real excess = width - label * kept, wanted = s.unit ? excess : excess / self;
        const Real size = choice(below(wanted, zero), zero, choice(below(cap, wanted), cap, wanted));
        out.coefficient = s.unit ? label * size : choice(below(zero, self), label * size, zero);
        out.shrink = broadcast(s.keep);
    } else if constexpr (R == LaneRule::sgd_hinge || R == LaneRule::sgd_squared) {
        const Real rate = s.by_root ? s.rate / root(step) : broadcast(s.rate);
        const Real pace = rate * weight, agreement = label * score;
        const Flags beyond = s.strict ? below(agreement, width) : at_most(agreement, width);
        out.coefficient = pace * (R == LaneRule::sgd_squared ? label - score : choice(beyond, label, zero));
        if (s.adapts) out.width = width + pace * (s.nu - choice(beyond, one, zero));
        out.shrink = 1.0 - rate * s.reg;
        if (s.intercept) out.intercept = out.coefficient;
    } else if constexpr (R == LaneRule::passive_aggressive) {
        const Real error = label - score;
        const Real loss = s.regression ? abs(error) - s.epsilon : 1.0 - label * score;
        const Real sign = s.regression ? choice(below(error, zero), -one, one) : label;
        const Real limit = s.cap * weight;
        const Real extent = s.variant == 2 ? self + 1.0 / (2.0 * limit) : self;
        const Real full = s.unit && s.variant != 2 ? loss : loss / extent;
        const Real size = s.variant == 1 ? lesser(limit, full) : full;
        out.coefficient =
            choice(both(both(below(zero, loss), at_most(zero, self)), below(zero, extent)), sign * size, zero);
    } else {  // Perceptron
        out.coefficient = choice(at_most(label * score, zero), label * weight, zero);
    }
    return out;
}

// Writes the events of the lanes in the bit mask `which` into the slots of the evicted points. W: the width, if it is
// small; otherwise 0. ago: events that the lanes have seen but not counted yet.
template <std::size_t W, class T>
[[gnu::noinline]] void store_lanes(const LaneSettings& s, const LaneBlock<T>& to, const LaneEvents<T>& in,
                                   std::uint32_t which, const std::uint32_t* slots, const double* coefs,
                                   std::uint32_t ago) {
    constexpr std::size_t lanes = kLanes<T>;
    constexpr std::uint32_t all = (std::uint32_t{1} << lanes) - 1;
    const LaneBlock<T> block = to;
    const std::size_t width = W ? W : s.width;
    const T *x = in.x, *norm2 = in.norm2;
    const auto put = [&](std::size_t l) __attribute__((always_inline)) {
        const std::size_t at = slots[l] * lanes + l;
        T* point = block.points + slots[l] * lanes * width + l;
        for (std::size_t j = 0; j < width; ++j) point[j * lanes] = x[j * lanes + l];
        block.norm2[at] = norm2[l];
        block.ids[at] = block.seen[l] + ago;
        block.coef[at] = coefs[l];
    };
    if (W > 0 && which == all) {
#pragma GCC unroll 16
        for (std::size_t l = 0; l < lanes; ++l) put(l);
    } else {
        for (std::uint32_t rest = which; rest; rest &= rest - 1) put(static_cast<std::size_t>(__builtin_ctz(rest)));
    }
    if (block.code || block.target)
        for (std::uint32_t rest = which; rest; rest &= rest - 1) {
            const auto l = static_cast<std::size_t>(__builtin_ctz(rest)), at = slots[l] * lanes + l;
            if (block.code) block.code[at] = static_cast<std::uint16_t>(in.label[l]);
            else block.target[at] = in.label[l];
        }
}

template <class T>
using StoreLanes = void (*)(const LaneSettings&, const LaneBlock<T>&, const LaneEvents<T>&, std::uint32_t,
                            const std::uint32_t*, const double*, std::uint32_t);
template <class T>
inline StoreLanes<T> store_lanes_of(std::size_t width) {
    constexpr StoreLanes<T> some[] = {&store_lanes<0, T>, &store_lanes<1, T>, &store_lanes<2, T>, &store_lanes<3, T>,
                                      &store_lanes<4, T>};
    return some[width <= 4 ? width : 0];
}

// Bit mask of the lanes with a full store.
template <class T>
inline std::uint32_t full_lanes(const LaneSettings& s, const LaneBlock<T>& block) {
    std::uint32_t full = 0;
    for (std::size_t l = 0; l < kLanes<T>; ++l) full |= static_cast<std::uint32_t>(block.size[l] == s.slots) << l;
    return full;
}

// Bit mask of the lanes of `enter` whose new coefficient is smaller than all stored ones, so that the event is not
// stored.
template <class T>
[[gnu::noinline]] std::uint32_t too_small(const double* coef, const SmallestCoef<T>& smallest, std::uint32_t enter,
                                          const double* scale, const Real* sizes, const Real* shrinks) {
    std::uint32_t found = 0;
    for (std::uint32_t rest = enter; rest; rest &= rest - 1) {
        const auto l = static_cast<std::size_t>(__builtin_ctz(rest));
        const std::size_t p = l / kWidth<double>, k = l % kWidth<double>;
        const double least = __builtin_fabs(coef[smallest.slot[l] * kLanes<T> + l]);
        found |=
            static_cast<std::uint32_t>(sizes[p][k] < __builtin_fabs(scale[l]) * least * __builtin_fabs(shrinks[p][k]))
            << l;
    }
    return found;
}

// Learns one event per lane and returns the bit mask of the lanes left unchanged. Counters are not updated: the caller
// has `ago` earlier events to count as well.
template <LaneRule R, class T>
[[gnu::always_inline]] inline std::uint32_t step_lanes(const LaneSettings& s, const LaneBlock<T>& block,
                                                       const LaneEvents<T>& in, std::uint32_t full, std::uint32_t ago,
                                                       StoreLanes<T> put) {
    constexpr std::size_t lanes = kLanes<T>, few = kWidth<double>, parts = lanes / few;
    const Real zero = {};
    Real scale[parts], after[parts], width[parts], size[parts];
    Proposal step[parts];
    std::uint32_t enter = 0, learned = 0;
#pragma GCC unroll 8
    for (std::size_t p = 0; p < parts; ++p) {
        const std::size_t l = p * few;
        scale[p] = load(block.scale + l);
        const Real score = load(block.intercept + l) + scale[p] * load(in.raw + l);
        width[p] = block.number ? load(block.number + l) : broadcast(s.margin);
        const Real given = load(in.label + l), label = s.classes ? 2.0 * given - 1.0 : given;
        const Real weight = load(in.weight + l), self = s.unit ? broadcast(1.0) : load(in.self + l);
        if (in.shown) store(in.shown + l, s.novelty ? score - (s.measured ? width[p] : broadcast(1.0)) : score);
        const Real number = s.by_root ? reals(*reinterpret_cast<const Counts*>(block.steps + l)) + (1.0 + ago) : zero;
        step[p] = propose<R>(s, score, label, weight, self, width[p], number);
        after[p] = scale[p] * step[p].shrink;
        size[p] = magnitude(step[p].coefficient);
        const Real now = magnitude(after[p]);
        Flags safe = both(both(is_finite(score), differs(weight, zero)),
                          both(at_most(size[p], broadcast(1e150)), at_most(magnitude(step[p].shrink), broadcast(1.0))));
        safe = both(safe, both(at_most(broadcast(1e-100), now), at_most(now, broadcast(1e100))));
        if (s.intercept) safe = both(safe, is_finite(step[p].intercept));
        if (!s.unit) safe = both(safe, is_finite(self));
        enter |= bits(differs(step[p].coefficient, zero)) << l;
        learned |= bits(safe) << l;
    }
    learned &= in.here & (~enter | full);
    std::uint32_t stored = learned & enter;
    SmallestCoef<T> smallest;
    if (stored && s.oldest) {
        find_oldest<T>(block.ids, s.slots, smallest.slot);
    } else if (stored) {
        find_smallest<T>(block.coef, s.slots, stored, smallest);
        learned &= ~(stored & smallest.tied);
        stored &= ~smallest.tied;
        std::uint32_t maybe = 0;
#pragma GCC unroll 8
        for (std::size_t p = 0; p < parts; ++p)
            maybe |= bits(below(size[p], magnitude(scale[p]) * smallest.high[p] * magnitude(step[p].shrink)))
                     << p * few;
        if (maybe & stored) {
            Real shrinks[parts];
            for (std::size_t p = 0; p < parts; ++p) shrinks[p] = step[p].shrink;
            stored &= ~too_small<T>(block.coef, smallest, maybe & stored, block.scale, size, shrinks);
        }
    }
    alignas(64) double coefs[lanes];
#pragma GCC unroll 8
    for (std::size_t p = 0; p < parts; ++p) {
        const std::size_t l = p * few;
        const Flags done = flags_of(learned >> l);
        store(block.scale + l, choice(done, after[p], scale[p]));
        if (block.number) store(block.number + l, choice(done, step[p].width, width[p]));
        if (s.intercept)
            store(block.intercept + l,
                  choice(done, load(block.intercept + l) + step[p].intercept, load(block.intercept + l)));
        store(coefs + l, Real(Real{} + step[p].coefficient / after[p]));
    }
    if (stored) put(s, block, in, stored, smallest.slot, coefs, ago);
    return in.here & ~learned;
}

// Adds `frames` events to the counters of all lanes, and one more for the lanes in the bit mask `also`.
template <class T>
inline void count_lanes(const LaneBlock<T>& block, std::uint32_t frames, std::uint32_t also) {
    for (std::size_t l = 0; l < kLanes<T>; ++l) {
        const std::uint32_t more = frames + (also >> l & 1);
        block.seen[l] += more;
        block.steps[l] += more;
    }
}

// Calls f with the rule as a template argument.
template <class F>
inline auto with_rule(LaneRule rule, const F& f) {
    switch (rule) {
        case LaneRule::implicit_hinge: return f.template operator()<LaneRule::implicit_hinge>();
        case LaneRule::sgd_hinge: return f.template operator()<LaneRule::sgd_hinge>();
        case LaneRule::sgd_squared: return f.template operator()<LaneRule::sgd_squared>();
        case LaneRule::passive_aggressive: return f.template operator()<LaneRule::passive_aggressive>();
        default: return f.template operator()<LaneRule::perceptron>();
    }
}

}  // namespace gristmill::GRISTMILL_ISA
