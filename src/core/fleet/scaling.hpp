// A member's own scaling of its inputs: the formulas of ColumnScaling (adapt/scaling.hpp) with the state stored in the
// member, so that a member equals a single prepared learner, bit for bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/adapt/scaling.hpp"

namespace gristmill {

struct Scaling {
    enum class Method { none, standard, minmax };
    Method method = Method::none;
    std::uint64_t warmup = std::numeric_limits<std::uint64_t>::max();  // events after which the statistics are frozen

    bool on() const { return method != Method::none; }
    // per column: first value, sum and sum of squares of differences; or first value, minimum, maximum
    static constexpr std::size_t kNumbers = 3;
};

// Scales one number by the statistics after `known` events.
inline double scaled_number(Scaling::Method method, double x, double first, double a, double b, std::uint64_t known) {
    if (method == Scaling::Method::minmax) return outliers::standardized(x, a, b - a);
    double mean, spread;
    outliers::moments(a, b, static_cast<double>(known), mean, spread);
    return outliers::compressed(outliers::standardized(x, mean + first, spread));
}

// Scales x, after updating the statistics with it if `learn`; `stride`: distance of numbers in out. Returns false if a
// number has left its range.
template <class M>
bool scale_row(const M& member, const Scaling& scaling, std::size_t width, const double* x, double* out,
               std::size_t stride, bool learn) {
    const std::uint64_t seen = member.seen();
    const bool standard = scaling.method == Scaling::Method::standard, takes = learn && seen < scaling.warmup;
    const std::uint64_t known =
        std::max<std::uint64_t>(std::min<std::uint64_t>(seen + (learn ? 1 : 0), scaling.warmup), 1);
    bool fine = true;
    for (std::size_t j = 0; j < width; ++j) {
        double &first = member.scaling(0, j), &a = member.scaling(1, j), &b = member.scaling(2, j);
        const double value = x[j];
        if (takes && seen == 0) {
            first = value;
            a = b = standard ? 0.0 : value;
        }
        if (takes && standard) {
            double mean, spread;
            outliers::moments(a, b, static_cast<double>(std::max<std::uint64_t>(seen, 1)), mean, spread);
            const double from = outliers::clipped(value - first, mean, spread, outliers::limit(seen));
            a += from;
            b += from * from;
        } else if (takes) {
            a = std::min(a, value);
            b = std::max(b, value);
        }
        const double scaled = scaled_number(scaling.method, value, first, a, b, known);
        fine = fine && std::isfinite(scaled) && std::isfinite(b) && std::isfinite(b - a);
        out[j * stride] = scaled;
    }
    return fine;
}

}  // namespace gristmill
