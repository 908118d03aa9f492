// Rules: a trial in, a step out. A rule keeps its own few numbers and touches nothing else.
//
// To add one: a struct with `Step operator()(const Trial&)`, `needs_norm` and `state`; a line in RuleParts; a line in
// src/bind/parts.cpp; a value in rules.py. CONTRIBUTING.md walks through it.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <variant>

#include "core/losses.hpp"

namespace gristmill {

// All scores are those before the update. With more than two classes the score is the margin over the best rival,
// the label +1 and `self` 2 k(x,x): the squared length of the step that raises the one and lowers the other.
struct Trial {
    double score = 0;
    double label = 0;
    double self = 0;         // k(x, x)
    std::uint64_t step = 1;  // t, from 1
    double weight = 1;
    double norm2 = std::numeric_limits<double>::quiet_NaN();  // ||f||^2 if the rule needs it
};

struct Step {
    double coefficient = 0;  // of the new point; 0 stores nothing
    double shrink = 1;       // factor on everything stored; 0 clears
    double intercept = 0;    // added to the intercept
    double radius = std::numeric_limits<double>::infinity();  // afterwards ||f|| <= radius
};

enum class Schedule { constant, inv_sqrt };

inline double scheduled(double rate, Schedule schedule, std::uint64_t step) {
    return schedule == Schedule::constant ? rate : rate / std::sqrt(static_cast<double>(step));
}

struct Perceptron {
    static constexpr bool needs_norm = false;
    Step operator()(const Trial& trial) {
        return {.coefficient = trial.label * trial.score <= 0 ? trial.label * trial.weight : 0.0};
    }
    template <class F>
    void state(F&&) {}
};

struct Sgd {  // NORMA
    static constexpr bool needs_norm = false;
    Loss loss;
    double rate = 0.1, reg = 0;  // eta, lambda
    Schedule schedule = Schedule::constant;
    bool intercept = false;

    Step operator()(const Trial& trial) {
        const double rate_now = scheduled(rate, schedule, trial.step);
        const double push = rate_now * trial.weight * loss.push(trial.score, trial.label);
        loss.adapt(rate_now * trial.weight, loss.beyond(trial.score, trial.label));
        return {.coefficient = push, .shrink = 1 - rate_now * reg, .intercept = intercept ? push : 0.0};
    }
    template <class F>
    void state(F&& f) { f(loss.width); }
};

struct PassiveAggressive {
    static constexpr bool needs_norm = false;
    double aggressiveness = 1.0;  // C
    int variant = 1;
    double epsilon = 0.1;
    bool regression = false;

    Step operator()(const Trial& trial) {
        const double error = trial.label - trial.score;
        const double loss = regression ? std::abs(error) - epsilon : 1 - trial.label * trial.score;
        const double limit = aggressiveness * trial.weight;
        const double extent = variant == 2 ? trial.self + 1 / (2 * limit) : trial.self;
        if (!(loss > 0) || trial.self < 0 || !(extent > 0)) return {};
        const double size = variant == 1 ? std::min(limit, loss / extent) : loss / extent;
        return {.coefficient = regression ? std::copysign(size, error) : trial.label * size};
    }
    template <class F>
    void state(F&&) {}
};

// A rule from outside the core.
struct ForeignRule {
    virtual ~ForeignRule() = default;
    virtual Step propose(const Trial& trial) = 0;
};
struct Foreign {
    bool needs_norm = false;
    std::shared_ptr<ForeignRule> rule;
    Step operator()(const Trial& trial) { return rule->propose(trial); }
    template <class F>
    void state(F&&) {}
};

using Rule = std::variant<Perceptron, Sgd, PassiveAggressive, Foreign>;

inline bool needs_norm(const Rule& rule) {
    return std::visit([](const auto& r) { return r.needs_norm; }, rule);
}

// The margin that a novelty score is measured from.
inline double novelty_margin(const Rule& rule) {
    if (const auto* sgd = std::get_if<Sgd>(&rule)) return sgd->loss.width;
    return 1.0;
}

}  // namespace gristmill
