// When a score is an alarm, so that alarms come as often as was asked.
//
// A score is compared with the last thousand: its level is the logarithm of the share of them that were lower. Below the lowest twentieth, whose
// order says little, the level falls linearly, by one in each mean distance of that twentieth from its end, so that it never saturates.
// An alarm is a level below the logarithm of the rate. Scores that drift would be alarms too often or too rarely for a long time. So the
// surplus of alarms over those asked for moves the level at which an alarm begins: levels near it are stretched so that an alarm begins at the
// rate all the same, and those far from it stay as they are.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/archive.hpp"
#include "core/base/elementary.hpp"
#include "core/base/quantile_window.hpp"

namespace gristmill {

class AlarmRate {
  public:
    explicit AlarmRate(double rate) : rate_(rate), level_(elementary::log(rate)) {}

    static constexpr std::size_t kQuiet = 50;  // events without an alarm
    static constexpr std::size_t bytes() { return QuantileWindow::bytes(); }
    double alarms() const { return alarms_; }
    // What a level is measured from: nothing is below it in the first events.
    double margin() const { return scores_.size() < kQuiet ? -kFarthest : level_; }
    // The level of a score, less the margin: below 0 is an alarm.
    double shown(double score) const { return stretched(level_of(score)) - margin(); }
    // The same, and the score is one of the last from now on.
    double learn(double score) {
        const double found = shown(score);
        const bool counts = scores_.size() >= kQuiet, alarm = found < 0;
        scores_.push(score);
        if (alarm) alarms_ += 1;
        if (counts) surplus_ = bounded(surplus_ + (alarm ? 1 : 0) - rate_);
        return found;
    }

    // Takes the memory that learning one more event needs, so that it cannot fail.
    void make_room() { scores_.make_room(); }
    // Goes on from the last scores of several streams, of each as many as its share says.
    void merge(std::span<const AlarmRate* const> parts, std::span<const double> shares) {
        scores_ = {}, alarms_ = 0, surplus_ = 0;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const std::vector<double> values = parts[i]->scores_.values();
            const auto count = static_cast<std::size_t>(shares[i] * static_cast<double>(QuantileWindow::kMost) + 0.5);
            for (std::size_t at = values.size() - std::min(count, values.size()); at < values.size(); ++at)
                scores_.push(values[at]);
            alarms_ += parts[i]->alarms_;
            surplus_ = bounded(surplus_ + parts[i]->surplus_);
        }
    }

    void visit(Archive& archive) {
        archive.number("alarms", alarms_);
        archive.number("surplus", surplus_);
        surplus_ = bounded(surplus_);
        std::vector<double> values = scores_.values();
        archive.numbers("scores", values);
        if (!archive.loads) return;
        if (values.size() > QuantileWindow::kMost) archive.refuse("scores", "has too many entries");
        scores_ = {};
        for (const double value : values) scores_.push(value);
    }

  private:
    static constexpr double kFarthest = 1e6;  // no margin is farther from 0
    static constexpr double kTail = 0.05;  // of the last scores: lower ones are compared by distance
    static constexpr double kPull = 0.2;  // by so much an alarm too many lowers the level at which one begins
    static constexpr double kReach = 3;  // levels that are farther from that of the rate stay as they are

    double level_of(double score) const {
        if (scores_.size() < 2) return 0;
        const double end = scores_.quantile(kTail);
        if (score >= end) return elementary::quick_log(scores_.share(score, 1.0));
        const double excess = scores_.mean_below(end);
        return elementary::quick_log(kTail) + (score - end) / (excess > 0 ? excess : 1.0);
    }
    double reach() const { return std::min(-level_, kReach); }
    // No debt grows without end: where all is strange for a while, alarms come again soon after.
    double bounded(double surplus) const { return std::clamp(surplus, -reach() / 2 / kPull, reach() / 2 / kPull); }
    // Two lines that meet where an alarm begins.
    double stretched(double level) const {
        const double from = level - level_, begins = -kPull * surplus_;
        if (std::abs(from) >= reach()) return level;
        return level_ + (from - begins) * reach() / (from < begins ? reach() + begins : reach() - begins);
    }

    double rate_, level_;  // and its logarithm
    QuantileWindow scores_;
    double alarms_ = 0;
    double surplus_ = 0;  // alarms, less those that were asked for; within bounds
};

}  // namespace gristmill
