// Columns by the order of their values: each value becomes the normal score of its rank among a sample of the last few thousand events.
//
// No unit, no outlier and no monotone change of a column matters. The map of a column is piecewise linear between at most 32 quantiles
// of the sample and grows with a logarithm beyond its ends. It is renewed at fixed positions of the stream, each a quarter farther than the one
// before, if the columns have changed; numbers that were scaled by the map before can follow to the present one. The sample and the maps depend
// on the events and their order only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/adapt/scaling.hpp"
#include "core/base/archive.hpp"
#include "core/base/elementary.hpp"
#include "core/base/random.hpp"

namespace gristmill {

// The normal quantile of a share between 0 and 1 (Wichura, Algorithm AS 241, Applied Statistics 37, 1988; error below 1e-15).
inline double normal_quantile(double share) {
    auto ratio = [](double r, const double(&up)[8], const double(&down)[8]) {
        double above = up[7], below = down[7];
        for (int i = 6; i >= 0; --i) above = above * r + up[i], below = below * r + down[i];
        return above / below;
    };
    constexpr double a[] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                            1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                            3.3430575583588128105e+4, 2.5090809287301226727e+3};
    constexpr double b[] = {1.0,
                            4.2313330701600911252e+1,
                            6.8718700749205790830e+2,
                            5.3941960214247511077e+3,
                            2.1213794301586595867e+4,
                            3.9307895800092710610e+4,
                            2.8729085735721942674e+4,
                            5.2264952788528545610e+3};
    constexpr double c[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                            3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                            2.27238449892691845833e-2, 7.74545014278341407640e-4};
    constexpr double d[] = {1.0,
                            2.05319162663775882187e0,
                            1.67638483018380384940e0,
                            6.89767334985100004550e-1,
                            1.48103976427480074590e-1,
                            1.51986665636164571966e-2,
                            5.47593808499534494600e-4,
                            1.05075007164441684324e-9};
    constexpr double e[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                            2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                            2.71155556874348757815e-5, 2.01033439929228813265e-7};
    constexpr double f[] = {1.0,
                            5.99832206555887937690e-1,
                            1.36929880922735805310e-1,
                            1.48753612908506148525e-2,
                            7.86869131145613259100e-4,
                            1.84631831751005468180e-5,
                            1.42151175831644588870e-7,
                            2.04426310338993978564e-15};
    const double from = share - 0.5;
    if (std::abs(from) <= 0.425) return from * ratio(0.180625 - from * from, a, b);
    const double r = std::sqrt(-elementary::log(from < 0 ? share : 1 - share));
    const double size = r <= 5 ? ratio(r - 1.6, c, d) : ratio(r - 5, e, f);
    return from < 0 ? -size : size;
}

// What becomes of the values of one column.
class RankMap {
  public:
    static constexpr std::size_t kKnots = 32;

    // From all values of a sample, sorted. requires: at least one.
    void measure(std::span<const double> sorted) {
        std::vector<double> values, scores;
        const auto n = static_cast<double>(sorted.size());
        for (std::size_t at = 0; at < sorted.size();) {  // the scores of mid-ranks
            std::size_t end = at;
            while (end < sorted.size() && sorted[end] == sorted[at]) ++end;
            values.push_back(sorted[at]);
            scores.push_back(normal_quantile(static_cast<double>(at + end) / (2 * n)));
            at = end;
        }
        if (values.size() > kKnots) quantiles(sorted, values, scores);
        count_ = values.size();
        std::copy(values.begin(), values.end(), knots_);
        std::copy(scores.begin(), scores.end(), scores_);
        if (count_ > 1) standardise(sorted);
    }

    std::size_t count() const { return count_; }
    std::span<const double> knots() const { return {knots_, count_}; }
    std::span<const double> scores() const { return {scores_, count_}; }
    double scaled(double x) const {
        if (count_ < 2) return 0;
        if (x < knots_[0]) return scores_[0] - beyond(knots_[0] - x, unit(false));
        if (x > knots_[count_ - 1]) return scores_[count_ - 1] + beyond(x - knots_[count_ - 1], unit(true));
        return between(x, knots_, scores_);
    }
    // A value that is scaled to z; if there is a single value, that one.
    double value(double z) const {
        if (count_ < 2) return count_ == 0 ? 0.0 : knots_[0];
        if (z < scores_[0]) return knots_[0] - within(scores_[0] - z, unit(false));
        if (z > scores_[count_ - 1]) return knots_[count_ - 1] + within(z - scores_[count_ - 1], unit(true));
        return between(z, scores_, knots_);
    }
    // How fast the scaled value moves with the value.
    double slope(double x) const {
        if (count_ < 2) return 0;
        const bool low = x<knots_[0], high = x> knots_[count_ - 1];
        if (!low && !high) {
            const std::size_t i = segment(x, knots_);
            return (scores_[i + 1] - scores_[i]) / (knots_[i + 1] - knots_[i]);
        }
        const double w = unit(high), away = low ? knots_[0] - x : x - knots_[count_ - 1];
        if (!(away / w <= kLargest)) return 0;
        const double l = elementary::log1p(away / w), half = 1 + l / 2;
        return 1 / (half * half * (w + away));
    }

    template <class F>
    void visit(F number, std::size_t& count) {
        count = count_;
        for (std::size_t i = 0; i < kKnots; ++i) number(knots_[i]), number(scores_[i]);
    }
    void set_count(std::size_t count) { count_ = count; }
    bool is_fine() const {
        for (std::size_t i = 1; i < count_; ++i)
            if (!(knots_[i - 1] < knots_[i]) || !(scores_[i - 1] < scores_[i])) return false;
        return count_ <= kKnots;
    }

  private:
    // Values at evenly spaced shares (Hazen's positions); equal ones share their mean score.
    static void quantiles(std::span<const double> sorted, std::vector<double>& values, std::vector<double>& scores) {
        values.clear(), scores.clear();
        const auto n = static_cast<double>(sorted.size());
        std::size_t equal = 0;
        for (std::size_t i = 0; i < kKnots; ++i) {
            const double share = (static_cast<double>(i) + 0.5) / kKnots,
                         place = std::clamp(share * n - 0.5, 0.0, n - 1);
            const auto below = static_cast<std::size_t>(place);
            const double low = sorted[below], high = sorted[std::min(below + 1, sorted.size() - 1)];
            const double value = low + (place - static_cast<double>(below)) * (high - low),
                         score = normal_quantile(share);
            if (!values.empty() && !(value > values.back())) {
                ++equal;
                scores.back() += (score - scores.back()) / static_cast<double>(equal + 1);
            } else {
                equal = 0;
                values.push_back(value), scores.push_back(score);
            }
        }
    }
    // Mean 0 and deviation 1 over the sample.
    void standardise(std::span<const double> sorted) {
        double sum = 0, squares = 0;
        for (const double x : sorted) {
            const double z = scaled(x);
            sum += z, squares += z * z;
        }
        const auto n = static_cast<double>(sorted.size());
        const double mean = sum / n, deviation = std::sqrt(std::max(squares / n - mean * mean, 1e-12));
        for (std::size_t i = 0; i < count_; ++i) scores_[i] = (scores_[i] - mean) / deviation;
    }
    // requires: x between the ends of `from`. The segment that x lies in.
    std::size_t segment(double x, const double* from) const {
        const auto above = static_cast<std::size_t>(std::upper_bound(from, from + count_, x) - from);
        return std::clamp<std::size_t>(above, 1, count_ - 1) - 1;
    }
    double between(double x, const double* from, const double* to) const {
        const std::size_t i = segment(x, from);
        return to[i] + (x - from[i]) / (from[i + 1] - from[i]) * (to[i + 1] - to[i]);
    }
    // Values per score in the outer segments.
    double unit(bool high) const {
        const std::size_t few = std::max<std::size_t>(1, count_ / 16);
        const std::size_t first = high ? count_ - 1 - few : 0, last = first + few;
        return (knots_[last] - knots_[first]) / (scores_[last] - scores_[first]);
    }
    static double beyond(double away, double unit) {
        if (!(away / unit <= kLargest)) return 2;  // the limit; knots may be so close that `unit` is 0
        const double l = elementary::log1p(away / unit);
        return l / (1 + l / 2);
    }
    static double within(double z, double unit) {  // the inverse: z stays below 2
        const double t = std::min(z, kFarthest);
        return unit * elementary::expm1(t / (1 - t / 2));
    }
    static constexpr double kFarthest = 1.99, kLargest = std::numeric_limits<double>::max();

    double knots_[kKnots] = {}, scores_[kKnots] = {};
    std::size_t count_ = 0;
};

class RankScaling {
  public:
    static constexpr std::size_t kSample = 256;

    // warmup: events after which everything stays as it is. sample: rows that quantiles are taken from.
    explicit RankScaling(std::uint64_t warmup, std::size_t sample = kSample) : warmup(warmup), sample_rows(sample) {}

    std::size_t width() const { return maps_.size(); }
    std::size_t bytes() const { return bytes_for(width(), sample_rows); }
    static std::size_t bytes_for(std::size_t width, std::size_t sample) {
        return width * (sample * sizeof(double) + 2 * sizeof(RankMap));
    }
    // Rows of a sample that takes, with the maps, no more than an eighth of `memory`; 0 where there is none.
    static std::size_t sample_within(std::size_t memory, std::size_t width) {
        for (const std::size_t rows : {kSample, kSample / 2})
            if (bytes_for(width, rows) <= memory / 8) return rows;
        return 0;
    }
    std::uint64_t renewals() const { return renewals_; }
    std::span<const double> sample() const { return sample_; }
    const RankMap& map(std::size_t column) const { return maps_[column]; }
    // Events until the next one at which maps may be renewed, that one included.
    std::uint64_t due() const {
        if (seen >= warmup) return ~std::uint64_t{0};
        return seen == 0 ? 1 : std::max<std::uint64_t>(next_ > seen ? next_ - seen : 1, 1);
    }

    // Events that can be learned in one call in which maps are renewed before the first of them, or not at all.
    std::uint64_t run() const {
        const std::uint64_t left = due();
        if (left > 1) return left - 1;
        return following(next_) - next_;
    }

    // Columns that come after `events` events, as if each had had its first value in all of them.
    void widen(std::span<const double> fresh, std::uint64_t events) {
        if (width() == 0) seen = events, next_ = following(std::max<std::uint64_t>(events, 1) - 1);
        const std::size_t before = width(), now = before + fresh.size();
        const std::size_t rows = before == 0 ? static_cast<std::size_t>(std::min<std::uint64_t>(events, sample_rows))
                                             : sample_.size() / before;
        std::vector<double> wider(rows * now);
        for (std::size_t r = 0; r < rows; ++r) {
            std::copy_n(sample_.begin() + static_cast<std::ptrdiff_t>(r * before), before,
                        wider.begin() + static_cast<std::ptrdiff_t>(r * now));
            std::copy(fresh.begin(), fresh.end(), wider.begin() + static_cast<std::ptrdiff_t>(r * now + before));
        }
        sample_.swap(wider);
        maps_.resize(now), before_.resize(now);
        for (std::size_t c = before; c < now; ++c) {
            const double only[] = {fresh[c - before]};
            maps_[c].measure(only);
            before_[c] = maps_[c];
        }
    }

    void learn(const double* rows, std::size_t n, double* out) {
        for (std::size_t r = 0; r < n; ++r, rows += width(), out += width()) {
            if (seen < warmup) take(rows);
            ++seen;
            if (seen <= warmup && seen == next_) {
                next_ = following(seen);
                consider();
            }
            scale(rows, 1, out);
        }
    }
    void scale(const double* rows, std::size_t n, double* out) const {
        for (std::size_t r = 0; r < n; ++r, rows += width(), out += width())
            for (std::size_t c = 0; c < width(); ++c) out[c] = maps_[c].scaled(rows[c]);
    }
    // Rows that were scaled before the last renewal, as they are scaled now.
    void follow(const double* rows, std::size_t n, double* out) const {
        for (std::size_t r = 0; r < n; ++r, rows += width(), out += width())
            for (std::size_t c = 0; c < width(); ++c) out[c] = followed(c, rows[c]);
    }
    double followed(std::size_t column, double z) const { return maps_[column].scaled(before_[column].value(z)); }
    // Values that are scaled to these numbers.
    void values(const double* rows, std::size_t n, double* out) const {
        for (std::size_t r = 0; r < n; ++r, rows += width(), out += width())
            for (std::size_t c = 0; c < width(); ++c) out[c] = maps_[c].value(rows[c]);
    }
    // One scaling of several that have seen events, of one width: of each as many rows as is its part of the events.
    static RankScaling merged(std::span<const RankScaling* const> parts) {
        RankScaling found(parts[0]->warmup, parts[0]->sample_rows);
        const std::size_t d = parts[0]->width();
        for (const RankScaling* part : parts) found.seen += part->seen;
        for (const RankScaling* part : parts) {
            const std::size_t rows = part->sample_.size() / d;
            const double share = static_cast<double>(part->seen) / static_cast<double>(found.seen);
            const auto wanted = static_cast<std::size_t>(std::ceil(share * static_cast<double>(found.sample_rows)));
            const std::size_t left = found.sample_rows - found.sample_.size() / d,
                              taken = std::min({rows, wanted, left});
            for (std::size_t at = 0; at < taken; ++at) {
                const auto row = part->sample_.begin() + static_cast<std::ptrdiff_t>(at * rows / taken * d);
                found.sample_.insert(found.sample_.end(), row, row + static_cast<std::ptrdiff_t>(d));
            }
        }
        found.maps_.resize(d);
        while (found.next_ <= found.seen) found.next_ = following(found.next_);
        found.last_ = 0;
        found.consider();
        found.before_ = found.maps_;
        return found;
    }
    // How fast each scaled column moves with the raw one, at the median of the sample.
    std::vector<double> slopes() const {
        std::vector<double> found(width());
        for (std::size_t c = 0; c < width(); ++c) found[c] = maps_[c].slope(maps_[c].value(0));
        return found;
    }

    // Moments in place of ranks: those of the sample, as if they were of all events so far.
    ColumnScaling moments() const {
        ColumnScaling found(false, warmup);
        if (seen == 0) return found;
        const std::size_t d = width(), rows = sample_.size() / d;
        found.widen({sample_.data(), d}, seen);
        const double weight = static_cast<double>(std::min(seen, warmup)) / static_cast<double>(rows);
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t c = 0; c < d; ++c) {
                const double off = sample_[r * d + c] - sample_[c];
                found.low[c] += weight * off;
                found.high[c] += weight * off * off;
            }
        return found;
    }
    // What was scaled to this row. row: of scaled values, which become the values.
    void restore_values(double* row) const {
        for (std::size_t c = 0; c < width(); ++c) row[c] = maps_[c].value(row[c]);
    }

    void visit(Archive& archive) {
        std::uint64_t columns = width();
        archive.count("seen", seen);
        archive.count("columns", columns);
        archive.count("next", next_);
        archive.count("last", last_);
        archive.count("renewals", renewals_);
        std::uint64_t most = sample_rows;
        archive.count("sample_rows", most, kSample);
        if (most < 1 || most > kSample) archive.refuse("sample_rows", "is out of range");
        sample_rows = static_cast<std::size_t>(most);
        archive.numbers("sample", sample_);
        std::vector<double> numbers;
        std::vector<std::int64_t> counts;
        if (!archive.loads) save(numbers, counts);
        archive.numbers("maps", numbers,
                        archive.loads ? static_cast<std::size_t>(columns) * 4 * RankMap::kKnots : numbers.size());
        archive.numbers("counts", counts, archive.loads ? static_cast<std::size_t>(columns) * 2 : counts.size());
        if (!archive.loads) return;
        if (seen == 0 || columns == 0 || sample_.size() % columns != 0 || sample_.size() / columns > sample_rows ||
            sample_.empty())
            archive.refuse("sample", "does not fit the others");
        maps_.assign(columns, {}), before_.assign(columns, {});
        const double* from = numbers.data();
        for (std::size_t c = 0, at = 0; c < columns; ++c)
            for (RankMap* map : {&maps_[c], &before_[c]}) {
                std::size_t unused = 0;
                if (counts[at] < 0 || counts[at] > static_cast<std::int64_t>(RankMap::kKnots))
                    archive.refuse("counts", "is out of range");
                map->visit([&](double& number) { number = *from++; }, unused);
                map->set_count(static_cast<std::size_t>(counts[at++]));
                if (!map->is_fine()) archive.refuse("maps", "does not ascend");
            }
    }

    // Undo of one event at which no map may be renewed: begin() before it, rollback() after it.
    void begin() { replaced_.reset(), seen_before_ = seen; }
    void rollback() {
        if (seen == seen_before_) return;
        seen = seen_before_;
        if (!replaced_) return;
        if (replaced_->empty()) sample_.resize(sample_.size() - width());
        else
            std::copy(replaced_->begin(), replaced_->end(),
                      sample_.begin() + static_cast<std::ptrdiff_t>(slot_ * width()));
        replaced_.reset();
    }

    std::uint64_t warmup;
    std::size_t sample_rows;
    std::uint64_t seen = 0;

  private:
    static constexpr std::uint64_t kRecent = 4096;  // events that the sample is drawn from
    static constexpr std::uint64_t kOften = 2048, kDense = 8192;
    static constexpr std::uint64_t kAlways = 64;  // events up to which every due renewal happens
    static constexpr double kChanged = 0.3;  // mean change of a scaled column that is worth a renewal

    static std::uint64_t following(std::uint64_t n) { return n < kDense ? std::max(n + 1, n + n / 4) : n + kOften; }
    void save(std::vector<double>& numbers, std::vector<std::int64_t>& counts) {
        for (std::size_t c = 0; c < width(); ++c)
            for (RankMap* map : {&maps_[c], &before_[c]}) {
                std::size_t count = 0;
                map->visit([&](double& number) { numbers.push_back(number); }, count);
                counts.push_back(static_cast<std::int64_t>(count));
            }
    }
    void take(const double* row) {
        const std::size_t d = width();
        if (seen < sample_rows && sample_.size() < sample_rows * d) {
            replaced_.emplace();
            sample_.insert(sample_.end(), row, row + d);
            return;
        }
        Random random{seen, 0};
        const std::uint64_t slot = random.next() % std::min(seen + 1, kRecent);
        if (slot >= sample_.size() / d) return;
        const auto place = sample_.begin() + static_cast<std::ptrdiff_t>(slot * d);
        replaced_.emplace(place, place + static_cast<std::ptrdiff_t>(d));
        slot_ = static_cast<std::size_t>(slot);
        std::copy_n(row, d, place);
    }
    // New maps, if they differ enough from the present ones.
    void consider() {
        const std::size_t d = width(), rows = sample_.size() / d;
        std::vector<RankMap> fresh(d);
        std::vector<double> values(rows);
        bool changed = seen <= kAlways || seen >= 2 * last_;
        for (std::size_t c = 0; c < d; ++c) {
            for (std::size_t r = 0; r < rows; ++r) values[r] = sample_[r * d + c];
            std::sort(values.begin(), values.end());
            fresh[c].measure(values);
            double moved = 0;
            for (const double x : values) moved += std::abs(fresh[c].scaled(x) - maps_[c].scaled(x));
            changed = changed || moved > kChanged * static_cast<double>(rows) ||
                      (maps_[c].count() < 2 && fresh[c].count() > 1);
        }
        if (!changed) return;
        before_.swap(maps_);
        maps_.swap(fresh);
        last_ = seen;
        ++renewals_;
    }

    std::vector<double> sample_;  // row by row
    std::vector<RankMap> maps_, before_;
    std::uint64_t next_ = 1, last_ = 0, renewals_ = 0;
    std::optional<std::vector<double>> replaced_;  // by the last event: the row in slot_, or none where it was appended
    std::size_t slot_ = 0;
    std::uint64_t seen_before_ = 0;
};

}  // namespace gristmill
