// What can be said against rows of numbers before anything is learned from them.
#pragma once

#include "core/batch.hpp"
#include "core/kernels.hpp"

namespace gristmill {

// Throws std::invalid_argument if the rows are not `width` wide.
void check_width(const Batch& batch, std::size_t width);

// Throws RowError for the first row with a NaN or infinity, or that the kernel cannot take.
void check_rows(const Batch& batch, const Kernel& kernel);

}  // namespace gristmill
