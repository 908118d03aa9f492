// How near an event is to the nearest of the stored points, beside how near those were to theirs when they came.
//
// Near and far are told by kernel values, for kernels that are 1 between equal points and less elsewhere: far is -log k, which is a
// (squared) distance for a Gaussian. The neighbours are a share of the stored points and not a number of them, so that what a point was
// told when few were stored can be compared with what one is told later.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/base/elementary.hpp"

namespace gristmill::neighbours {

inline constexpr double kLeast = 1e-290;  // a kernel value that is less is this
inline constexpr double kTouching = 1e-3;  // added to every -log k: equal points are near, but not without end
inline constexpr std::size_t kFewest = 2;

inline std::size_t count(double share, std::size_t stored) {
    return std::min(stored, std::max(kFewest, static_cast<std::size_t>(share * static_cast<double>(stored) + 0.5)));
}

// The k-th largest of some values. requires: 0 < k <= n.
inline double largest(const double* values, std::size_t n, std::size_t k) {
    static thread_local std::vector<double> heap;  // the k largest so far, the least of them first
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

// The logarithm of how far a kernel value is.
inline double farness(double value) {
    return elementary::quick_log(std::max(-elementary::quick_log(std::max(value, kLeast)), 0.0) + kTouching);
}

// That of the last of an event's neighbours; not a number where nothing is stored. row: its kernel values at the stored points.
inline double reach(const double* row, std::size_t stored, double share) {
    return stored == 0 ? elementary::kNaN : farness(largest(row, stored, count(share, stored)));
}

// The geometric mean of how far the neighbours' neighbours are, over how far its own are: about 1 among others, less outside.
// reaches: what `reach` was of each stored point when it came; those that are not known do not count.
inline double score(const double* row, const double* reaches, std::size_t stored, double share) {
    if (stored == 0) return 1;
    const double last = largest(row, stored, count(share, stored));
    double sum = 0, known = 0;
    for (std::size_t i = 0; i < stored; ++i)
        if (row[i] >= last && !std::isnan(reaches[i])) sum += reaches[i], known += 1;
    return known == 0 ? 1.0 : elementary::exp(sum / known - farness(last));
}

}  // namespace gristmill::neighbours
