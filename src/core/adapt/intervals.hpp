// Prediction intervals: half widths that cover given shares of future events, learned from the errors of the
// predictions.
//
// Adaptive conformal inference (Gibbs and Candes 2021) with thresholds in place of levels: an error is measured in
// units of the running mean error, each level has one threshold per step size, which grows by a factor after a miss and
// shrinks after a hit, and the shares of the step sizes follow their pinball losses (their later aggregation). A last
// factor of fixed step follows the misses of the published intervals: within its bounds, its logarithm divided by the
// step is the number of misses minus the expected number.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "core/base/archive.hpp"
#include "core/base/elementary.hpp"

namespace gristmill {

class Interval {
  public:
    static constexpr std::size_t kCount = 5;
    static constexpr std::array<double, kCount> kLevels{0.5, 0.8, 0.9, 0.95, 0.99};
    using Row = std::array<double, kCount>;

    // One event: target minus prediction. Errors that are not finite are skipped.
    void learn(double error) noexcept {
        const double size = std::abs(error);
        if (!(size < kLargest)) return;
        if (mean_ > 0) {  // otherwise every prediction was exact so far
            const double units = std::min(size / mean_, kFar);
            const Row predicted = thresholds();
            for (std::size_t l = 0; l < kCount; ++l) adapt(l, units, predicted[l]);
        }
        count_ += 1;
        mean_ += (size - mean_) / std::min(count_, kMemory);
        if (mean_ < kSmallest) mean_ = 0;
    }

    // Half width of the interval around the next prediction. requires: a coverage from the lowest to the highest level.
    double half(double coverage) const {
        if (count_ == 0) return std::numeric_limits<double>::infinity();
        const Row now = thresholds();
        std::size_t l = 0;
        while (kLevels[l] < coverage) ++l;
        if (kLevels[l] == coverage) return now[l] * mean_;
        // The tails of errors are about exponential: interpolate linearly in log(1 - coverage).
        const double from = elementary::log(1 - kLevels[l - 1]), to = elementary::log(1 - kLevels[l]);
        const double share = (elementary::log(1 - coverage) - from) / (to - from);
        return (now[l - 1] + share * (now[l] - now[l - 1])) * mean_;
    }

    void rescale(double factor) { mean_ *= factor; }  // the targets were multiplied by `factor`

    // Visits the state in a fixed order, for saving and loading.
    template <class F>
    void each(F&& f) {
        f(count_);
        f(mean_);
        for (auto* table : {&experts_, &shares_})
            for (auto& row : *table)
                for (double& x : row) f(x);
        for (double& x : corrections_) f(x);
    }
    static constexpr std::size_t kNumbers = 2 + 2 * kCount * kCount + kCount;
    bool valid() const {
        bool valid = count_ >= 0 && mean_ >= 0 && mean_ < kLargest;
        for (std::size_t l = 0; l < kCount; ++l) {
            double sum = 0;
            for (const double share : shares_[l]) {
                sum += share;
                valid = valid && share >= 0;
            }
            for (const double t : experts_[l]) valid = valid && t >= kLeast && t <= kFar;
            valid = valid && std::abs(sum - 1) < 1e-6 && corrections_[l] >= kLastLeast && corrections_[l] <= kLastMost;
        }
        return valid;
    }

  private:
    static constexpr Row kSteps{0.005, 0.01, 0.02, 0.05, 0.15};  // gamma
    static constexpr double kLastStep = 0.01;  // step of the factor that follows the published intervals
    static constexpr double kMemory = 128;  // events in the running mean error
    static constexpr double kRate = 0.15, kWorst = 5;  // learning rate of the shares; largest loss that counts
    static constexpr double kMixed = 0.001;  // part of the shares that is redistributed evenly at each event
    // Bounds, so that a long time without errors, or one large error, is forgotten soon.
    static constexpr double kLeast = 1e-3, kFar = 1e6, kLastLeast = 0.1, kLastMost = 10;
    static constexpr double kLargest = 1e290, kSmallest = 1e-290;

    struct Factors {
        std::array<Row, kCount> up, down;  // by level, then step size
        Row last_up, last_down;
        Factors() {
            for (std::size_t l = 0; l < kCount; ++l) {
                for (std::size_t k = 0; k < kCount; ++k) {
                    up[l][k] = elementary::exp(kSteps[k] * kLevels[l]);
                    down[l][k] = elementary::exp(-kSteps[k] * (1 - kLevels[l]));
                }
                last_up[l] = elementary::exp(kLastStep * kLevels[l]);
                last_down[l] = elementary::exp(-kLastStep * (1 - kLevels[l]));
            }
        }
    };
    static const Factors& factors() {
        static const Factors made;
        return made;
    }

    // Thresholds in units of the mean error; a higher level is never narrower.
    Row thresholds() const {
        Row out{};
        double widest = 0;
        for (std::size_t l = 0; l < kCount; ++l) {
            double mean = 0;
            for (std::size_t k = 0; k < kCount; ++k) mean += shares_[l][k] * experts_[l][k];
            out[l] = widest = std::max(widest, mean * corrections_[l]);
        }
        return out;
    }

    void adapt(std::size_t l, double units, double predicted) noexcept {
        const Factors& by = factors();
        const double level = kLevels[l], unit = 1 / (predicted * (1 - level));
        double sum = 0;
        for (std::size_t k = 0; k < kCount; ++k) {
            double &threshold = experts_[l][k], &share = shares_[l][k];
            const bool miss = units > threshold;
            const double loss = (miss ? level * (units - threshold) : (1 - level) * (threshold - units)) * unit;
            threshold = std::clamp(threshold * (miss ? by.up : by.down)[l][k], kLeast, kFar);
            sum += share *= 1 - kRate * std::min(loss, kWorst);
        }
        const double scale = (1 - kMixed) / sum;
        for (double& share : shares_[l]) share = scale * share + kMixed / static_cast<double>(kCount);
        corrections_[l] =
            std::clamp(corrections_[l] * (units > predicted ? by.last_up : by.last_down)[l], kLastLeast, kLastMost);
    }

    static constexpr Row same(double x) { return {x, x, x, x, x}; }
    double count_ = 0, mean_ = 0;  // events; mean absolute error of the last ones
    // initial values between normal and Laplacian errors
    std::array<Row, kCount> experts_{same(0.8), same(1.6), same(2.2), same(2.8), same(4.2)};
    std::array<Row, kCount> shares_{same(0.2), same(0.2), same(0.2), same(0.2), same(0.2)};
    Row corrections_ = same(1.0);
};

// One interval per target.
class Intervals {
  public:
    explicit Intervals(std::size_t targets = 0) : each_(targets) {}
    std::size_t targets() const { return each_.size(); }
    std::size_t bytes() const { return each_.size() * sizeof(Interval); }
    void learn(std::span<const double> predicted, const double* targets) noexcept {
        for (std::size_t o = 0; o < each_.size(); ++o) each_[o].learn(targets[o] - predicted[o]);
    }
    double half(std::size_t target, double coverage) const { return each_[target].half(coverage); }
    void rescale(std::size_t target, double factor) {
        if (target < each_.size()) each_[target].rescale(factor);
    }

    // Weighted means over those that have seen errors; the numbers of samples add up. requires: as many targets in each.
    void unite(std::span<const Intervals* const> parts, std::span<const double> shares) {
        double total = 0;
        for (std::size_t at = 0; at < parts.size(); ++at)
            if (parts[at]->knows()) total += shares[at];
        if (!(total > 0)) {
            each_ = parts[0]->each_;
            return;
        }
        for (std::size_t o = 0; o < each_.size(); ++o) {
            std::vector<double> sums(Interval::kNumbers);
            double events = 0;
            for (std::size_t at = 0; at < parts.size(); ++at) {
                Interval own = parts[at]->each_[o];
                std::size_t i = 0;
                own.each([&](double& x) {
                    if (i == 0) events += x;
                    if (parts[at]->knows()) sums[i] += shares[at] / total * x;
                    ++i;
                });
            }
            sums[0] = events;
            auto next = sums.begin();
            each_[o].each([&](double& x) { x = *next++; });
        }
    }

    void visit(Archive& archive) {
        if (archive.loads && !archive.has("intervals")) return;  // an expert of a race is saved without them
        std::vector<double> numbers;
        for (auto& one : each_) one.each([&](double& x) { numbers.push_back(x); });
        archive.numbers("intervals", numbers, each_.size() * Interval::kNumbers);
        if (!archive.loads) return;
        auto next = numbers.begin();
        for (auto& one : each_) {
            one.each([&](double& x) { x = *next++; });
            if (!one.valid()) archive.refuse("intervals", "holds a number out of range");
        }
    }

  private:
    bool knows() const {
        return std::any_of(each_.begin(), each_.end(), [](Interval one) {
            double events = -1;
            one.each([&](double& x) { events = events < 0 ? x : events; });
            return events > 0;
        });
    }
    std::vector<Interval> each_;
};

}  // namespace gristmill
