// The vector code of fleets behind a table of functions, as in simd/dispatch.hpp.
#pragma once

#include "core/simd/dispatch.hpp"

namespace gristmill {

// Rules with a vector implementation; other rules run lane by lane.
enum class LaneRule : std::int32_t { none, perceptron, implicit_hinge, sgd_hinge, sgd_squared, passive_aggressive };

// Largest budget of learners that are updated together: slot numbers have this many bits.
inline constexpr int kLaneSlotBits = 6;
inline constexpr std::size_t kMostLaneSlots = std::size_t{1} << kLaneSlotBits;

// Parameters of the vector update of one event per lane.
struct LaneSettings {
    LaneRule rule = LaneRule::none;
    double cap = 0, keep = 1, margin = 1;  // largest coefficient for weight 1; factor on stored coefficients; margin
    double rate = 0, reg = 0, nu = 0, epsilon = 0;
    std::int32_t variant = 1;
    bool by_root = false, adapts = false, strict = false, intercept = false, regression = false;
    bool classes = false, novelty = false;  // labels are 0 and 1; scores are reported minus the margin, if `measured`
    bool measured = false, oldest = false;  // oldest: evict the oldest point instead of the smallest
    bool unit = false;  // k(x, x) is 1 for every x
    std::size_t width = 0, slots = 0;  // features of a point; points of a full store
};

// Addresses of the fields of a block of learners; null for fields that they do not have.
template <class T>
struct LaneBlock {
    double *scale, *intercept, *number, *coef, *target;
    T *points, *norm2;
    std::uint32_t *ids, *size, *seen, *steps;
    std::uint16_t* code;
};
template <class T>
struct LaneEvents {
    T *x, *norm2;
    double* raw;  // the score without scale and intercept
    const double *self, *label, *weight;
    std::uint32_t here;  // bit mask of the lanes that have an event
    double* shown;  // scores before the update; null if not requested
};
// Consecutive frames with an event in every lane. `events` holds the addresses for the first frame.
template <class T>
struct LaneFrames {
    const T* rows;  // rows of the first frame, one learner after the other
    std::size_t count, apart;  // number of frames; number of learners in a frame
    bool labels, weights;  // given per frame, `apart` apart; otherwise shared by all frames
    const std::byte* next;  // memory to prefetch, and its number of cache lines
    std::size_t lines;
};
struct LaneStop {
    std::size_t frame;  // all frames before this one are learned
    std::uint32_t left;  // bit mask of its lanes that are not learned
};

// Lanes across learners: slot s, feature j, learner l at (s * width + j) * lanes + l.
template <class T>
struct IsaFleet {
    // Transposes the rows of one learner per lane into x, one feature after the other.
    void (*lanes)(const T* rows, std::size_t width, T* x);
    // Whether all numbers are finite and less than `most` in absolute value.
    bool (*small)(const T* numbers, std::size_t count, T most);
    // <x, x> of each lane; x: one feature after the other.
    void (*norms)(const T* x, std::size_t width, T* out);
    // out[s * lanes + l]: kernel value of the event of learner l at its point in slot s. scratch: (nodes + 4) lines.
    void (*values)(const Node* nodes, std::int32_t root, const T* x, const T* x_norm2, const T* points, const T* norm2,
                   std::size_t slots, std::size_t width, T* scratch, T* out);
    // out[l] = sum_s coef[s * lanes + l] values[s * lanes + l], in the order of IsaScore::dot.
    void (*scores)(const T* values, const double* coef, std::size_t slots, double* out);
    // For each lane: the slot with the least |scale| max_o |coef|, and whether another slot ties with it.
    void (*smallest)(const double* coef, std::size_t outputs, std::size_t stride, std::size_t slots,
                     const double* scale, std::int64_t* slot, std::int64_t* tied);
    // Lanes across the slots of one record: slot s, feature j at j * stride + s. Memory behind the last slot is never
    // read; out is written up to the next whole vector.
    void (*record_dots)(const T* x, const T* points, std::size_t stride, std::size_t slots, std::size_t width, T* out);
    void (*record_l1s)(const T* x, const T* points, std::size_t stride, std::size_t slots, std::size_t width, T* out);
    void (*record_norms)(const T* points, std::size_t stride, std::size_t slots, std::size_t width, T* out);
    // sum_s coef[s] exp(-gamma ||x - y_s||^2) of one record, in the order of IsaScore::dot, and <x, x>.
    double (*record_gaussian)(T gamma, const T* x, T* x_norm2, const T* points, std::size_t stride, std::size_t slots,
                              std::size_t width, const double* coef);
    std::size_t (*record_oldest)(const std::uint32_t* ids, std::size_t slots);  // slot of the smallest id
    // Learns one event in each lane, as learn_member does. Returns the bit mask of the lanes left unchanged: those with
    // a store that is not full, a tie, or a number about to leave its range.
    std::uint32_t (*step)(const LaneSettings& settings, const LaneBlock<T>& block, const LaneEvents<T>& events);
    // Scores and learns frame after frame up to the first that leaves lanes; x, norm2, values and raw then belong to
    // that frame.
    LaneStop (*frames)(const LaneSettings& settings, const LaneBlock<T>& block, const LaneFrames<T>& frames,
                       const Node* nodes, std::int32_t root, const LaneEvents<T>& events, T* scratch, T* values);
};

template <class T>
const IsaFleet<T>& isa_fleet();

}  // namespace gristmill
