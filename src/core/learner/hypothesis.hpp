// The concept of a hypothesis: what the learning loop requires. Four classes satisfy it: Expansion (stored points),
// ProjectedExpansion (the span of stored points), Trees (additive kernels), Weights (explicit features). The loop in
// learner/learner.hpp uses nothing else of them.
#pragma once

#include <concepts>
#include <span>

#include "core/base/archive.hpp"
#include "core/base/batch.hpp"
#include "core/base/random.hpp"
#include "core/parts/budgets.hpp"
#include "core/parts/rules.hpp"

namespace gristmill {

// The term of one event, on its way into a hypothesis.
struct Term {
    std::int64_t id;          // position in the stream
    std::span<const double> labels;  // the class code, the targets, or 1
    double self;              // k(x, x)
    Step step;
    std::span<double> coefs;  // of the new point, one per output; more where the hypothesis has hidden outputs
};

// The parts that a hypothesis serves.
struct Composition {
    Needs needs;  // needs of rule and budget together
    const Budget& budget;
    bool average;
};

// A hypothesis has a Lookahead over the rows of a chunk and makes a Plan for each event. Scores are those of f without
// intercept. make_lookahead, score, measure and plan may throw; commit and expire may not.
template <class H>
concept Hypothesis =
    requires(H h, const H c, typename H::Lookahead& lookahead, typename H::Plan& plan, const Batch& batch,
             std::size_t n, Trial& trial, Term& term, Budget& budget, Random& random, Archive& archive,
             std::span<const double> direction, const Step& step, double* out) {
        { H::kSupports } -> std::convertible_to<Needs>;
        { c.outputs() } -> std::same_as<std::size_t>;  // without hidden ones
        { c.coefs_per_term() } -> std::same_as<std::size_t>;
        { c.width() } -> std::same_as<std::size_t>;
        { c.check(batch) };                            // throws RowError for the first invalid row
        { c.make_lookahead(batch) } -> std::same_as<typename H::Lookahead>;
        { c.window(n) } -> std::same_as<std::size_t>;  // how many of the remaining n rows to load next
        { c.load(lookahead, n, n) };                       // rows [first, first + count) of the batch
        { c.score(lookahead, n, n) } -> std::same_as<double>;          // of row i, output o
        { c.average_score(lookahead, n, n) } -> std::same_as<double>;  // requires: averaging
        { c.self(lookahead, n) } -> std::same_as<double>;
        { h.measure(lookahead, n, direction, trial) };     // fills in what the rule needs; direction: the unit step
        { c.overflows(trial, step) } -> std::same_as<bool>;
        { h.plan(lookahead, n, term, budget, random) } -> std::same_as<typename H::Plan>;
        { h.commit(lookahead, n, plan, term) };
        { h.expire(lookahead, n, std::int64_t{}) };  // removes points older than a position, as seen by row i + 1
        { h.finish(lookahead) };  // after the last row of a committed chunk
        { h.tick() };  // adds the present f to the average
        { c.ticks() } -> std::same_as<std::uint64_t>;
        // whether planning a single event changes nothing before its commit
        { c.plan_is_readonly() } -> std::same_as<bool>;
        { h.begin(n, bool{}) };  // begins a transaction over n rows; second: outputs may be added
        { h.keep() };
        { h.rollback() };
        { h.add_output() };  // adds an output that is zero
        { h.split_output() };  // replaces the only output f by two: -f/2 and f/2
        { c.scores(batch, out) };  // scores for predictions (of the average, if averaging); outputs() per row
        { c.norm2() } -> std::same_as<double>;
        { c.bytes() } -> std::same_as<std::size_t>;
        { h.visit(archive, std::uint64_t{}) };  // saves or loads all state but the points; second: events seen
    };

}  // namespace gristmill
