// The scores of several density experts for one event, as one number.
//
// The logarithm of each score is measured against its own last few hundred: how far below the median, in units of what lies between the median
// and the tenth from below. The mean over the experts counts, of numbers beyond one unit by their logarithm, so that none decides alone.
// adapt/alarm_rate.hpp says when that is an alarm.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/adapt/alarm_rate.hpp"
#include "core/base/archive.hpp"
#include "core/base/elementary.hpp"
#include "core/base/quantile_window.hpp"

namespace gristmill {

class Strangeness {
  public:
    Strangeness(std::size_t experts, double rate) : alarm_(rate), logs_(experts), there_(experts, 1) {}

    std::size_t experts() const { return logs_.size(); }
    std::uint64_t seen() const { return seen_; }
    std::size_t bytes() const { return sizeof *this + experts() * (sizeof(Logs) + Logs::bytes()) + AlarmRate::bytes(); }
    void leave(std::size_t expert) { there_[expert] = 0; }
    bool is_there(std::size_t expert) const { return there_[expert] != 0; }
    double alarms() const { return alarm_.alarms(); }
    double margin() const { return alarm_.margin(); }

    // densities: one an expert, of those that are there (not a number: it has left). Returns the score, less the margin.
    double mix(std::span<const double> densities) const { return alarm_.shown(view(densities)); }
    double learn(std::span<const double> densities) {
        for (std::size_t e = 0; e < experts(); ++e)
            if (there_[e] && !std::isfinite(densities[e])) there_[e] = 0;
        const double shown = alarm_.learn(view(densities));
        for (std::size_t e = 0; e < experts(); ++e)
            if (there_[e]) logs_[e].push(logarithm(densities[e]));
        ++seen_;
        return shown;
    }

    void visit(Archive& archive) {
        archive.count("seen", seen_);
        alarm_.visit(archive);
        archive.numbers("there", there_, experts());
        for (std::size_t e = 0; e < experts(); ++e) visit(archive, ("logs" + std::to_string(e)).c_str(), logs_[e]);
    }

  private:
    using Logs = RecentOf<250>;
    static constexpr double kFarthest = 1e6;    // no score is farther from 0
    static constexpr double kLeast = 1e-290;    // a density that is less is this
    static constexpr double kNarrow = 1e-9;     // a spread that is less is this

    static double logarithm(double density) { return elementary::quick_log(std::max(density, kLeast)); }

    double view(std::span<const double> densities) const {
        double sum = 0, count = 0;
        for (std::size_t e = 0; e < experts(); ++e)
            if (there_[e]) sum += tamed(measured(logs_[e], logarithm(densities[e]))), count += 1;
        return count == 0 ? 0.0 : sum / count;
    }
    // Beyond one unit by its logarithm.
    static double tamed(double x) { return std::abs(x) <= 1 ? x : std::copysign(1 + elementary::quick_log(std::abs(x)), x); }
    static double measured(const Logs& recent, double value) {
        if (recent.size() < 2) return 0;
        const double middle = recent.quantile(0.5), spread = std::max(middle - recent.quantile(0.1), kNarrow);
        return std::clamp((value - middle) / spread, -kFarthest / 2, kFarthest / 2);
    }
    static void visit(Archive& archive, const char* name, Logs& recent) {
        std::vector<double> values = recent.values();
        archive.numbers(name, values);
        if (!archive.loads) return;
        if (values.size() > Logs::kMost) archive.refuse(name, "has too many entries");
        recent = {};
        for (const double value : values) recent.push(value);
    }

    AlarmRate alarm_;
    std::vector<Logs> logs_;
    std::vector<std::uint8_t> there_;
    std::uint64_t seen_ = 0;
};

}  // namespace gristmill
