// L1 distances of events that are stored as whole numbers: sums of integers, so that every instruction set gives the same bits.
#pragma once

#include "core/simd/dispatch.hpp"

namespace gristmill::GRISTMILL_ISA {

// Column by column, a lane a stored event. lanes: a multiple of kPad.
inline void fine_distances(const std::int32_t* x, const std::int32_t* codes, std::size_t width, std::size_t lanes,
                           std::uint32_t* out) {
    for (std::size_t lane = 0; lane < lanes; ++lane) out[lane] = 0;
    for (std::size_t c = 0; c < width; ++c) {
        const std::int32_t* y = codes + c * lanes;
        const std::int32_t from = x[c];
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const std::int32_t step = y[lane] - from, sign = step >> 31;
            out[lane] += static_cast<std::uint32_t>((step ^ sign) - sign);
        }
    }
}

// Event by event. stride: a multiple of kPad, what pads a row is the same in all of them.
inline void byte_distances(const std::uint8_t* x, const std::uint8_t* rows, std::size_t count, std::size_t stride,
                           std::uint32_t* out) {
    for (std::size_t r = 0; r < count; ++r) {
        const std::uint8_t* y = rows + r * stride;
        std::uint32_t sum = 0;
        for (std::size_t c = 0; c < stride; ++c) {
            const int step = int{x[c]} - int{y[c]};
            sum += static_cast<std::uint32_t>(step < 0 ? -step : step);
        }
        out[r] = sum;
    }
}

}  // namespace gristmill::GRISTMILL_ISA
