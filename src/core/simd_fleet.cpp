// Vector code for many small learners, compiled once an instruction set like simd.cpp, and under its rule: nothing but vector
// code is included here.
//
// Every lane does what a lane of simd.hpp does for a lone learner: dot products over features in order, the same function of
// norms and dot, sixteen running sums and their tree. So a member of a fleet and a learner alone agree bit for bit.
#include "core/isa_fleet.hpp"
#include "core/simd.hpp"

namespace gristmill::GRISTMILL_ISA {

namespace {

#if defined(__AVX512F__)
inline bool any_below(Vec<float> x, float low) { return _mm512_cmp_ps_mask(x, _mm512_set1_ps(low), _CMP_LT_OQ) != 0; }
inline bool any_below(Vec<double> x, double low) { return _mm512_cmp_pd_mask(x, _mm512_set1_pd(low), _CMP_LT_OQ) != 0; }
inline Vec<float> at_least0(Vec<float> x) { return _mm512_max_ps(x, _mm512_setzero_ps()); }
inline Vec<double> at_least0(Vec<double> x) { return _mm512_max_pd(x, _mm512_setzero_pd()); }
#elif defined(__AVX2__)
inline bool any_below(Vec<float> x, float low) {
    return _mm256_movemask_ps(_mm256_cmp_ps(x, _mm256_set1_ps(low), _CMP_LT_OQ)) != 0;
}
inline bool any_below(Vec<double> x, double low) {
    return _mm256_movemask_pd(_mm256_cmp_pd(x, _mm256_set1_pd(low), _CMP_LT_OQ)) != 0;
}
inline Vec<float> at_least0(Vec<float> x) { return _mm256_max_ps(x, _mm256_setzero_ps()); }
inline Vec<double> at_least0(Vec<double> x) { return _mm256_max_pd(x, _mm256_setzero_pd()); }
#else
template <class V>
inline V at_least0(V x) { return max0(x); }
#endif

// Rows of `lanes` learners, one after the other, as feature after feature.
template <class T>
void fleet_lanes(const T* rows, std::size_t width, T* out) {
    constexpr std::size_t lanes = kLanes<T>;
    for (std::size_t j = 0; j < width; ++j) {
#if defined(__AVX512F__)
        if constexpr (sizeof(T) == 4) {
            const __m512i step = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
            const __m512i at = _mm512_mullo_epi32(step, _mm512_set1_epi32(static_cast<int>(width)));
            store(out + j * lanes, Vec<T>(_mm512_i32gather_ps(at, rows + j, 4)));
            continue;
        }
#endif
        for (std::size_t l = 0; l < lanes; ++l) out[j * lanes + l] = rows[l * width + j];
    }
}

// Whether all numbers are finite and below `most` in size.
template <class T>
bool fleet_small(const T* numbers, std::size_t count, T most) {
    typedef decltype(Vec<T>{} < Vec<T>{}) Flags;
    Flags large = {};
    std::size_t i = 0;
    for (; i + kWidth<T> <= count; i += kWidth<T>) large |= ~(abs(load(numbers + i)) < splat(most));
    bool small = true;
    for (std::size_t k = 0; k < kWidth<T>; ++k) small = small && !large[k];
    for (; i < count; ++i) small = small && (numbers[i] < 0 ? -numbers[i] : numbers[i]) < most;
    return small;
}

template <class T>
void fleet_norms(const T* x, std::size_t width, T* out) {
    for (int p = 0; p < kPerBlock; ++p) {
        Vec<T> sum = {};
        for (std::size_t j = 0; j < width; ++j) {
            const Vec<T> v = load(x + j * kLanes<T> + p * kWidth<T>);
            sum = fma(v, v, sum);
        }
        store(out + p * kWidth<T>, sum);
    }
}

template <class Term, class T>
inline Vec<T> lane_sum(const T* x, const T* y, std::size_t width) {
    Vec<T> sum = {};
    for (std::size_t j = 0; j < width; ++j) sum = Term::add(sum, load(x + j * kLanes<T>), load(y + j * kLanes<T>));
    return sum;
}

// Kernel values of one line of lanes in which both sides of a pair change from lane to lane.
template <class T>
void lane_values(const Node* nodes, std::int32_t at, const T* dot, const T* l1, const T* x_norm2, const T* y_norm2,
                 T* scratch, T* out) {
    constexpr std::size_t lanes = kLanes<T>;
    const Node& node = nodes[at];
    if (node.left < 0) {
        // A leaf asks for nothing of the norms but their sum.
        for (std::size_t i = 0; i < lanes; i += kWidth<T>) store(scratch + i, load(x_norm2 + i) + load(y_norm2 + i));
        return leaf(node, Pairs<T>{dot, l1, T(0), scratch, lanes}, false, out);
    }
    lane_values(nodes, node.left, dot, l1, x_norm2, y_norm2, scratch, out);
    if (node.op == Op::normalized) {
        T *x_self = scratch, *y_self = scratch + lanes, *rest = scratch + 2 * lanes;
        evaluate(nodes, node.left, Pairs<T>{nullptr, nullptr, T(0), x_norm2, lanes}, true, rest, x_self);
        evaluate(nodes, node.left, Pairs<T>{nullptr, nullptr, T(0), y_norm2, lanes}, true, rest, y_self);
        for (std::size_t i = 0; i < lanes; ++i) {
            const T scale = x_self[i] * y_self[i];
            out[i] = scale > T(0) ? out[i] / __builtin_sqrt(scale) : T(0);
        }
    } else if (node.op == Op::multiple) {
        for (std::size_t i = 0; i < lanes; ++i) out[i] *= static_cast<T>(node.a);
    } else {
        lane_values(nodes, node.right, dot, l1, x_norm2, y_norm2, scratch + lanes, scratch);
        if (node.op == Op::sum)
            for (std::size_t i = 0; i < lanes; ++i) out[i] += scratch[i];
        else
            for (std::size_t i = 0; i < lanes; ++i) out[i] *= scratch[i];
    }
}

// exp of what is not above 0, with the bits of exp<T>. Where no result comes near the smallest number, the power of two may
// be added to the exponent as it stands.
#if defined(__AVX512F__) || defined(__AVX2__)
template <class T>
inline Vec<T> exp_below(Vec<T> x) {
    using E = ExpTraits<T>;
    typedef typename E::Bits Ints __attribute__((vector_size(kBytes)));
    constexpr T near = E::low + T(2);
    if (__builtin_expect(any_below(x, near), 0)) return exp<T>(x);
    const Vec<T> shifted = fma(x, splat(E::log2e), splat(E::shift));
    const Vec<T> whole = shifted - E::shift;
    Vec<T> rest = fma(whole, splat(-E::ln2_high), x);
    rest = fma(whole, splat(-E::ln2_low), rest);
    Vec<T> sum = splat(E::series[0]);
    constexpr int terms = sizeof(E::series) / sizeof(E::series[0]);
    for (int i = 1; i < terms; ++i) sum = fma(sum, rest, splat(E::series[i]));
    return (Vec<T>)((Ints)sum + ((Ints)shifted << E::mantissa));
}
#else
template <class T>
inline Vec<T> exp_below(Vec<T> x) { return exp<T>(x); }
#endif

// W: the width, if it is small; otherwise 0.
template <std::size_t W, class T>
void fleet_gaussian(T gamma, const T* x, const T* x_norm2, const T* points, const T* norm2, std::size_t slots,
                    std::size_t given, T* out) {
    constexpr std::size_t lanes = kLanes<T>;
    const std::size_t width = W ? W : given;
    for (int p = 0; p < kPerBlock; ++p) {
        const Vec<T> own = load(x_norm2 + p * kWidth<T>);
        Vec<T> mine[W ? W : 1];
        for (std::size_t j = 0; j < W; ++j) mine[j] = load(x + j * lanes + p * kWidth<T>);
        for (std::size_t s = 0; s < slots; ++s) {
            const std::size_t at = s * lanes + p * kWidth<T>;
            const T* point = points + s * width * lanes + p * kWidth<T>;
            Vec<T> dot = {};
            if constexpr (W > 0) {
                for (std::size_t j = 0; j < W; ++j) dot = DotTerm::add(dot, mine[j], load(point + j * lanes));
            } else {
                dot = lane_sum<DotTerm>(x + p * kWidth<T>, point, width);
            }
            // Twice the dot product is exact, so that one rounding is that of the difference.
            store(out + at, exp_below<T>(-gamma * at_least0(fma(splat(T(-2)), dot, own + load(norm2 + at)))));
        }
    }
}

template <class T>
void fleet_values(const Node* nodes, std::int32_t root, const T* x, const T* x_norm2, const T* points, const T* norm2,
                  std::size_t slots, std::size_t width, T* scratch, T* out) {
    constexpr std::size_t lanes = kLanes<T>;
    if (nodes[root].op == Op::gaussian) {
        const auto run = width == 1 ? &fleet_gaussian<1, T> : width == 2 ? &fleet_gaussian<2, T>
                         : width == 3 ? &fleet_gaussian<3, T> : width == 4 ? &fleet_gaussian<4, T> : &fleet_gaussian<0, T>;
        return run(static_cast<T>(nodes[root].a), x, x_norm2, points, norm2, slots, width, out);
    }
    T *dot = scratch, *l1 = scratch + lanes;
    for (std::size_t s = 0; s < slots; ++s) {
        for (int p = 0; p < kPerBlock; ++p) {
            const T *to = points + s * width * lanes + p * kWidth<T>, *from = x + p * kWidth<T>;
            store(dot + p * kWidth<T>, lane_sum<DotTerm>(from, to, width));
            store(l1 + p * kWidth<T>, lane_sum<L1Term>(from, to, width));
        }
        lane_values(nodes, root, dot, l1, x_norm2, norm2 + s * lanes, scratch + 2 * lanes, out + s * lanes);
    }
}

inline Vec<double> wide(const double* p) { return load(p); }
inline Vec<double> wide(const float* p) {
    typedef float Half __attribute__((vector_size(kBytes / 2), aligned(4), may_alias));
    return __builtin_convertvector(*reinterpret_cast<const Half*>(p), Vec<double>);
}

// Sixteen running sums in registers, slot s in sum s % 16, and the tree of score_dot: (l, l+8), (l, l+4), (l, l+2), (l, l+1).
template <class T>
void fleet_scores(const T* values, const double* coef, std::size_t slots, double* out) {
    constexpr std::size_t lanes = kLanes<T>;
    for (std::size_t l = 0; l < lanes; l += kWidth<double>) {
        Vec<double> sum[kPad] = {};
        const T* value = values + l;
        const double* weight = coef + l;
        const auto add = [&](std::size_t k) __attribute__((always_inline)) {
            sum[k] = fma(load(weight + k * lanes), wide(value + k * lanes), sum[k]);
        };
        std::size_t left = slots;
        for (; left >= kPad; left -= kPad, value += kPad * lanes, weight += kPad * lanes)
#pragma GCC unroll 16
            for (std::size_t k = 0; k < kPad; ++k) add(k);
        switch (left) {
            case 15: add(14); [[fallthrough]];
            case 14: add(13); [[fallthrough]];
            case 13: add(12); [[fallthrough]];
            case 12: add(11); [[fallthrough]];
            case 11: add(10); [[fallthrough]];
            case 10: add(9); [[fallthrough]];
            case 9: add(8); [[fallthrough]];
            case 8: add(7); [[fallthrough]];
            case 7: add(6); [[fallthrough]];
            case 6: add(5); [[fallthrough]];
            case 5: add(4); [[fallthrough]];
            case 4: add(3); [[fallthrough]];
            case 3: add(2); [[fallthrough]];
            case 2: add(1); [[fallthrough]];
            case 1: add(0); [[fallthrough]];
            default: break;
        }
#pragma GCC unroll 4
        for (std::size_t half = kPad / 2; half > 0; half /= 2)
#pragma GCC unroll 8
            for (std::size_t k = 0; k < half; ++k) sum[k] += sum[k + half];
        store(out + l, sum[0]);
    }
}

template <class T>
void fleet_smallest(const double* coef, std::size_t outputs, std::size_t stride, std::size_t slots, const double* scale,
                    std::int64_t* slot, std::int64_t* tied) {
    constexpr std::size_t lanes = kLanes<T>;
    typedef long long Ints __attribute__((vector_size(kBytes), aligned(8), may_alias));
    for (std::size_t l = 0; l < lanes; l += kWidth<double>) {
        const Vec<double> size = abs(load(scale + l));
        Vec<double> least = splat(__builtin_inf());
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

template <class Term, class T>
void record_sums(const T* x, const T* points, std::size_t stride, std::size_t slots, std::size_t width, T* out) {
    for (std::size_t s = 0; s < slots; s += kWidth<T>) {
        Vec<T> sum = {};
        for (std::size_t j = 0; j < width; ++j) sum = Term::add(sum, splat(x[j]), load(points + j * stride + s));
        store(out + s, sum);
    }
}

// ---- one event in each lane ---------------------------------------------------------------------------------------

typedef long long Mask __attribute__((vector_size(kBytes), aligned(8), may_alias));
typedef std::uint32_t Counts __attribute__((vector_size(kBytes / 2), aligned(4), may_alias));
using Real = Vec<double>;

inline Real reals(Counts counts) { return __builtin_convertvector(counts, Real); }

// The first few of a list, and 0.
inline Real some(const double* list, std::size_t count) {
#if defined(__AVX512F__)
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1), list);
#else
    Real found = {};
    for (std::size_t k = 0; k < count; ++k) found[k] = list[k];
    return found;
#endif
}

// What a rule proposes for a few lanes; see rules.hpp, whose operations these are, in their order.
struct Proposal {
    Real coefficient, shrink, width, intercept;
};

inline Real choice(Mask mask, Real yes, Real no) { return mask ? yes : no; }
inline Real root(Real v) {
    for (std::size_t i = 0; i < kWidth<double>; ++i) v[i] = __builtin_sqrt(v[i]);
    return v;
}
#if defined(__AVX512F__)
inline Real lesser(Real a, Real b) { return _mm512_min_pd(b, a); }
inline Real greater(Real a, Real b) { return _mm512_max_pd(b, a); }
inline Real magnitude(Real v) { return _mm512_abs_pd(v); }
#elif defined(__AVX2__)
inline Real lesser(Real a, Real b) { return _mm256_min_pd(b, a); }
inline Real greater(Real a, Real b) { return _mm256_max_pd(b, a); }
inline Real magnitude(Real v) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), v); }
#else
inline Real lesser(Real a, Real b) { return b < a ? b : a; }  // std::min
inline Real greater(Real a, Real b) { return a < b ? b : a; }
inline Real magnitude(Real v) { return abs(v); }
#endif

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
    constexpr std::size_t lanes = kLanes<T>, parts = lanes / kWidth<double>;
    Real first[parts], second[parts];
    for (std::size_t p = 0; p < parts; ++p) first[p] = second[p] = splat(__builtin_inf());
    for (std::size_t s = 0; s < slots; ++s)
        for (std::size_t p = 0; p < parts; ++p) {
            const Real here = marked(load(coef + s * lanes + p * kWidth<double>), &kSlotNumbers.at[s]);
            second[p] = lesser(second[p], greater(first[p], here));
            first[p] = lesser(first[p], here);
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

inline std::uint32_t bits(Mask mask) {
#if defined(__AVX512F__)
    return _mm512_movepi64_mask((__m512i)mask);
#elif defined(__AVX2__)
    return static_cast<std::uint32_t>(_mm256_movemask_pd((__m256d)mask));
#else
    std::uint32_t found = 0;
    for (std::size_t k = 0; k < kWidth<double>; ++k) found |= static_cast<std::uint32_t>(mask[k] & 1) << k;
    return found;
#endif
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

template <class T>
void record_norms(const T* points, std::size_t stride, std::size_t slots, std::size_t width, T* out) {
    for (std::size_t s = 0; s < slots; s += kWidth<T>) {
        Vec<T> sum = {};
        for (std::size_t j = 0; j < width; ++j) {
            const Vec<T> y = load(points + j * stride + s);
            sum = fma(y, y, sum);
        }
        store(out + s, sum);
    }
}

template <class T>
double record_gaussian(T gamma, const T* x, T x_norm2, const T* points, std::size_t stride, std::size_t slots,
                       std::size_t width, const double* coef) {
    constexpr std::size_t wide_lanes = kWidth<double>, few = kWidth<T> / wide_lanes;
    Real sums[kPad / wide_lanes] = {};
    const Real places = []() {
        Real found;
        for (std::size_t k = 0; k < wide_lanes; ++k) found[k] = static_cast<double>(k);
        return found;
    }();
    alignas(64) T values[kWidth<T>];
    for (std::size_t s = 0; s < slots; s += kWidth<T>) {
        Vec<T> dot = {}, norm2 = {};
        for (std::size_t j = 0; j < width; ++j) {
            const Vec<T> y = load(points + j * stride + s);
            dot = fma(splat(x[j]), y, dot);
            norm2 = fma(y, y, norm2);
        }
        // What lies behind the last point may be anything, and is left out below.
        store(values, exp<T>(-gamma * at_least0(fma(splat(T(-2)), dot, splat(x_norm2) + norm2))));
        for (std::size_t h = 0; h < few; ++h) {
            const std::size_t first = s + h * wide_lanes;
            if (first >= slots) break;
            Real& sum = sums[first / wide_lanes % (kPad / wide_lanes)];
            const Mask there = places < splat(static_cast<double>(slots - first));
            const Real weight = first + wide_lanes <= slots ? load(coef + first) : some(coef + first, slots - first);
            sum = fma(weight, choice(there, wide(values + h * wide_lanes), Real{}), sum);
        }
    }
    alignas(64) double sum[kPad];
    for (std::size_t k = 0; k < kPad; k += wide_lanes) store(sum + k, sums[k / wide_lanes]);
    for (std::size_t half = kPad / 2; half > 0; half /= 2)
        for (std::size_t k = 0; k < half; ++k) sum[k] += sum[k + half];
    return sum[0];
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

template <class T>
constexpr IsaFleet<T> fleet_table() {
    return {&fleet_lanes<T>, &fleet_small<T>, &fleet_norms<T>, &fleet_values<T>, &fleet_scores<T>, &fleet_smallest<T>, &record_sums<DotTerm, T>,
            &record_sums<L1Term, T>, &record_norms<T>, &record_gaussian<T>, &record_oldest<T>, &fleet_step<T>};
}

}  // namespace

extern const IsaFleet<double> kFleetDouble;
extern const IsaFleet<float> kFleetFloat;
const IsaFleet<double> kFleetDouble = fleet_table<double>();
const IsaFleet<float> kFleetFloat = fleet_table<float>();

}  // namespace gristmill::GRISTMILL_ISA
