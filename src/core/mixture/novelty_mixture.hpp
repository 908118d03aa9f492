// The mixture of several density experts for novelty detection.
//
// The log density of each expert is standardised by its own last few hundred values: its distance below the median, in
// units of the distance between the median and the 10 % quantile. The mixture is the mean over the experts of these
// numbers, compressed logarithmically beyond one unit, so that no expert decides alone. The score is the logarithm of
// the share of the last thousand events that were more unusual, so that its meaning is constant over time; an alarm is
// a share below the rate.
//
// Scores that drift, for example while stored points fill up, would raise alarms too often or too rarely for a long
// time. So the surplus or deficit of alarms moves the share at which an alarm begins, within limits: scores near it are
// shifted so that an alarm still begins at the rate, and scores far from it are unchanged.
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

// The last values of several streams that go on at the same pace; no more than the longest list has.
inline std::vector<double> interleaved(std::span<const std::vector<double>> lists) {
    std::vector<std::pair<double, double>> placed;
    std::size_t longest = 0;
    for (const auto& list : lists) {
        longest = std::max(longest, list.size());
        for (std::size_t i = 0; i < list.size(); ++i)
            placed.emplace_back((static_cast<double>(i) + 0.5) / static_cast<double>(list.size()), list[i]);
    }
    std::stable_sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<double> last;
    for (std::size_t i = placed.size() - longest; i < placed.size(); ++i) last.push_back(placed[i].second);
    return last;
}

class NoveltyMixture {
  public:
    NoveltyMixture(std::size_t experts, double rate)
        : rate_(rate), level_(elementary::log(rate)), logs_(experts), active_(experts, 1) {}

    std::size_t experts() const { return logs_.size(); }
    std::uint64_t seen() const { return seen_; }
    std::size_t bytes() const {
        return sizeof *this + experts() * (sizeof(Logs) + Logs::bytes()) + QuantileWindow::bytes();
    }
    void leave(std::size_t expert) { active_[expert] = 0; }
    bool is_active(std::size_t expert) const { return active_[expert] != 0; }
    double alarms() const { return alarms_; }
    // The threshold of scores; it raises no alarm in the first events.
    double margin() const { return scores_.size() < kQuiet ? -kFarthest : level_; }

    // densities: one per active expert (NaN: the expert has left). Returns the score minus the margin.
    double mix(std::span<const double> densities) const { return shifted(share(view(densities))) - margin(); }
    double learn(std::span<const double> densities) {
        for (std::size_t e = 0; e < experts(); ++e)
            if (active_[e] && !std::isfinite(densities[e])) active_[e] = 0;
        const double mixed = view(densities), shown = shifted(share(mixed)) - margin();
        const bool counts = scores_.size() >= kQuiet;
        for (std::size_t e = 0; e < experts(); ++e)
            if (active_[e]) logs_[e].push(logarithm(densities[e]));
        scores_.push(mixed);
        ++seen_;
        if (shown < 0) alarms_ += 1;
        if (counts) surplus_ = bounded(surplus_ + (shown < 0 ? 1 : 0) - rate_);
        return shown;
    }

    // Allocates what learning one more event needs, so that it cannot fail.
    void make_room() {
        for (Logs& logs : logs_) logs.make_room();
        scores_.make_room();
    }

    // The last scores of all, interleaved; an expert that has left one mixture has left the whole.
    void unite(std::span<const NoveltyMixture* const> parts) {
        seen_ = 0, alarms_ = 0, surplus_ = 0;
        active_.assign(experts(), 1);
        for (const NoveltyMixture* part : parts) {
            seen_ += part->seen_;
            alarms_ += part->alarms_;
            surplus_ += part->surplus_;
            for (std::size_t e = 0; e < experts(); ++e) active_[e] = active_[e] && part->active_[e];
        }
        surplus_ = bounded(surplus_);
        auto refill = [&](auto& window, auto of) {
            std::vector<std::vector<double>> lists;
            for (const NoveltyMixture* part : parts) lists.push_back(of(*part).values());
            window = {};
            for (const double value : interleaved(lists)) window.push(value);
        };
        for (std::size_t e = 0; e < experts(); ++e)
            refill(logs_[e], [e](const NoveltyMixture& part) -> const Logs& { return part.logs_[e]; });
        refill(scores_, [](const NoveltyMixture& part) -> const QuantileWindow& { return part.scores_; });
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
    static constexpr std::size_t kQuiet = 50;  // first events, which never raise an alarm
    static constexpr double kFarthest = 1e6;  // largest |score|
    static constexpr double kLeast = 1e-290;  // lower bound of densities
    static constexpr double kNarrow = 1e-9;  // lower bound of spreads
    static constexpr double kPull = 0.35;  // decrease of the log share at which an alarm begins, per surplus alarm
    static constexpr double kReach = 3;  // log shares farther from the rate are unchanged

    static double logarithm(double density) { return elementary::quick_log(std::max(density, kLeast)); }

    double view(std::span<const double> densities) const {
        double sum = 0, count = 0;
        for (std::size_t e = 0; e < experts(); ++e)
            if (active_[e]) {
                sum += compressed(measured(logs_[e], logarithm(densities[e])));
                count += 1;
            }
        return count == 0 ? 0.0 : sum / count;
    }
    // Logarithmic beyond one unit.
    static double compressed(double x) {
        return std::abs(x) <= 1 ? x : std::copysign(1 + elementary::quick_log(std::abs(x)), x);
    }
    double share(double view) const {
        return scores_.size() < 2 ? 0.0 : elementary::quick_log(scores_.share(view, 1.0));
    }
    double reach() const { return std::min(-level_, kReach); }
    // The surplus is bounded, so that alarms resume soon after a long unusual phase.
    double bounded(double surplus) const { return std::clamp(surplus, -reach() / 2 / kPull, reach() / 2 / kPull); }
    // Shifts log shares so that an alarm begins at the rate: two linear pieces that meet there.
    double shifted(double share) const {
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

    double rate_, level_;  // rate, log(rate)
    std::vector<Logs> logs_;
    std::vector<std::uint8_t> active_;
    QuantileWindow scores_;
    double alarms_ = 0;
    double surplus_ = 0;  // alarms minus expected alarms; bounded
    std::uint64_t seen_ = 0;
};

}  // namespace gristmill
