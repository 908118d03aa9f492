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

}  // namespace gristmill
