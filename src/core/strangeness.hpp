// What several density experts say of one event, as one number, and when that is an alarm.
//
// The logarithm of each density is measured against its own last thousand: how far below the median, in units of what lies between the
// median and the tenth from below. The strangest view counts. The score is the logarithm of the share of the last thousand that were
// stranger, so that it means the same at all times, and an alarm is a share below the rate.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/archive.hpp"
#include "core/elementary.hpp"
#include "core/recent.hpp"

namespace gristmill {

class Strangeness {
  public:
    Strangeness(std::size_t experts, double rate) : rate_(rate), logs_(experts), there_(experts, 1) {}

    std::size_t experts() const { return logs_.size(); }
    std::uint64_t seen() const { return seen_; }
    std::size_t bytes() const { return sizeof *this + (experts() + 1) * (sizeof(Recent) + Recent::bytes()); }
    void leave(std::size_t expert) { there_[expert] = 0; }
    bool is_there(std::size_t expert) const { return there_[expert] != 0; }
    double alarms() const { return alarms_; }
    // What a score is measured from: nothing is below it in the first events.
    double margin() const { return scores_.size() < kQuiet ? -kFarthest : elementary::log(rate_); }

    // densities: one an expert, of those that are there (not a number: it has left). Returns the score, less the margin.
    double mix(std::span<const double> densities) const { return share(view(densities)) - margin(); }
    double learn(std::span<const double> densities) {
        for (std::size_t e = 0; e < experts(); ++e)
            if (there_[e] && !std::isfinite(densities[e])) there_[e] = 0;
        const double said = view(densities), shown = share(said) - margin();
        for (std::size_t e = 0; e < experts(); ++e)
            if (there_[e]) logs_[e].push(logarithm(densities[e]));
        scores_.push(said);
        ++seen_;
        if (shown < 0) alarms_ += 1;
        return shown;
    }

    void visit(Archive& archive) {
        archive.count("seen", seen_);
        archive.number("alarms", alarms_);
        archive.numbers("there", there_, experts());
        for (std::size_t e = 0; e < experts(); ++e) visit(archive, ("logs" + std::to_string(e)).c_str(), logs_[e]);
        visit(archive, "scores", scores_);
    }

  private:
    static constexpr std::size_t kQuiet = 50;   // events without an alarm
    static constexpr double kFarthest = 1e6;    // no score is farther from 0
    static constexpr double kLeast = 1e-290;    // a density that is less is this
    static constexpr double kNarrow = 1e-9;     // a spread that is less is this

    static double logarithm(double density) { return elementary::log(std::max(density, kLeast)); }

    double view(std::span<const double> densities) const {
        double least = kFarthest;
        for (std::size_t e = 0; e < experts(); ++e)
            if (there_[e]) least = std::min(least, measured(logs_[e], logarithm(densities[e])));
        return least == kFarthest ? 0.0 : least;
    }
    double share(double view) const { return scores_.size() < 2 ? 0.0 : elementary::log(scores_.share(view, 1.0)); }
    static double measured(const Recent& recent, double value) {
        if (recent.size() < 2) return 0;
        const double middle = recent.quantile(0.5), spread = std::max(middle - recent.quantile(0.1), kNarrow);
        return std::clamp((value - middle) / spread, -kFarthest / 2, kFarthest / 2);
    }
    static void visit(Archive& archive, const char* name, Recent& recent) {
        std::vector<double> values = recent.values();
        archive.numbers(name, values);
        if (!archive.loads) return;
        if (values.size() > Recent::kMost) archive.refuse(name, "has too many entries");
        recent = {};
        for (const double value : values) recent.push(value);
    }

    double rate_;
    std::vector<Recent> logs_;
    std::vector<std::uint8_t> there_;
    Recent scores_;
    double alarms_ = 0;
    std::uint64_t seen_ = 0;
};

}  // namespace gristmill
