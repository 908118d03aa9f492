// Vector code for many small learners, compiled once an instruction set like simd.cpp, and under its rule: nothing but vector
// code is included here.
//
// Every lane does what a lane of simd.hpp does for a lone learner: dot products over features in order, the same function of
// norms and dot, sixteen running sums and their tree. So a member of a fleet and a learner alone agree bit for bit.
#include "core/isa_fleet.hpp"
#include "core/simd.hpp"

namespace gristmill::GRISTMILL_ISA {

namespace {

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

template <class T>
void fleet_gaussian(T gamma, const T* x, const T* x_norm2, const T* points, const T* norm2, std::size_t slots,
                    std::size_t width, T* out) {
    constexpr std::size_t lanes = kLanes<T>;
    for (int p = 0; p < kPerBlock; ++p) {
        const Vec<T> own = load(x_norm2 + p * kWidth<T>);
        for (std::size_t s = 0; s < slots; ++s) {
            const std::size_t at = s * lanes + p * kWidth<T>;
            const Vec<T> dot = lane_sum<DotTerm>(x + p * kWidth<T>, points + s * width * lanes + p * kWidth<T>, width);
            store(out + at, exp<T>(-gamma * max0((own + load(norm2 + at)) - T(2) * dot)));
        }
    }
}

template <class T>
void fleet_values(const Node* nodes, std::int32_t root, const T* x, const T* x_norm2, const T* points, const T* norm2,
                  std::size_t slots, std::size_t width, T* scratch, T* out) {
    constexpr std::size_t lanes = kLanes<T>;
    if (nodes[root].op == Op::gaussian)
        return fleet_gaussian(static_cast<T>(nodes[root].a), x, x_norm2, points, norm2, slots, width, out);
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

// The tree of score_dot over sixteen running sums: (l, l+8), (l, l+4), (l, l+2), (l, l+1).
template <std::size_t H, class F>
inline Vec<double> tree(std::size_t l, const F& sum) {
    if constexpr (H == kPad) return sum(l);
    else return tree<2 * H>(l, sum) + tree<2 * H>(l + H, sum);
}

template <class T>
void fleet_scores(const T* values, const double* coef, std::size_t slots, double* out) {
    constexpr std::size_t lanes = kLanes<T>;
    for (std::size_t l = 0; l < lanes; l += kWidth<double>)
        store(out + l, tree<1>(0, [&](std::size_t k) {
            Vec<double> sum = {};
            for (std::size_t s = k; s < slots; s += kPad)
                sum = fma(load(coef + s * lanes + l), wide(values + s * lanes + l), sum);
            return sum;
        }));
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

template <class T>
constexpr IsaFleet<T> fleet_table() {
    return {&fleet_norms<T>, &fleet_values<T>, &fleet_scores<T>, &fleet_smallest<T>, &record_sums<DotTerm, T>,
            &record_sums<L1Term, T>};
}

}  // namespace

extern const IsaFleet<double> kFleetDouble;
extern const IsaFleet<float> kFleetFloat;
const IsaFleet<double> kFleetDouble = fleet_table<double>();
const IsaFleet<float> kFleetFloat = fleet_table<float>();

}  // namespace gristmill::GRISTMILL_ISA
