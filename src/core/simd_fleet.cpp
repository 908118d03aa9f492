// Vector code for many small learners, compiled once an instruction set like simd.cpp, and under its rule: nothing but vector
// code is included here.
//
// Every lane does what a lane of simd.hpp does for a lone learner: dot products over features in order, the same function of
// norms and dot, sixteen running sums and their tree. So a member of a fleet and a learner alone agree bit for bit.
#include "core/isa_fleet.hpp"
#include "core/simd_record.hpp"
#include "core/simd_step.hpp"

namespace gristmill::GRISTMILL_ISA {

namespace {

#if defined(__AVX512F__)
// Three numbers a row, as the colours of a pixel: sixteen rows fill three vectors.
inline void lanes_of_three(const float* rows, float* out) {
    const __m512 a = _mm512_loadu_ps(rows), b = _mm512_loadu_ps(rows + 16), c = _mm512_loadu_ps(rows + 32);
    for (int j = 0; j < 3; ++j) {
        const __m512i at = _mm512_add_epi32(_mm512_set_epi32(45, 42, 39, 36, 33, 30, 27, 24, 21, 18, 15, 12, 9, 6, 3, 0), _mm512_set1_epi32(j));
        const __mmask16 last = _mm512_cmpge_epi32_mask(at, _mm512_set1_epi32(32));
        // The permutations look at the lower bits of a place alone.
        _mm512_storeu_ps(out + 16 * j, _mm512_mask_permutexvar_ps(_mm512_permutex2var_ps(a, at, b), last, at, c));
    }
}
#endif

// Rows of `lanes` learners, one after the other, as feature after feature.
template <class T>
void fleet_lanes(const T* rows, std::size_t width, T* out) {
    constexpr std::size_t lanes = kLanes<T>;
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4)
        if (width == 3) return lanes_of_three(rows, out);
#endif
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

// So many slots at a time as their numbers find room in registers.
inline constexpr std::size_t kAbreast = kBytes == 64 ? 5 : kBytes == 32 ? 2 : 1;

// N slots from the first on. W: the width, if it is small; otherwise 0.
template <std::size_t N, std::size_t W, class T>
[[gnu::always_inline]] inline void slot_gaussian(T gamma, const T* x, const Vec<T>* mine, Vec<T> own, const T* points, const T* norm2, std::size_t given, T* out) {
    constexpr std::size_t lanes = kLanes<T>;
    const std::size_t width = W ? W : given;
    Vec<T> value[N], square[N];
    for (std::size_t i = 0; i < N; ++i) square[i] = own + load(norm2 + i * lanes), value[i] = Vec<T>{};
    if constexpr (W > 0) {
        for (std::size_t j = 0; j < W; ++j)
            for (std::size_t i = 0; i < N; ++i) value[i] = DotTerm::add(value[i], mine[j], load(points + (i * width + j) * lanes));
    } else {
        for (std::size_t i = 0; i < N; ++i) value[i] = lane_sum<DotTerm>(x, points + i * width * lanes, width);
    }
    // Twice the dot product is exact, so that one rounding is that of the difference.
    for (std::size_t i = 0; i < N; ++i) value[i] = -gamma * at_least0(fma(splat(T(-2)), value[i], square[i]));
    exps_below<N, T>(value);
    for (std::size_t i = 0; i < N; ++i) store(out + i * lanes, value[i]);
}

template <std::size_t W, class T>
void fleet_gaussian(T gamma, const T* x, const T* x_norm2, const T* points, const T* norm2, std::size_t slots,
                    std::size_t given, T* out) {
    constexpr std::size_t lanes = kLanes<T>;
    const std::size_t width = W ? W : given;
    for (int p = 0; p < kPerBlock; ++p, x += kWidth<T>, x_norm2 += kWidth<T>, points += kWidth<T>, norm2 += kWidth<T>, out += kWidth<T>) {
        const Vec<T> own = load(x_norm2);
        Vec<T> mine[W ? W : 1];
        for (std::size_t j = 0; j < W; ++j) mine[j] = load(x + j * lanes);
        std::size_t s = 0;
        for (; s + kAbreast <= slots; s += kAbreast)
            slot_gaussian<kAbreast, W>(gamma, x, mine, own, points + s * width * lanes, norm2 + s * lanes, given, out + s * lanes);
        for (; s < slots; ++s)
            slot_gaussian<1, W>(gamma, x, mine, own, points + s * width * lanes, norm2 + s * lanes, given, out + s * lanes);
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

// Sixteen running sums, slot s in sum s % 16, and the tree of score_dot: (l, l+8), (l, l+4), (l, l+2), (l, l+1). Branch by branch:
// of all sums at once most would be kept in memory. Sum: a sum, or the first of a branch whose sums are `Apart` apart. Full: no
// sum is empty.
template <bool Full, std::size_t Sum, std::size_t Apart, class T>
[[gnu::always_inline]] inline Real score_branch(const T* values, const double* coef, std::size_t slots) {
    constexpr std::size_t lanes = kLanes<T>;
    if constexpr (Apart < kPad) {
        const Real first = score_branch<Full, Sum, 2 * Apart>(values, coef, slots);
        return first + score_branch<Full, Sum + Apart, 2 * Apart>(values, coef, slots);
    } else {
        Real sum = {};
        if (Full || Sum < slots) sum = fma(load(coef + Sum * lanes), wide(values + Sum * lanes), sum);
        for (std::size_t s = Sum + kPad; s < slots; s += kPad) sum = fma(load(coef + s * lanes), wide(values + s * lanes), sum);
        return sum;
    }
}

template <class T>
void fleet_scores(const T* values, const double* coef, std::size_t slots, double* out) {
    for (std::size_t l = 0; l < kLanes<T>; l += kWidth<double>)
        store(out + l, slots >= kPad ? score_branch<true, 0, 1>(values + l, coef + l, slots) : score_branch<false, 0, 1>(values + l, coef + l, slots));
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

template <class T>
std::uint32_t fleet_step(const LaneSettings& s, const LaneBlock<T>& block, const LaneEvents<T>& in) {
    const std::uint32_t left = with_rule(s.rule, [&]<LaneRule R>() {
        return step_lanes<R>(s, block, in, full_lanes(s, block), 0, store_lanes_of<T>(s.width));
    });
    count_lanes(block, 0, in.here & ~left);
    return left;
}

template <LaneRule R, class T>
LaneStop learn_frames(const LaneSettings& settings, const LaneBlock<T>& memory, const LaneFrames<T>& given, const Node* nodes,
                      std::int32_t root, const LaneEvents<T>& events, T* scratch, T* values) {
    // Copies, which no store can change: they are not looked at again after each.
    const LaneSettings s = settings;
    const LaneBlock<T> block = memory;
    const LaneFrames<T> frames = given;
    LaneEvents<T> in = events;
    const StoreLanes<T> put = store_lanes_of<T>(s.width);
    const std::uint32_t full = full_lanes(s, block);
    std::size_t slots = 0;  // nothing changes the size of a store here
    for (std::size_t l = 0; l < kLanes<T>; ++l) slots = block.size[l] > slots ? block.size[l] : slots;
    const std::size_t row = frames.apart * s.width, share = (frames.lines + frames.count - 1) / frames.count * kLineBytes;
    const std::byte *next = frames.next, *end = next + frames.lines * kLineBytes;
    const T* rows = frames.rows;
    for (std::size_t t = 0; t < frames.count; ++t, rows += row) {
        // The next block and its events are on their way from memory while this one is learned: a share of them a frame.
        for (const std::byte* stop = next + share; next < stop && next < end; next += kLineBytes) __builtin_prefetch(next, 1);
        for (std::size_t at = 0; at <= kLanes<T> * s.width; at += kLanes<T>) __builtin_prefetch(rows + kLanes<T> * s.width + at);
        fleet_lanes(rows, s.width, in.x);
        fleet_norms(in.x, s.width, in.norm2);
        fleet_values(nodes, root, in.x, in.norm2, block.points, block.norm2, slots, s.width, scratch, values);
        fleet_scores(values, block.coef, slots, in.raw);
        const std::uint32_t left = step_lanes<R>(s, block, in, full, static_cast<std::uint32_t>(t), put);
        if (__builtin_expect(left != 0, 0)) {
            count_lanes(block, static_cast<std::uint32_t>(t), in.here & ~left);
            return {t, left};
        }
        if (frames.labels) in.label += frames.apart;
        if (frames.weights) in.weight += frames.apart;
        if (in.shown) in.shown += frames.apart;
    }
    count_lanes(block, static_cast<std::uint32_t>(frames.count), 0);
    return {frames.count, 0};
}

template <class T>
LaneStop fleet_frames(const LaneSettings& settings, const LaneBlock<T>& block, const LaneFrames<T>& frames, const Node* nodes,
                      std::int32_t root, const LaneEvents<T>& events, T* scratch, T* values) {
    return with_rule(settings.rule, [&]<LaneRule R>() { return learn_frames<R>(settings, block, frames, nodes, root, events, scratch, values); });
}

template <class T>
constexpr IsaFleet<T> fleet_table() {
    return {&fleet_lanes<T>, &fleet_small<T>, &fleet_norms<T>, &fleet_values<T>, &fleet_scores<T>, &fleet_smallest<T>, &record_sums<DotTerm, T>,
            &record_sums<L1Term, T>, &record_norms<T>, &record_gaussian<T>, &record_oldest<T>, &fleet_step<T>, &fleet_frames<T>};
}

}  // namespace

extern const IsaFleet<double> kFleetDouble;
extern const IsaFleet<float> kFleetFloat;
const IsaFleet<double> kFleetDouble = fleet_table<double>();
const IsaFleet<float> kFleetFloat = fleet_table<float>();

}  // namespace gristmill::GRISTMILL_ISA
