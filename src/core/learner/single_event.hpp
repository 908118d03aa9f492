// An event that comes alone: planned, then committed, with nothing to roll back.
#pragma once

#include "core/learner/learner.hpp"

namespace gristmill {

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

// requires: takes_singly(), and a row that stays where it is for as long as this lives.
template <Hypothesis H>
class Learner<H>::Single {
  public:
    Single(const Learner& learner, Batch row)
        : row_(row), chunk_{row_, {&label_, 1}, {&weight_, 1}, nullptr, learner.hypothesis_.make_lookahead(row_)} {}
    Single(const Single&) = delete;
    Single& operator=(const Single&) = delete;

    // What may fail; nothing changes. classes: how many are known with this event, none of which brings an output. out: what is
    // said of the event.
    void plan(Learner& learner, double label, double weight, std::size_t classes, double* out) {
        label_ = label, weight_ = weight, classes_ = classes;
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
    // What cannot.
    void commit(Learner& learner) {
        learner.counts_.classes = std::max(learner.counts_.classes, classes_);
        if (counts_) learner.commit_event(chunk_, 0, *planned_);
        if (calibrated_) learner.update_calibration(chunk_, 0);
        learner.count_event(chunk_, 0, counts_ ? 1 : 0);
        if (const auto* window = std::get_if<Window>(&learner.budget_))
            learner.hypothesis_.expire(chunk_.lookahead, 0, window->horizon(static_cast<std::int64_t>(learner.counts_.seen)));
    }

  private:
    Batch row_;
    double label_ = 0, weight_ = 1;
    std::size_t classes_ = 0;
    bool counts_ = false, calibrated_ = false;
    Chunk chunk_;
    std::optional<Planned> planned_;
};

}  // namespace gristmill
