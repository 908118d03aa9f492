// Folder adapt: what is learned beside the hypothesis: scaling, class weights, calibration, prediction intervals.
// It includes base/ and parts/; learner/ and everything above may include it.
// Begin with this file: running means and scaling of columns. Each event is scaled by the statistics up to and
// including it. Every sum runs in the order of the events, so that a chunk and its rows one by one give the same bits;
// every step commutes with a factor of 2^k.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/adapt/robust.hpp"
#include "core/base/archive.hpp"

namespace gristmill {

// Running means of columns with missing values: the first value, the sum of differences from it, and the count.
class Means {
  public:
    std::size_t width() const { return first.size(); }

    // Adds columns with these first values.
    void widen(std::span<const double> fresh) {
        first.insert(first.end(), fresh.begin(), fresh.end());
        total.resize(first.size());
        count.resize(first.size());
    }
    // Rows without missing values.
    void learn(const double* rows, std::size_t n) {
        for (const double* row = rows; row != rows + n * width(); row += width())
            for (std::size_t c = 0; c < width(); ++c) total[c] += row[c] - first[c];
        for (double& seen : count) seen += static_cast<double>(n);
    }
    // Rows with missing values, which are replaced by the mean at that time.
    void learn(const double* rows, const bool* missing, std::size_t n, double* out) {
        for (std::size_t at = 0; at < n * width(); at += width())
            for (std::size_t c = 0; c < width(); ++c) {
                total[c] += missing[at + c] ? 0.0 : rows[at + c] - first[c];
                count[c] += missing[at + c] ? 0.0 : 1.0;
                out[at + c] = missing[at + c] ? mean(c) : rows[at + c];
            }
    }
    double mean(std::size_t c) const {
        const double found = first[c] + total[c] / std::max(count[c], 1.0);
        return std::isfinite(found) ? found : first[c];  // after an overflow of the sum the mean is unknown
    }

    // Undo of one event: begin() before it, rollback() after it.
    void begin() {
        saved_total_ = total;
        saved_count_ = count;
    }
    void rollback() {
        total = saved_total_;
        count = saved_count_;
    }

    std::vector<double> first;  // reference of the differences: a large offset would drown small ones
    std::vector<double> total, count;

  private:
    std::vector<double> saved_total_, saved_count_;
};

// Limits the influence of outliers. In the running moments a value counts as at most kClip deviations from the mean,
// once there are kMinEvents events; a scaled value beyond kClip is compressed to less than twice kClip. Otherwise one
// value of a heavy tail, or the first change after many equal values, would dominate a column or the distance.
namespace outliers {
constexpr double kClip = 5;
constexpr std::uint64_t kMinEvents = 16;

inline double limit(std::uint64_t seen) { return seen >= kMinEvents ? kClip : std::numeric_limits<double>::infinity(); }
// The difference from the first value, clipped by the mean and the deviation so far.
inline double clipped(double step, double mean, double spread, double far) {
    const double most = spread > 0 ? far * spread : std::numeric_limits<double>::infinity();
    const double below = std::min(step, mean + most);
    return std::max(below, mean - most);
}
inline double compressed(double z) {
    const double over = std::abs(z) - kClip;
    const double inside = kClip + over / (1 + over / kClip);
    return over > 0 ? (z > 0 ? inside : -inside) : z;
}
inline double deviation(double square) { return std::sqrt(square > 0 ? square : 0.0); }
// A constant column is divided by 1, so that it stays 0 after centring.
inline double nonzero(double spread) { return spread > 0 ? spread : 1.0; }
// Mean and standard deviation from count, sum and sum of squares.
inline void moments(double sum, double squares, double count, double& mean, double& spread) {
    mean = sum / count;
    spread = deviation(squares / count - mean * mean);
}
inline double standardized(double x, double centre, double spread) { return (x - centre) / nonzero(spread); }
}  // namespace outliers

// Centre and spread of each column: mean and standard deviation, or minimum and range.
class ColumnScaling {
  public:
    static constexpr std::uint64_t kEarly = 64;  // events after which the clip of the running moments is enough

    // robust: a few wild values among the first events are found and taken out of the moments.
    ColumnScaling(bool by_range, std::uint64_t warmup, bool robust = false)
        : by_range(by_range), warmup(warmup), robust(robust) {}

    std::size_t width() const { return first.size(); }
    std::uint64_t known() const { return std::min(seen, warmup); }

    // Adds columns after `events` events, as if they had had their first value in all of them.
    void widen(std::span<const double> fresh, std::uint64_t events) {
        if (first.empty()) seen = events;
        early.clear();  // its rows are narrower
        first.insert(first.end(), fresh.begin(), fresh.end());
        for (auto* moment : {&low, &high}) {
            if (by_range) moment->insert(moment->end(), fresh.begin(), fresh.end());
            else moment->resize(first.size());
        }
    }

    std::size_t bytes() const { return (3 * width() + early.capacity()) * sizeof(double); }
    // What the first rows take, which robust moments are measured from.
    static std::size_t early_bytes(std::size_t width) { return kEarly * width * sizeof(double); }

    void learn(const double* rows, std::size_t n, double* out) {
        if (robust && seen < kEarly) {
            if (const std::size_t part = until_check(); part < n) {
                learn(rows, part, out);
                return learn(rows + part * width(), n - part, out + part * width());
            }
        }
        const auto fresh = static_cast<std::size_t>(std::min<std::uint64_t>(n, warmup - known()));
        if (by_range) learn_range(rows, fresh, out);
        else learn_moments(rows, fresh, out);
        seen += n;
        if (robust && seen <= kEarly) check_early(rows, n);
        if (fresh < n) scale(rows + fresh * width(), n - fresh, out + fresh * width());
    }

    void scale(const double* rows, std::size_t n, double* out) const {
        std::vector<double> centre(width()), spread(width());
        measure(centre.data(), spread.data());
        for (std::size_t r = 0; r < n; ++r) place(rows + r * width(), centre.data(), spread.data(), out + r * width());
    }

    // The same for sparse rows: a column is divided by its root mean square, or by its range including 0, and not
    // centred, so that zeros stay zeros. requires: columns that began with 0, each at most once per row.
    void learn_sparse(std::span<const std::int64_t> starts, const std::int32_t* columns, const double* values,
                      double* out) {
        for (std::size_t r = 0; r + 1 < starts.size(); ++r, ++seen)
            for (std::int64_t at = starts[r]; at < starts[r + 1]; ++at) {
                const auto c = static_cast<std::size_t>(columns[at]);
                if (seen < warmup) take(c, values[at]);
                out[at] = divided(c, values[at], std::min(seen + 1, warmup));
            }
    }
    void scale_sparse(std::size_t count, const std::int32_t* columns, const double* values, double* out) const {
        for (std::size_t at = 0; at < count; ++at)
            out[at] = divided(static_cast<std::size_t>(columns[at]), values[at], std::max<std::uint64_t>(known(), 1));
    }

    // The derivative of each scaled column by the raw one.
    std::vector<double> slopes() const {
        std::vector<double> centre(width()), spread(width());
        measure(centre.data(), spread.data());
        for (std::size_t c = 0; c < width(); ++c) centre[c] = 1 / outliers::nonzero(spread[c]);
        return centre;
    }

    // Saves or loads everything but the method. width: of the rows of a loaded scaling that has seen samples.
    void visit(Archive& archive, std::size_t rows_width) {
        archive.count("seen", seen);
        archive.numbers("first", first);
        if (archive.loads && first.size() != (seen == 0 ? 0 : rows_width))
            archive.refuse("first", "does not fit the others");
        archive.numbers("low", low, width());
        archive.numbers("high", high, width());
        if (!robust) return;
        archive.numbers("early", early);
        if (archive.loads && early.size() > std::min(seen, kEarly) * width())
            archive.refuse("early", "does not fit the others");
    }

    void begin() {
        saved_low_ = low;
        saved_high_ = high;
        saved_seen_ = seen;
        saved_first_ = first;
        if (robust && seen + 1 == kEarly) saved_early_ = early;
    }
    void rollback() {
        low = saved_low_;
        high = saved_high_;
        if (seen == saved_seen_) return;
        if (robust && seen == kEarly) early = saved_early_;
        else if (robust && seen < kEarly) early.resize(early.size() - width());
        seen = saved_seen_;
        first = saved_first_;
    }

    bool by_range;
    std::uint64_t warmup;  // events after which the statistics are frozen
    bool robust;
    std::uint64_t seen = 0;
    std::vector<double> first;
    // minimum and maximum; or sum and sum of squares of differences from the first value
    std::vector<double> low, high;
    std::vector<double> early;  // the first rows, where moments are robust; freed after kEarly events

  private:
    static constexpr double kQuartiles = 3;  // quartile deviations from the median that early values count at most
    // Times the robust deviation: only wild values make moments so wide; sparse counts reach 40.
    static constexpr double kWild = 100;
    std::uint64_t saved_seen_ = 0;
    std::vector<double> saved_low_, saved_high_, saved_first_, saved_early_;

    // Events until the moments are compared with the early values, which is after 8, 16, 32 and 64.
    std::size_t until_check() const {
        std::uint64_t position = 8;
        while (position <= seen) position *= 2;
        return static_cast<std::size_t>(position - seen);
    }
    void check_early(const double* rows, std::size_t n) {
        if (early.empty()) early.reserve(kEarly * width());
        early.insert(early.end(), rows, rows + n * width());
        if (seen < 8 || (seen & (seen - 1)) != 0 || seen > warmup || by_range || early.size() != seen * width()) {
            if (seen == kEarly) early = std::vector<double>();
            return;
        }
        std::vector<double> values(seen);
        for (std::size_t c = 0; c < width(); ++c) {
            for (std::size_t r = 0; r < seen; ++r) values[r] = early[r * width() + c];
            std::sort(values.begin(), values.end());
            const RobustMoments found = robust_moments(values, kQuartiles);
            double mean, spread;
            const auto count = static_cast<double>(seen);
            outliers::moments(low[c], high[c], count, mean, spread);
            if (!(found.quartile > 0) || !(found.deviation > 0) || spread <= kWild * found.deviation) continue;
            const double off = found.mean - found.median;
            first[c] = found.median;
            low[c] = count * off;
            high[c] = count * (found.deviation * found.deviation + off * off);
        }
        if (seen == kEarly) early = std::vector<double>();
    }

    void measure(double* centre, double* spread) const {
        if (by_range) {
            for (std::size_t c = 0; c < width(); ++c) {
                centre[c] = low[c];
                spread[c] = high[c] - low[c];
            }
            return;
        }
        moments(static_cast<double>(std::max<std::uint64_t>(known(), 1)), centre, spread);
        for (std::size_t c = 0; c < width(); ++c) centre[c] += first[c];
    }
    // Mean minus the first value, and deviation.
    void moments(double count, double* __restrict mean, double* __restrict spread) const {
        const double *sums = low.data(), *squares = high.data();
        for (std::size_t c = 0, n = width(); c < n; ++c)
            outliers::moments(sums[c], squares[c], count, mean[c], spread[c]);
    }

    // One value of a sparse column, which was 0 in all events without it.
    void take(std::size_t c, double x) {
        if (by_range) {
            low[c] = std::min(low[c], x);
            high[c] = std::max(high[c], x);
            return;
        }
        const double count = static_cast<double>(std::max<std::uint64_t>(seen, 1));
        const double clipped = outliers::clipped(x, 0, outliers::deviation(high[c] / count), outliers::limit(seen));
        low[c] += clipped;
        high[c] += clipped * clipped;
    }
    double divided(std::size_t c, double x, std::uint64_t events) const {
        if (by_range) return x / outliers::nonzero(high[c] - low[c]);
        const double z =
            outliers::compressed(x / outliers::nonzero(outliers::deviation(high[c] / static_cast<double>(events))));
        return std::isfinite(z) ? z : 0.0;
    }

    void place(const double* row, const double* centre, const double* spread, double* __restrict out) const {
        std::int64_t beyond = 0;
        for (std::size_t c = 0, n = width(); c < n; ++c) {
            out[c] = outliers::standardized(row[c], centre[c], spread[c]);
            beyond |= std::abs(out[c]) <= outliers::kClip ? 0 : 1;  // or it is NaN
        }
        if (beyond) compress(out);
    }
    void compress(double* out) const {
        for (std::size_t c = 0, n = width(); c < n; ++c) {
            if (!by_range) out[c] = outliers::compressed(out[c]);
            if (!std::isfinite(out[c])) out[c] = 0;  // after an overflow the column is unknown
        }
    }

    void learn_range(const double* rows, std::size_t n, double* out) {
        std::vector<double> spread(width());
        for (std::size_t r = 0; r < n; ++r, rows += width(), out += width()) {
            for (std::size_t c = 0; c < width(); ++c) {
                low[c] = std::min(low[c], rows[c]);
                high[c] = std::max(high[c], rows[c]);
                spread[c] = high[c] - low[c];
            }
            place(rows, low.data(), spread.data(), out);
        }
    }

    void learn_moments(const double* rows, std::size_t n, double* out) {
        std::vector<double> mean(width()), spread(width());
        moments(static_cast<double>(std::max<std::uint64_t>(seen, 1)), mean.data(), spread.data());
        for (std::size_t r = 0; r < n; ++r, rows += width(), out += width()) {
            if (add(rows, outliers::limit(seen + r), static_cast<double>(seen + r + 1), mean.data(), spread.data(),
                    out))
                compress(out);
        }
    }
    // Adds an event to the sums, clipped at `far` deviations from the mean so far, and scales it, in one pass over the
    // columns, so that divisions and roots overlap. Returns whether a scaled value needs compression.
    bool add(const double* row, double far, double count, double* __restrict mean, double* __restrict spread,
             double* __restrict out) {
        double* __restrict sums = low.data(), * __restrict squares = high.data();
        const double* begin = first.data();
        std::int64_t beyond = 0;
        for (std::size_t c = 0, n = width(); c < n; ++c) {
            const double clipped = outliers::clipped(row[c] - begin[c], mean[c], spread[c], far);
            const double sum = sums[c] + clipped, total = squares[c] + clipped * clipped;
            double middle, deviation;
            outliers::moments(sum, total, count, middle, deviation);
            const double z = outliers::standardized(row[c], middle + begin[c], deviation);
            sums[c] = sum;
            squares[c] = total;
            mean[c] = middle;
            spread[c] = deviation;
            out[c] = z;
            beyond |= std::abs(z) <= outliers::kClip ? 0 : 1;
        }
        return beyond != 0;
    }
};

}  // namespace gristmill
