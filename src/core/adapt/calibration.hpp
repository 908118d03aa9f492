// Probabilities from scores: sigmoid(a f + b) for two classes, softmax over a f_c + b_c for more, learned event by
// event from the scores before each event (Platt scaling; Newton steps on the logarithmic loss with slow forgetting).
//
// Without a shift (b = 0) the probabilities keep the sign, or the order, of the scores and only change the confidence.
//
// Scores are divided by their running size, so that the first steps do not depend on the scale of a rule.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/archive.hpp"
#include "core/parts/losses.hpp"

namespace gristmill {

class Calibration {
  public:
    explicit Calibration(bool shifts = true) : shifts_(shifts) {}

    // One event with one score (two classes) or one score per class, and its class. Scores that are not finite are
    // skipped.
    void learn(std::span<const double> scores, std::size_t label) noexcept {
        if (scores.size() == 1) {
            const double shares[] = {0.0, Loss::sigmoid(logit(scores[0]))};
            learn(scores, label, shares);
        } else {
            softmax(scores, shares_.data());
            learn(scores, label, shares_.data());
        }
    }
    // The same with the probabilities of these scores already known; weight: by which its loss is multiplied.
    void learn(std::span<const double> scores, std::size_t label, const double* shares, double weight = 1) noexcept {
        const double range = scores.size() == 1 ? scores[0] : range_of(scores);
        if (!(range * range < kLargest)) return;
        if (scores.size() == 1) learn_two(scores[0], label, shares[1], weight);
        else learn_many(scores, label, shares, weight);
        rescale(range * range);
        if (!std::isfinite(slope_) || !std::isfinite(curvature_) || !std::isfinite(cross_)) forget_slope();
    }

    // One number per class; they sum to 1 and none is 0.
    void probabilities(std::span<const double> scores, std::size_t classes, double* out) const {
        if (classes < 2) {
            std::fill(out, out + classes, 1.0);
        } else if (scores.size() == 1) {
            const double t = logit(scores[0]), e = elementary::exp(-std::abs(t));
            out[t >= 0] = 1 / (1 + e);  // the more likely class
            out[t < 0] = e / (1 + e);
        } else {
            softmax(scores, out);
        }
    }

    // Turns the one score f of two classes into two: -f/2 and f/2.
    void split() {
        offsets_ = {-0.5 * offsets_[0], 0.5 * offsets_[0]};
        curvatures_ = {curvatures_[0], curvatures_[0]};
        cross_ = 0;
        shares_.resize(2);
    }
    // Adds a class with a prior as rare as the events before it suggest.
    void add() {
        offsets_.push_back(shifts_ ? -elementary::log1p(count_) : 0.0);
        curvatures_.push_back(kPrior);
        shares_.resize(offsets_.size());
    }

    // A new calibration for `outputs` scores.
    static Calibration of(std::size_t outputs) {
        Calibration fresh;
        if (outputs > 1) fresh.split();
        for (std::size_t o = 2; o < outputs; ++o) fresh.add();
        return fresh;
    }
    // Number of state values for `outputs` outputs, for callers that store the state themselves.
    static constexpr std::size_t kShared = 5;  // numbers that all outputs share
    static std::size_t count(std::size_t outputs) { return kShared + 2 * outputs; }
    template <class F>
    void load(std::size_t outputs, const F& number) {
        count_ = number(0);
        set_square(number(1));
        slope_ = number(2);
        curvature_ = number(3);
        cross_ = number(4);
        offsets_.resize(outputs);
        curvatures_.resize(outputs);
        shares_.resize(outputs);
        for (std::size_t o = 0; o < outputs; ++o) {
            offsets_[o] = number(5 + o);
            curvatures_[o] = number(5 + outputs + o);
        }
    }
    template <class F>
    void save(const F& number) const {
        number(0) = count_;
        number(1) = square_;
        number(2) = slope_;
        number(3) = curvature_;
        number(4) = cross_;
        const std::size_t outputs = offsets_.size();
        for (std::size_t o = 0; o < outputs; ++o) {
            number(5 + o) = offsets_[o];
            number(5 + outputs + o) = curvatures_[o];
        }
    }
    // Whether the state is a possible result of learning.
    bool is_valid() const {
        const auto finite = [](double x) { return std::isfinite(x); };
        return finite(count_) && finite(slope_) && finite(curvature_) && finite(cross_) && count_ >= 0 &&
               square_ >= 0 && square_ < kLargest && slope_ >= 0 && curvature_ >= 0 &&
               std::all_of(offsets_.begin(), offsets_.end(), finite) &&
               std::all_of(
                   curvatures_.begin(), curvatures_.end(), [](double c) { return c >= 0 && std::isfinite(c); }) &&
               cross_ * cross_ <= (curvature_ + kRidge) * (curvatures_[0] + kRidge);
    }

    void visit(Archive& archive) {
        if (archive.loads && !archive.has("calibration")) return;  // merged learners are calibrated again
        std::vector<double> numbers{count_, square_, slope_, curvature_, cross_};
        const std::size_t outputs = offsets_.size();
        archive.numbers("calibration", numbers, numbers.size());
        archive.numbers("calibration_offsets", offsets_, outputs);
        archive.numbers("calibration_curvatures", curvatures_, outputs);
        if (!archive.loads) return;
        count_ = numbers[0];
        set_square(numbers[1]);
        slope_ = numbers[2];
        curvature_ = numbers[3];
        cross_ = numbers[4];
        const bool valid = count_ >= 0 && square_ >= 0 && square_ < kLargest && slope_ >= 0 && curvature_ >= 0 &&
                           std::all_of(
                               curvatures_.begin(), curvatures_.end(), [](double c) { return c >= 0; }) &&
                           cross_ * cross_ <= (curvature_ + kRidge) * (curvatures_[0] + kRidge);
        if (!valid) archive.refuse("calibration", "holds a number out of range");
    }

  private:
    static double range_of(std::span<const double> scores) {
        const auto [low, high] = std::minmax_element(scores.begin(), scores.end());
        return *high - *low;
    }
    static constexpr double kKeep = 0.999;     // forgetting factor of the curvature: about a thousand events count
    static constexpr double kPrior = 1.0;      // initial curvature
    static constexpr double kRidge = 0.1;      // added to every curvature
    static constexpr double kLeast = 1e-4;     // least curvature of an event
    static constexpr double kFarthest = 30.0;  // largest |logit|, so that no probability is 0
    static constexpr double kMemory = 1000;    // events in the running size of the scores
    static constexpr double kLargest = 1e290, kSmallest = 1e-290;

    void set_square(double square) noexcept {
        square_ = square;
        root_ = square_ > kSmallest ? std::sqrt(square_) : 1.0;
        unit_ = 1 / root_;
    }
    double logit(double score) const {
        return std::clamp(slope_ * (score * unit_) + offsets_[0], -kFarthest, kFarthest);
    }

    void learn_two(double score, std::size_t label, double p, double times) noexcept {
        const double z = score * unit_;
        const double weight = times * std::max(p * (1 - p), kLeast), error = times * (p - static_cast<double>(label));
        curvature_ = kKeep * curvature_ + weight * z * z;
        if (!shifts_) {
            slope_ = std::max(slope_ - error * z / (curvature_ + kRidge), 0.0);
            return;
        }
        cross_ = kKeep * cross_ + weight * z;
        curvatures_[0] = kKeep * curvatures_[0] + weight;
        const double a = curvature_ + kRidge, b = curvatures_[0] + kRidge, pull = error / (a * b - cross_ * cross_);
        slope_ = std::max(slope_ - pull * (b * z - cross_), 0.0);
        offsets_[0] -= pull * (a - cross_ * z);
    }

    // Uses only the diagonal of the curvature: sufficient, with few numbers per class.
    void learn_many(std::span<const double> scores, std::size_t label, const double* shares, double times) noexcept {
        double mean = 0, pull = 0, spread = 0;
        for (std::size_t c = 0; c < scores.size(); ++c) mean += shares[c] * (scores[c] * unit_);
        for (std::size_t c = 0; c < scores.size(); ++c) {
            const double z = scores[c] * unit_, p = shares[c], error = times * (p - (c == label ? 1.0 : 0.0));
            pull += error * z;
            spread += times * p * (z - mean) * (z - mean);
            if (!shifts_) continue;
            curvatures_[c] = kKeep * curvatures_[c] + times * p * (1 - p);
            offsets_[c] -= error / (curvatures_[c] + kRidge);
        }
        curvature_ = kKeep * curvature_ + spread;
        slope_ = std::max(slope_ - pull / (curvature_ + kRidge), 0.0);
    }

    void softmax(std::span<const double> scores, double* out) const {
        double top = -kLargest, sum = 0;
        for (std::size_t c = 0; c < scores.size(); ++c)
            top = std::max(top, out[c] = slope_ * (scores[c] * unit_) + offsets_[c]);
        for (std::size_t c = 0; c < scores.size(); ++c)
            sum += out[c] = elementary::exp(std::max(out[c] - top, -kFarthest));
        for (std::size_t c = 0; c < scores.size(); ++c) out[c] /= sum;
    }

    // Updates the running size of the scores; the slope is rescaled, so that no probability changes.
    void rescale(double square) noexcept {
        count_ += 1;
        const double before = square_, root = root_, unit = unit_;
        set_square(square_ + (square - square_) / std::min(count_, kMemory));
        if (before > kSmallest && square_ > kSmallest) {
            const double narrower = root * unit_;
            slope_ *= root_ * unit;
            curvature_ *= narrower * narrower;
            if (offsets_.size() == 1) cross_ *= narrower;
        }
    }

    void forget_slope() noexcept {
        slope_ = 1;
        curvature_ = kPrior;
        cross_ = 0;
    }

    double count_ = 0, square_ = 0;  // events; mean square of a score (of the range of the scores of many classes)
    double root_ = 1, unit_ = 1;  // root of the mean square and its inverse, cached because they are expensive
    double slope_ = 1, curvature_ = kPrior, cross_ = 0;
    std::vector<double> offsets_{0}, curvatures_{kPrior};
    std::vector<double> shares_{0};               // scratch
    bool shifts_;                                 // whether b is learned
};

}  // namespace gristmill
