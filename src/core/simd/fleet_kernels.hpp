// Kernel values and scores of a block of learners: lanes run across the learners.
//
// Every lane performs the operations of a lane of simd/kernel_blocks.hpp for a single learner: dot products over
// features in order, the same function of norms and dot product, sixteen running sums and their tree. A member of a
// fleet and a single learner therefore agree bit for bit.
#pragma once

#include "core/simd/numbers.hpp"

namespace gristmill::GRISTMILL_ISA {

#if defined(__AVX512F__) || defined(__AVX2__)
// Deinterleaves rows of three numbers, such as the colours of pixels. Number j of row k is at 3 k + j of three vectors;
// the numbers j of all rows are at different places of a vector, so that two blends collect them and one permutation
// sorts them.
struct Deinterleave3 {
    static constexpr int n = kWidth<float>;
    int place[3][n] = {};  // position of number j of row k after the blends
    unsigned second[3] = {}, third[3] = {};  // bit masks of positions filled from the second and the third vector
    constexpr Deinterleave3() {
        for (int j = 0; j < 3; ++j)
            for (int k = 0; k < n; ++k) {
                const int at = 3 * k + j;
                place[j][k] = at % n;
                if (at / n == 1) second[j] |= 1u << at % n;
                if (at / n == 2) third[j] |= 1u << at % n;
            }
    }
};
inline constexpr Deinterleave3 kDeinterleave3;

template <int J>
inline Vec<float> every_third(Vec<float> a, Vec<float> b, Vec<float> c) {
    constexpr unsigned second = kDeinterleave3.second[J], third = kDeinterleave3.third[J];
#if defined(__AVX512F__)
    const __m512 mixed = _mm512_mask_blend_ps(third, _mm512_mask_blend_ps(second, a, b), c);
    return _mm512_permutexvar_ps(_mm512_loadu_si512(kDeinterleave3.place[J]), mixed);
#else
    const __m256 mixed = _mm256_blend_ps(_mm256_blend_ps(a, b, second), c, third);
    return _mm256_permutevar8x32_ps(mixed,
                                    _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kDeinterleave3.place[J])));
#endif
}

inline void lanes_of_three(const float* rows, float* out) {
    constexpr std::size_t n = kWidth<float>, lanes = kLanes<float>;
    for (std::size_t first = 0; first < lanes; first += n, rows += 3 * n, out += n) {
        const Vec<float> a = load(rows), b = load(rows + n), c = load(rows + 2 * n);
        store(out, every_third<0>(a, b, c));
        store(out + lanes, every_third<1>(a, b, c));
        store(out + 2 * lanes, every_third<2>(a, b, c));
    }
}
#endif

// Transposes the rows of `lanes` learners: one feature after the other.
template <class T>
void fleet_lanes(const T* rows, std::size_t width, T* out) {
    constexpr std::size_t lanes = kLanes<T>;
#if defined(__AVX512F__) || defined(__AVX2__)
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

// Whether all numbers are finite and less than `most` in absolute value.
template <class T>
bool fleet_small(const T* numbers, std::size_t count, T most) {
    typedef decltype(Vec<T>{} < Vec<T>{}) Flags;
    Flags large = {};
    std::size_t i = 0;
    for (; i + kWidth<T> <= count; i += kWidth<T>) large |= ~(abs(load(numbers + i)) < broadcast(most));
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

// Kernel values of one line of lanes in which both points of a pair differ from lane to lane.
template <class T>
void lane_values(const Node* nodes, std::int32_t at, const T* dot, const T* l1, const T* x_norm2, const T* y_norm2,
                 T* scratch, T* out) {
    constexpr std::size_t lanes = kLanes<T>;
    const Node& node = nodes[at];
    if (node.left < 0) {
        // A leaf uses the norms only through their sum.
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

// Slots processed at a time: their values fit into registers.
inline constexpr std::size_t kSlotUnroll = kBytes >= 32 ? 5 : 1;

// N consecutive slots. W: the width, if it is small; otherwise 0.
template <std::size_t N, std::size_t W, class T>
[[gnu::always_inline]] inline void slot_gaussian(T gamma, const T* x, const Vec<T>* mine, Vec<T> own, const T* points,
                                                 const T* norm2, std::size_t given, T* out) {
    constexpr std::size_t lanes = kLanes<T>;
    const std::size_t width = W ? W : given;
    Vec<T> value[N], square[N];
    for (std::size_t i = 0; i < N; ++i) {
        square[i] = own + load(norm2 + i * lanes);
        value[i] = Vec<T>{};
    }
    if constexpr (W > 0) {
        for (std::size_t j = 0; j < W; ++j)
            for (std::size_t i = 0; i < N; ++i)
                value[i] = DotTerm::add(value[i], mine[j], load(points + (i * width + j) * lanes));
    } else {
        for (std::size_t i = 0; i < N; ++i) value[i] = lane_sum<DotTerm>(x, points + i * width * lanes, width);
    }
    // Doubling is exact, so that only the difference is rounded.
    for (std::size_t i = 0; i < N; ++i) value[i] = -gamma * at_least0(fma(broadcast(T(-2)), value[i], square[i]));
    exp_nonpositive<N, T>(value);
    for (std::size_t i = 0; i < N; ++i) store(out + i * lanes, value[i]);
}

template <std::size_t W, class T>
void fleet_gaussian(T gamma, const T* x, const T* x_norm2, const T* points, const T* norm2, std::size_t slots,
                    std::size_t given, T* out) {
    constexpr std::size_t lanes = kLanes<T>;
    const std::size_t width = W ? W : given;
    for (int p = 0; p < kPerBlock;
         ++p, x += kWidth<T>, x_norm2 += kWidth<T>, points += kWidth<T>, norm2 += kWidth<T>, out += kWidth<T>) {
        const Vec<T> own = load(x_norm2);
        Vec<T> mine[W ? W : 1];
        for (std::size_t j = 0; j < W; ++j) mine[j] = load(x + j * lanes);
        std::size_t s = 0;
        for (; s + kSlotUnroll <= slots; s += kSlotUnroll)
            slot_gaussian<kSlotUnroll, W>(gamma, x, mine, own, points + s * width * lanes, norm2 + s * lanes, given,
                                          out + s * lanes);
        for (; s < slots; ++s)
            slot_gaussian<1, W>(gamma, x, mine, own, points + s * width * lanes, norm2 + s * lanes, given,
                                out + s * lanes);
    }
}

template <class T>
void fleet_values(const Node* nodes, std::int32_t root, const T* x, const T* x_norm2, const T* points, const T* norm2,
                  std::size_t slots, std::size_t width, T* scratch, T* out) {
    constexpr std::size_t lanes = kLanes<T>;
    if (nodes[root].op == Op::gaussian) {
        const auto run = width == 1   ? &fleet_gaussian<1, T>
                         : width == 2 ? &fleet_gaussian<2, T>
                         : width == 3 ? &fleet_gaussian<3, T>
                         : width == 4 ? &fleet_gaussian<4, T>
                                      : &fleet_gaussian<0, T>;
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

// Sixteen running sums, slot s in sum s % 16, and the tree of score_dot: (l, l+8), (l, l+4), (l, l+2), (l, l+1). It
// recurses branch by branch: sixteen sums at once would not fit into registers. Sum: a sum, or the first of a branch
// whose sums are `Apart` apart. Full: no sum is empty. N: vectors of lanes.
template <bool Full, std::size_t Sum, std::size_t Apart, std::size_t N, class T>
[[gnu::always_inline]] inline void score_branch(const T* values, const double* coef, std::size_t slots, Real* out) {
    constexpr std::size_t lanes = kLanes<T>, few = kWidth<double>;
    if constexpr (Apart < kPad) {
        Real second[N];
        score_branch<Full, Sum, 2 * Apart, N>(values, coef, slots, out);
        score_branch<Full, Sum + Apart, 2 * Apart, N>(values, coef, slots, second);
        for (std::size_t i = 0; i < N; ++i) out[i] = out[i] + second[i];
    } else {
        for (std::size_t i = 0; i < N; ++i) out[i] = Real{};
        if (Full || Sum < slots)
            for (std::size_t i = 0; i < N; ++i)
                out[i] = fma(load(coef + Sum * lanes + i * few), wide(values + Sum * lanes + i * few), out[i]);
        for (std::size_t s = Sum + kPad; s < slots; s += kPad)
            for (std::size_t i = 0; i < N; ++i)
                out[i] = fma(load(coef + s * lanes + i * few), wide(values + s * lanes + i * few), out[i]);
    }
}

template <class T>
void fleet_scores(const T* values, const double* coef, std::size_t slots, double* out) {
    constexpr std::size_t together = kLanes<T> / kWidth<double> < 2 ? 1 : 2;  // vectors of lanes at a time
    for (std::size_t l = 0; l < kLanes<T>; l += together * kWidth<double>) {
        Real sums[together];
        if (slots >= kPad) score_branch<true, 0, 1, together>(values + l, coef + l, slots, sums);
        else score_branch<false, 0, 1, together>(values + l, coef + l, slots, sums);
        for (std::size_t i = 0; i < together; ++i) store(out + l + i * kWidth<double>, sums[i]);
    }
}

}  // namespace gristmill::GRISTMILL_ISA
