// How targets are measured in a race: as by `Prepared` where experts keep their budgets, robustly where a race shares out memory.
#pragma once

#include <span>
#include <variant>

#include "core/pipeline/robust_target.hpp"
#include "core/pipeline/target_scale.hpp"

namespace gristmill {

class RaceTarget {
  public:
    using Move = TargetScale::Move;

    explicit RaceTarget(bool is_robust) {
        if (is_robust) scale_.emplace<RobustTarget>();
    }

    bool is_robust() const { return robust() != nullptr; }
    const RobustTarget* robust() const { return std::get_if<RobustTarget>(&scale_); }
    RobustTarget* robust() { return std::get_if<RobustTarget>(&scale_); }
    const TargetScale* plain() const { return std::get_if<TargetScale>(&scale_); }
    TargetScale* plain() { return std::get_if<TargetScale>(&scale_); }

    // A scale by which one expert goes on alone.
    TargetScale as_plain() const {
        if (plain()) return *plain();
        const RobustTarget& from = *robust();
        TargetScale scale;
        scale.first = from.has_begun() ? from.centre() : from.median();
        scale.count = from.count();
        scale.squares = static_cast<double>(from.count()) * from.spread() * from.spread();
        scale.centre = from.centre(), scale.spread = from.spread();
        while (scale.next <= scale.count) scale.next *= 2;
        return scale;
    }

    // Whether samples are held back, to be learned once targets are measured.
    bool holds() const { return robust() && !robust()->has_begun(); }
    bool is_known() const {
        return std::visit([](const auto& s) { return s.is_known(); }, scale_);
    }
    double clipped(double target) const { return robust() ? robust()->clipped(target) : target; }
    double tamed(double target) const { return robust() ? robust()->tamed(target) : target; }
    double inside(double target) const {
        return std::visit([&](const auto& s) { return s.inside(target); }, scale_);
    }
    double outside(double score) const {
        return std::visit([&](const auto& s) { return s.outside(score); }, scale_);
    }
    // Predictions before the scale is known.
    void unknown(std::span<const double> targets, double* out) const {
        if (plain()) return plain()->means(targets, out);
        RobustTarget seen = *robust();
        for (std::size_t r = 0; r < targets.size(); ++r) {
            out[r] = seen.median();
            seen.learn(targets.subspan(r, 1));
        }
    }
    // Targets that can be learned in one call, after which the scale may move.
    std::size_t run(std::span<const double> targets) const {
        if (robust()) return robust()->run(targets);
        return static_cast<std::size_t>(std::min<std::uint64_t>(targets.size(), plain()->due()));
    }
    bool may_move(double target) const { return robust() ? robust()->may_move(target) : plain()->due() <= 1; }
    std::optional<Move> learn(std::span<const double> targets) {
        return std::visit([&](auto& s) { return s.learn(targets); }, scale_);
    }
    std::size_t bytes() const { return robust() ? robust()->bytes() : 0; }
    void visit(Archive& archive) {
        std::visit([&](auto& s) { s.visit(archive); }, scale_);
    }

  private:
    std::variant<TargetScale, RobustTarget> scale_;
};

}  // namespace gristmill
