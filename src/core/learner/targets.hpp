// Several numbers to predict: one store, one trial a target, each with the state of its own rule; and targets in other units.
#pragma once

#include "core/learner/learner.hpp"

namespace gristmill {

template <Hypothesis H>
void Learner<H>::set_targets(std::size_t targets) {
    if (task_ != Task::regression || needs_.norm || needs_.tangent || needs_.present || std::holds_alternative<Foreign>(rule_))
        throw std::invalid_argument("this rule cannot serve several targets: its steps would not share one shrink");
    other_rules_.assign(targets - 1, first_rule_);
    while (outputs() < targets) {
        hypothesis_.add_output();
        intercept_.push_back(0);
        intercept_sum_.push_back(0);
    }
    if constexpr (requires { hypothesis_.keep_targets(targets); }) hypothesis_.keep_targets(targets);
    intervals_ = Intervals(targets);
    fit_memory();
}

// requires: a rule whose shrink is the same for every target, and that asks for nothing but the trial.
template <Hypothesis H>
void Learner<H>::learn_targets(Chunk& chunk, std::size_t i) {
    const std::size_t at = chunk.first + i;
    Decision decision{rule_, budget_, counts_.random};
    chunk.other_rules = other_rules_;
    chunk.offsets.assign(outputs(), 0.0);
    Trial trial = this->trial(chunk, i, decision);
    if (needs_.projection || needs_.span) {  // the residual of one step of all targets
        std::fill(chunk.coefs.begin(), chunk.coefs.end(), 1.0);
        Trial measured = trial;
        measured.self *= 2;
        hypothesis_.measure(chunk.lookahead, i, chunk.coefs, measured);
    }
    const auto labels = chunk.labels_of(at);
    Step largest;
    for (std::size_t o = 0; o < outputs(); ++o) {
        trial.score = chunk.scores[o];
        trial.label = labels[o];
        const Step step = std::visit([&](auto& r) { return r(trial); }, o == 0 ? decision.rule : chunk.other_rules[o - 1]);
        check_step(at, trial, step);
        chunk.coefs[o] = step.coefficient;
        chunk.offsets[o] = step.intercept;
        if (o == 0 || std::abs(step.coefficient) > std::abs(largest.coefficient)) largest = step;
    }
    Term term{position(chunk, at), labels, trial.self, largest, chunk.coefs};
    typename H::Plan plan = hypothesis_.plan(chunk.lookahead, i, term, decision.budget, decision.random);
    other_rules_.swap(chunk.other_rules);
    commit(chunk, i, decision, plan, term);
    for (std::size_t o = 0; o < outputs(); ++o) intercept_[o] += chunk.offsets[o];
}

template <Hypothesis H>
void Learner<H>::rescale_targets(std::span<const double> factors, std::span<const double> shifts)
    requires requires(H h) { h.scale_outputs(factors); }
{
    hypothesis_.scale_outputs(factors);
    if constexpr (requires { hypothesis_.rescale_labels(factors, shifts); }) hypothesis_.rescale_labels(factors, shifts);
    const double ticks = static_cast<double>(hypothesis_.ticks());
    for (std::size_t o = 0; o < factors.size(); ++o) {
        intercept_[o] = factors[o] * intercept_[o] + shifts[o];
        intercept_sum_[o] = factors[o] * intercept_sum_[o] + ticks * shifts[o];
        intervals_.rescale(o, factors[o]);
        gristmill::rescale(o == 0 ? rule_ : other_rules_[o - 1], factors[o]);
    }
}

}  // namespace gristmill
