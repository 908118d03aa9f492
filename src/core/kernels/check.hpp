// Checks of input rows before anything is learned from them.
#pragma once

#include <algorithm>

#include "core/base/batch.hpp"
#include "core/kernels/kernels.hpp"

namespace gristmill {

// Throws std::invalid_argument if the rows are not `width` wide.
void check_width(const Batch& batch, std::size_t width);

// Throws RowError for the first row with NaN or infinity, or outside the domain of the kernel.
void check_rows(const Batch& batch, const Kernel& kernel);

template <class T>
bool all_finite(const T* x, std::size_t n) {
    T zero[kPad] = {};  // x - x is 0 for every finite number and NaN otherwise
    std::size_t i = 0;
    for (; i + kPad <= n; i += kPad)
        for (std::size_t l = 0; l < kPad; ++l) zero[l] += x[i + l] - x[i + l];
    for (; i < n; ++i) zero[0] += x[i] - x[i];
    return std::all_of(zero, zero + kPad, [](T d) { return d == T(0); });
}

}  // namespace gristmill
