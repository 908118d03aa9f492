// Members of Learner that only learner.hpp needs: single events, new classes, sizes in bytes, several targets.
#pragma once

#include "core/learner/learner.hpp"

namespace gristmill {

// ---- a single event: planned, then committed, with nothing to roll back -------------------------------------------

template <Hypothesis H>
bool Learner<H>::changes_nothing(Chunk& chunk) {
    if constexpr (requires { hypothesis_.rough_score(chunk.lookahead, 0); }) {
        if (chunk.out || average_ || chunk.weight(0) == 0 || calibrates(chunk)) return false;
        constexpr double kGuard = 1e-6;
        double largest = 0;
        for (std::size_t o = 0; o < outputs(); ++o) {
            chunk.scores[o] = hypothesis_.rough_score(chunk.lookahead, o) + intercept_[o];
            largest = std::max(largest, std::abs(chunk.scores[o]));
        }
        if (!std::isfinite(largest)) return false;
        Decision decision{rule_, budget_, counts_.random};
        Trial seen = trial(chunk, 0, decision);
        seen.residual = 0;
        seen.projected2 = seen.tolerance = 1;
        const double middle = seen.score;
        for (const double side : {-1.0, 0.0, 1.0}) {
            Rule rule = rule_;
            seen.score = middle + side * kGuard * (1 + largest);
            const Step step = std::visit([&](auto& r) { return r(seen); }, rule);
            if (step.coefficient != 0 || step.shrink != 1 || step.intercept != 0 || state_of(rule) != state_of(rule_))
                return false;
        }
        count_event(chunk, 0, 1);
        return true;
    } else {
        return false;
    }
}

template <Hypothesis H>
void Learner<H>::learn_single(Chunk& chunk, std::size_t classes) {
    const auto counts = counts_;
    counts_.classes = std::max(counts_.classes, classes);
    try {
        resize(chunk);
        hypothesis_.load(chunk.lookahead, 0, 1);
        if (!changes_nothing(chunk)) event(chunk, 0);
    } catch (...) {
        counts_ = counts;
        throw;
    }
}

// requires: takes_singly(), and a row that outlives this object.
template <Hypothesis H>
class Learner<H>::Single {
  public:
    Single(const Learner& learner, Batch row)
        : row_(row), chunk_{row_, {&label_, 1}, {&weight_, 1}, nullptr, learner.hypothesis_.make_lookahead(row_)} {}
    Single(const Single&) = delete;
    Single& operator=(const Single&) = delete;

    // Everything that may fail; changes nothing. classes: number of classes known with this event, which must not add
    // an output. out: receives the scores of the event.
    void plan(Learner& learner, double label, double weight, std::size_t classes, double* out) {
        label_ = label;
        weight_ = weight;
        classes_ = classes;
        learner.check(row_);
        learner.resize(chunk_);
        if constexpr (requires { chunk_.lookahead.evicted_rows.clear(); }) chunk_.lookahead.evicted_rows.clear();
        learner.hypothesis_.load(chunk_.lookahead, 0, 1);
        learner.score_event(chunk_, 0);
        learner.report(chunk_, 0, out);
        counts_ = weight != 0;
        calibrated_ = counts_ && learner.calibrates(chunk_);
        if (calibrated_ && learner.average_) {
            chunk_.shown.resize(learner.outputs());
            learner.report(chunk_, 0, chunk_.shown.data());
        }
        planned_.reset();
        if (counts_) planned_.emplace(learner.plan_event(chunk_, 0));
        learner.class_balance_.make_room(classes);
    }
    // Applies the plan. Cannot fail.
    void commit(Learner& learner) {
        learner.counts_.classes = std::max(learner.counts_.classes, classes_);
        if (counts_) learner.commit_event(chunk_, 0, *planned_);
        if (calibrated_) learner.update_calibration(chunk_, 0);
        learner.count_event(chunk_, 0, counts_ ? 1 : 0);
        if (const auto* window = std::get_if<Window>(&learner.budget_))
            learner.hypothesis_.expire(chunk_.lookahead, 0,
                                       window->horizon(static_cast<std::int64_t>(learner.counts_.seen)));
    }

  private:
    Batch row_;
    double label_ = 0, weight_ = 1;
    std::size_t classes_ = 0;
    bool counts_ = false, calibrated_ = false;
    Chunk chunk_;
    std::optional<Planned> planned_;
};

// ---- classes that appear in mid-stream: each is added at its first event ------------------------------------------

template <Hypothesis H>
bool Learner<H>::brings_output(std::span<const double> labels, std::size_t classes) const {
    if (task_ != Task::classification) return false;
    const auto most = static_cast<double>(std::max<std::size_t>(counts_.classes, 2));
    return classes > std::max<std::size_t>(counts_.classes, 2) ||
           std::any_of(labels.begin(), labels.end(), [&](double code) { return code >= most; });
}

template <Hypothesis H>
void Learner<H>::add_classes(Chunk& chunk, std::size_t classes, std::size_t at) {
    const std::size_t before = outputs();
    while (counts_.classes < classes) add_class();
    const std::size_t now = outputs();
    if (now == before) return;
    resize(chunk);
    if (!chunk.out) return;
    std::vector<double> wider(batch_count(chunk.batch) * now);
    for (std::size_t r = 0; r < at; ++r) {
        const double* old = chunk.out->data() + r * before;
        double* fresh = wider.data() + r * now;
        if (before == 1) {
            fresh[0] = -0.5 * old[0];
            fresh[1] = 0.5 * old[0];
        } else {
            std::copy(old, old + before, fresh);
        }
    }
    chunk.out->swap(wider);
}

template <Hypothesis H>
void Learner<H>::add_class() {
    if (++counts_.classes <= 2) return;
    if (outputs() == 1) {
        hypothesis_.split_output();
        for (auto* b : {&intercept_, &intercept_sum_}) *b = {-0.5 * (*b)[0], 0.5 * (*b)[0]};
        calibration_.split();
    }
    hypothesis_.add_output();
    calibration_.add();
    intercept_.push_back(0);
    intercept_sum_.push_back(0);
    fit_memory();
}

// ---- sizes in bytes: how many points they hold for the current number of outputs ----------------------------------

template <Hypothesis H>
std::size_t Learner<H>::points_within(std::size_t memory, std::size_t outputs) const {
    if constexpr (requires { hypothesis_.points_within(memory, outputs); }) {
        const std::size_t fixed = fixed_bytes();
        const std::size_t points =
            memory <= fixed ? 0 : hypothesis_.points_within(memory - fixed, outputs ? outputs : this->outputs());
        if (points > 0 || memory <= fixed + 4096) return points;
    }
    throw std::invalid_argument("a size in bytes needs stored points of a fixed width; give a number of points");
}

template <Hypothesis H>
std::size_t Learner<H>::least_memory(std::size_t points) const {
    std::size_t memory = 1024;
    while (points_within(memory) < points) memory += 256;
    return memory;
}

template <Hypothesis H>
void Learner<H>::fit_memory() {
    const std::size_t memory = bytes_of(budget_);
    if (memory == 0) return;
    const std::size_t points = points_within(memory);
    constexpr std::size_t kFewest = 10;
    if (points < kFewest)
        throw std::invalid_argument("a size of " + std::to_string(memory) + " bytes is too small for " +
                                    std::to_string(outputs()) + " output(s) of this width: it takes at least " +
                                    std::to_string(least_memory(kFewest)) + " bytes");
    set_size(budget_, points);
    if constexpr (requires { hypothesis_.resize(points, budget_, counts_.random); })
        hypothesis_.resize(points, budget_, counts_.random);
}

template <Hypothesis H>
void Learner<H>::resize(std::size_t memory) {
    const Budget before = budget_;
    set_bytes(budget_, memory);
    try {
        fit_memory();
    } catch (...) {
        budget_ = before;
        throw;
    }
}

// ---- several targets: one store, one trial per target with its own rule state; and rescaled targets ---------------

template <Hypothesis H>
void Learner<H>::set_targets(std::size_t targets) {
    if (task_ != Task::regression || needs_.norm || needs_.tangent || needs_.present ||
        std::holds_alternative<Foreign>(rule_))
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

// requires: a rule whose shrink is the same for every target, and that needs only the trial.
template <Hypothesis H>
void Learner<H>::learn_targets(Chunk& chunk, std::size_t i) {
    const std::size_t at = chunk.first + i;
    Decision decision{rule_, budget_, counts_.random};
    chunk.other_rules = other_rules_;
    chunk.offsets.assign(outputs(), 0.0);
    Trial trial = this->trial(chunk, i, decision);
    if (needs_.projection || needs_.span) {  // the residual of one step for all targets
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
        const Step step =
            std::visit([&](auto& r) { return r(trial); }, o == 0 ? decision.rule : chunk.other_rules[o - 1]);
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
    if constexpr (requires { hypothesis_.rescale_labels(factors, shifts); })
        hypothesis_.rescale_labels(factors, shifts);
    const double ticks = static_cast<double>(hypothesis_.ticks());
    for (std::size_t o = 0; o < factors.size(); ++o) {
        intercept_[o] = factors[o] * intercept_[o] + shifts[o];
        intercept_sum_[o] = factors[o] * intercept_sum_[o] + ticks * shifts[o];
        intervals_.rescale(o, factors[o]);
        gristmill::rescale(o == 0 ? rule_ : other_rules_[o - 1], factors[o]);
    }
}

}  // namespace gristmill
