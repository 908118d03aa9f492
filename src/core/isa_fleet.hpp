// The vector code of fleets behind a table, as in isa.hpp.
#pragma once

#include "core/isa.hpp"

namespace gristmill {

// Lanes across learners: slot s, feature j, learner l at (s * width + j) * lanes + l.
template <class T>
struct IsaFleet {
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
    // Lanes across the slots of one record: slot s, feature j at j * stride + s. Both read up to a multiple of kPad slots,
    // whatever lies there.
    void (*record_dots)(const T* x, const T* points, std::size_t stride, std::size_t slots, std::size_t width, T* out);
    void (*record_l1s)(const T* x, const T* points, std::size_t stride, std::size_t slots, std::size_t width, T* out);
};

template <class T>
const IsaFleet<T>& isa_fleet();

}  // namespace gristmill
