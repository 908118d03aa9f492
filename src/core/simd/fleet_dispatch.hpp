// The vector code of fleets behind a table, as in simd/dispatch.hpp.
#pragma once

#include "core/simd/dispatch.hpp"

namespace gristmill {

// Rules that have a vector twin; the others are asked lane by lane.
enum class LaneRule : std::int32_t { none, perceptron, implicit_hinge, sgd_hinge, sgd_squared, passive_aggressive };

// Most points of a learner that is stepped together with others: the number of a slot has so many bits.
inline constexpr int kLaneSlotBits = 6;
inline constexpr std::size_t kMostLaneSlots = std::size_t{1} << kLaneSlotBits;

// What one event a lane is learned by.
struct LaneSettings {
    LaneRule rule = LaneRule::none;
    double cap = 0, keep = 1, margin = 1;      // most a step may add for weight 1; factor on what is there; width
    double rate = 0, reg = 0, nu = 0, epsilon = 0;
    std::int32_t variant = 1;
    bool by_root = false, adapts = false, strict = false, intercept = false, regression = false;
    bool classes = false, novelty = false;     // labels are 0 and 1; scores are shown less the width, if it is `measured` by that
    bool measured = false, oldest = false;     // the oldest leaves, and not the smallest
    bool unit = false;                         // k(x, x) is 1 for every x
    std::size_t width = 0, slots = 0;          // of a point; of a full store
};

// Where the numbers of a block of learners are; null for what they have not.
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
    std::uint32_t here;  // the lanes that an event came for, a bit each
    double* shown;       // what was said of it; null if nobody asks
};
// Frames in which an event comes for every lane. `events` tells where things of the first frame are.
template <class T>
struct LaneFrames {
    const T* rows;             // of the first frame: learner after learner
    std::size_t count, apart;  // frames; learners in a frame
    bool labels, weights;      // of each frame its own, `apart` apart; otherwise one for all
    const std::byte* next;     // memory that will be asked for soon, and its lines
    std::size_t lines;
};
struct LaneStop {
    std::size_t frame;   // all frames before it are learned
    std::uint32_t left;  // lanes of it, a bit each, that are not
};

// Lanes across learners: slot s, feature j, learner l at (s * width + j) * lanes + l.
template <class T>
struct IsaFleet {
    // Rows of as many learners as there are lanes, one after the other, into x: feature after feature.
    void (*lanes)(const T* rows, std::size_t width, T* x);
    // Whether all numbers are finite and below `most` in size.
    bool (*small)(const T* numbers, std::size_t count, T most);
    // <x, x> of each lane; x is feature after feature.
    void (*norms)(const T* x, std::size_t width, T* out);
    // out[s * lanes + l]: the row of learner l against its point in slot s. scratch: (nodes + 4) lines.
    void (*values)(const Node* nodes, std::int32_t root, const T* x, const T* x_norm2, const T* points, const T* norm2,
                   std::size_t slots, std::size_t width, T* scratch, T* out);
    // out[l] = sum_s coef[s * lanes + l] values[s * lanes + l], in the order of IsaScore::dot.
    void (*scores)(const T* values, const double* coef, std::size_t slots, double* out);
    // For each lane the slot of the least |scale| max_o |coef|, and whether another slot has the same.
    void (*smallest)(const double* coef, std::size_t outputs, std::size_t stride, std::size_t slots, const double* scale,
                     std::int64_t* slot, std::int64_t* tied);
    // Lanes across the slots of one record: slot s, feature j at j * stride + s. What lies behind the
    // last slot is never looked at; out is written up to the next whole vector.
    void (*record_dots)(const T* x, const T* points, std::size_t stride, std::size_t slots, std::size_t width, T* out);
    void (*record_l1s)(const T* x, const T* points, std::size_t stride, std::size_t slots, std::size_t width, T* out);
    void (*record_norms)(const T* points, std::size_t stride, std::size_t slots, std::size_t width, T* out);
    // sum_s coef[s] exp(-gamma ||x - y_s||^2) of one record, in the order of IsaScore::dot, and <x, x>.
    double (*record_gaussian)(T gamma, const T* x, T* x_norm2, const T* points, std::size_t stride, std::size_t slots,
                              std::size_t width, const double* coef);
    std::size_t (*record_oldest)(const std::uint32_t* ids, std::size_t slots);  // the slot of the least
    // Learns one event in each lane, as learn_member does. Returns the lanes, a bit each, that were left as they were: those
    // that are not full, tied, or about to leave the range of numbers.
    std::uint32_t (*step)(const LaneSettings& settings, const LaneBlock<T>& block, const LaneEvents<T>& events);
    // Looks at frame after frame and learns it, up to the first that leaves lanes; x, norm2, values and raw are of that frame then.
    LaneStop (*frames)(const LaneSettings& settings, const LaneBlock<T>& block, const LaneFrames<T>& frames, const Node* nodes,
                       std::int32_t root, const LaneEvents<T>& events, T* scratch, T* values);
};

template <class T>
const IsaFleet<T>& isa_fleet();

}  // namespace gristmill
