// What several density experts say of one event, as one number, and when that is an alarm.
//
// The logarithm of what each says is measured against its own last few hundred: how far below the median, in units of what lies between
// the median and the tenth from below. The mean over the experts counts, of numbers beyond one unit by their logarithm: none decides alone.
// The score is the logarithm of the share of the last thousand events that were stranger, so that it means the same at all times, and an
// alarm is a share below the rate.
//
// Scores that drift, as they do while stored points fill up, would be alarms too often or too rarely for a long time. So what is left
// of, or missing from, the alarms that were asked for moves the share at which an alarm begins, up to a few times: scores near it are
// drawn so that an alarm begins at the rate all the same, and those far from it stay as they are.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/archive.hpp"
#include "core/base/elementary.hpp"
#include "core/base/quantile_window.hpp"

namespace gristmill {

class NoveltyMixture {
  public:
    NoveltyMixture(std::size_t experts, double rate)
        : rate_(rate), level_(elementary::log(rate)), logs_(experts), active_(experts, 1) {}

    std::size_t experts() const { return logs_.size(); }
    std::uint64_t seen() const { return seen_; }
    std::size_t bytes() const { return sizeof *this + experts() * (sizeof(Logs) + Logs::bytes()) + QuantileWindow::bytes(); }
    void leave(std::size_t expert) { active_[expert] = 0; }
    bool is_active(std::size_t expert) const { return active_[expert] != 0; }
    double alarms() const { return alarms_; }
    // What a score is measured from: nothing is below it in the first events.
    double margin() const { return scores_.size() < kQuiet ? -kFarthest : level_; }

    // densities: one an expert, of those that are there (not a number: it has left). Returns the score, less the margin.
    double mix(std::span<const double> densities) const { return drawn(share(view(densities))) - margin(); }
    double learn(std::span<const double> densities) {
        for (std::size_t e = 0; e < experts(); ++e)
            if (active_[e] && !std::isfinite(densities[e])) active_[e] = 0;
        const double mixed = view(densities), shown = drawn(share(mixed)) - margin();
        const bool counts = scores_.size() >= kQuiet;
        for (std::size_t e = 0; e < experts(); ++e)
            if (active_[e]) logs_[e].push(logarithm(densities[e]));
        scores_.push(mixed);
        ++seen_;
        if (shown < 0) alarms_ += 1;
        if (counts) surplus_ = bounded(surplus_ + (shown < 0 ? 1 : 0) - rate_);
        return shown;
    }

    // Takes the memory that learning one more event needs, so that it cannot fail.
    void make_room() {
        for (Logs& logs : logs_) logs.make_room();
        scores_.make_room();
    }

    void visit(Archive& archive) {
        archive.count("seen", seen_);
        archive.number("alarms", alarms_);
        archive.number("surplus", surplus_, std::optional(0.0));
        surplus_ = bounded(surplus_);
        archive.numbers("there", active_, experts());
        for (std::size_t e = 0; e < experts(); ++e) visit(archive, ("logs" + std::to_string(e)).c_str(), logs_[e]);
        visit(archive, "scores", scores_);
    }

  private:
    using Logs = BasicQuantileWindow<250>;
    static constexpr std::size_t kQuiet = 50;   // events without an alarm
    static constexpr double kFarthest = 1e6;    // no score is farther from 0
    static constexpr double kLeast = 1e-290;    // a density that is less is this
    static constexpr double kNarrow = 1e-9;     // a spread that is less is this
    static constexpr double kPull = 0.35;       // by so much an alarm too many lowers the logarithm of the share at which one begins
    static constexpr double kReach = 3;         // logarithms of shares that are farther from the rate stay as they are

    static double logarithm(double density) { return elementary::quick_log(std::max(density, kLeast)); }

    double view(std::span<const double> densities) const {
        double sum = 0, count = 0;
        for (std::size_t e = 0; e < experts(); ++e)
            if (active_[e]) sum += compressed(measured(logs_[e], logarithm(densities[e]))), count += 1;
        return count == 0 ? 0.0 : sum / count;
    }
    // Beyond one unit by its logarithm.
    static double compressed(double x) { return std::abs(x) <= 1 ? x : std::copysign(1 + elementary::quick_log(std::abs(x)), x); }
    double share(double view) const { return scores_.size() < 2 ? 0.0 : elementary::quick_log(scores_.share(view, 1.0)); }
    double reach() const { return std::min(-level_, kReach); }
    // No debt grows without end: where all is strange for a while, alarms come again soon after.
    double bounded(double surplus) const { return std::clamp(surplus, -reach() / 2 / kPull, reach() / 2 / kPull); }
    // Logarithms of shares with those at which an alarm begins drawn to that of the rate; two lines that meet there.
    double drawn(double share) const {
        const double from = share - level_, begins = -kPull * surplus_;
        if (std::abs(from) >= reach()) return share;
        return level_ + (from - begins) * reach() / (from < begins ? reach() + begins : reach() - begins);
    }
    static double measured(const Logs& window, double value) {
        if (window.size() < 2) return 0;
        const double middle = window.quantile(0.5), spread = std::max(middle - window.quantile(0.1), kNarrow);
        return std::clamp((value - middle) / spread, -kFarthest / 2, kFarthest / 2);
    }
    template <class Last>
    static void visit(Archive& archive, const char* name, Last& window) {
        std::vector<double> values = window.values();
        archive.numbers(name, values);
        if (!archive.loads) return;
        if (values.size() > QuantileWindow::kMost) archive.refuse(name, "has too many entries");
        window = {};
        for (const double value : values) window.push(value);
    }

    double rate_, level_;  // and its logarithm
    std::vector<Logs> logs_;
    std::vector<std::uint8_t> active_;
    QuantileWindow scores_;
    double alarms_ = 0;
    double surplus_ = 0;  // alarms, less those that were asked for; within bounds
    std::uint64_t seen_ = 0;
};

}  // namespace gristmill
