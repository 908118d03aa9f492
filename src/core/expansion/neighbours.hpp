// Nearest-neighbour novelty scores: the distance of an event to its nearest stored points, relative to the distances of
// those points to theirs when they arrived.
//
// Distances come from kernel values, for kernels that are 1 for equal points and less otherwise: -log k, a squared
// distance for a Gaussian. The neighbours are a share of the stored points rather than a number, so that values from a
// small store can be compared with later ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/base/elementary.hpp"

namespace gristmill::neighbours {

inline constexpr double kLeast = 1e-290;  // lower bound of kernel values
inline constexpr double kTouching = 1e-3;  // added to every -log k, so that the distance of equal points is not 0
inline constexpr std::size_t kFewest = 2;

inline std::size_t count(double share, std::size_t stored) {
    return std::min(stored, std::max(kFewest, static_cast<std::size_t>(share * static_cast<double>(stored) + 0.5)));
}

// The k-th largest of some values. requires: 0 < k <= n.
inline double largest(const double* values, std::size_t n, std::size_t k) {
    static thread_local std::vector<double> heap;  // the k largest so far, the least in front
    heap.assign(values, values + k);
    std::make_heap(heap.begin(), heap.end(), std::greater<>());
    for (std::size_t i = k; i < n; ++i) {
        if (!(values[i] > heap.front())) continue;
        std::pop_heap(heap.begin(), heap.end(), std::greater<>());
        heap.back() = values[i];
        std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
    return heap.front();
}

// Log distance of a kernel value.
inline double log_distance(double value) {
    return elementary::quick_log(std::max(-elementary::quick_log(std::max(value, kLeast)), 0.0) + kTouching);
}

// Log distance to the last of an event's neighbours; NaN if nothing is stored. row: its kernel values at the stored
// points.
inline double reach(const double* row, std::size_t stored, double share) {
    return stored == 0 ? elementary::kNaN : log_distance(largest(row, stored, count(share, stored)));
}

// Geometric mean of the neighbours' own distances divided by the event's distance: about 1 for typical events, less for
// outliers. reaches: `reach` of each stored point when it arrived; unknown ones are skipped.
inline double score(const double* row, const double* reaches, std::size_t stored, double share) {
    if (stored == 0) return 1;
    const double last = largest(row, stored, count(share, stored));
    double sum = 0, known = 0;
    for (std::size_t i = 0; i < stored; ++i)
        if (row[i] >= last && !std::isnan(reaches[i])) {
            sum += reaches[i];
            known += 1;
        }
    return known == 0 ? 1.0 : elementary::exp(sum / known - log_distance(last));
}

}  // namespace gristmill::neighbours
