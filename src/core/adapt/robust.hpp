// Location and width of a few numbers, of which some may be wild.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace gristmill {

struct RobustMoments {
    double median = 0, quartile = 0;  // quartile: half the distance of the quartiles, or of outer quantiles
    double mean = 0, deviation = 0;   // of the numbers clipped at so many quartile deviations from the median
};

// The quantile of sorted numbers, linear between them. requires: at least one.
inline double quantile_of_sorted(std::span<const double> sorted, double share) {
    const double place = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const double low = sorted[below], high = sorted[std::min(below + 1, sorted.size() - 1)];
    return low + (place - static_cast<double>(below)) * (high - low);
}

// From sorted numbers. outermost: where the quartiles are equal, quantiles farther out are tried, down to this share. requires: at
// least one number. ensures: a factor of 2^k of the numbers is one of the result, bit for bit.
inline RobustMoments robust_moments(std::span<const double> sorted, double clip, double outermost = 0.25) {
    RobustMoments found;
    found.median = quantile_of_sorted(sorted, 0.5);
    for (double tail = 0.25; tail >= outermost && !(found.quartile > 0); tail *= 0.5)
        found.quartile = 0.5 * (quantile_of_sorted(sorted, 1 - tail) - quantile_of_sorted(sorted, tail));
    const double far = found.quartile > 0 ? clip * found.quartile : sorted.back() - sorted.front();
    double sum = 0, squares = 0;  // of differences from the median
    for (const double x : sorted) {
        const double off = std::clamp(x - found.median, -far, far);
        sum += off;
        squares += off * off;
    }
    const auto n = static_cast<double>(sorted.size());
    const double mean = sum / n, square = squares / n - mean * mean;
    found.mean = found.median + mean;
    found.deviation = std::sqrt(square > 0 ? square : 0.0);
    return found;
}

}  // namespace gristmill
