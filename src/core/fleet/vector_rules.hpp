// Which rules and budgets have a vector implementation (simd/fleet.cpp), and its parameters.
#pragma once

#include "core/learner/learner.hpp"
#include "core/simd/fleet_dispatch.hpp"

namespace gristmill {

inline void lane_rule(const Perceptron&, LaneSettings& lanes) { lanes.rule = LaneRule::perceptron; }
inline void lane_rule(const Implicit& rule, LaneSettings& lanes) {
    if (rule.loss.kind != LossKind::hinge || rule.schedule != Schedule::constant) return;
    lanes.rule = LaneRule::implicit_hinge;
    lanes.keep = 1 / (1 + rule.rate * rule.reg);
    lanes.cap = lanes.keep * rule.rate * rule.trade;
    lanes.margin = rule.loss.width;
    lanes.measured = true;
}
inline void lane_rule(const Sgd& rule, LaneSettings& lanes) {
    if (rule.loss.kind == LossKind::hinge) lanes.rule = LaneRule::sgd_hinge;
    if (rule.loss.kind == LossKind::squared) lanes.rule = LaneRule::sgd_squared;
    lanes.rate = rule.rate;
    lanes.reg = rule.reg;
    lanes.by_root = rule.schedule == Schedule::inv_sqrt;
    lanes.intercept = rule.intercept;
    lanes.adapts = rule.loss.nu.has_value() && rule.loss.kind == LossKind::hinge;
    lanes.nu = rule.loss.nu.value_or(0.0);
    lanes.strict = rule.loss.strict;
    lanes.measured = true;
}
inline void lane_rule(const PassiveAggressive& rule, LaneSettings& lanes) {
    lanes.rule = LaneRule::passive_aggressive;
    lanes.cap = rule.aggressiveness;
    lanes.variant = rule.variant;
    lanes.epsilon = rule.epsilon;
    lanes.regression = rule.regression;
}
template <class R>
void lane_rule(const R&, LaneSettings&) {}  // no vector implementation: lane by lane

// Rule `none`: no vector implementation. The caller sets `width` and `slots`. requires: one output.
inline LaneSettings lane_settings(const Rule& rule, const Budget& budget, Task task) {
    LaneSettings lanes;
    lanes.oldest = std::holds_alternative<DropOldest>(budget);
    if (!lanes.oldest && !std::holds_alternative<DropSmallest>(budget)) return lanes;
    lanes.classes = task == Task::classification;
    lanes.novelty = task == Task::novelty;
    std::visit([&](const auto& r) { lane_rule(r, lanes); }, rule);
    return lanes;
}

}  // namespace gristmill
