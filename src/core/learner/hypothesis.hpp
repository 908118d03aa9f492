// What the learner asks of a hypothesis. Four answer: Expansion (stored points), Projections (the span of stored points),
// Trees (additive kernels), Weights (explicit features). The loop in learner/learner.hpp knows none of them by name.
#pragma once

#include <concepts>
#include <span>

#include "core/base/archive.hpp"
#include "core/base/batch.hpp"
#include "core/parts/budgets.hpp"
#include "core/base/random.hpp"
#include "core/parts/rules.hpp"

namespace gristmill {

// One event's step on its way into a hypothesis.
struct Term {
    std::int64_t id;          // position in the stream
    std::span<const double> labels;  // as it came: a class number, the targets, or 1
    double self;              // k(x, x)
    Step step;
    std::span<double> coefs;  // of the new point, one an output; more where the hypothesis keeps hidden ones
};

// The parts that a hypothesis works for.
struct Composition {
    Needs needs;  // of rule and budget together
    const Budget& budget;
    bool average;
};

// A hypothesis has a Sight of the rows of a chunk and makes a Plan for each event. Scores are those of f without intercept.
// look, score, measure and plan may throw; commit and expire may not.
template <class H>
concept Hypothesis = requires(H h, const H c, typename H::Lookahead& lookahead, typename H::Plan& plan, const Batch& batch,
                              std::size_t n, Trial& trial, Term& term, Budget& budget, Random& random, Archive& archive,
                              std::span<const double> direction, const Step& step, double* out) {
    { H::kSupports } -> std::convertible_to<Needs>;
    { c.outputs() } -> std::same_as<std::size_t>;  // visible ones
    { c.coefs_per_term() } -> std::same_as<std::size_t>;
    { c.width() } -> std::same_as<std::size_t>;
    { c.check(batch) };                            // throws RowError for the first row that cannot be taken
    { c.make_lookahead(batch) } -> std::same_as<typename H::Lookahead>;
    { c.window(n) } -> std::same_as<std::size_t>;  // how many of n rows to load next
    { c.load(lookahead, n, n) };                       // rows [first, first + count) of the batch
    { c.score(lookahead, n, n) } -> std::same_as<double>;          // of row i, output o
    { c.average_score(lookahead, n, n) } -> std::same_as<double>;  // requires: it averages
    { c.self(lookahead, n) } -> std::same_as<double>;
    { h.measure(lookahead, n, direction, trial) };     // what the rule said it needs; direction: the unit step
    { c.overflows(trial, step) } -> std::same_as<bool>;
    { h.plan(lookahead, n, term, budget, random) } -> std::same_as<typename H::Plan>;
    { h.commit(lookahead, n, plan, term) };
    { h.expire(lookahead, n, std::int64_t{}) };        // points older than a position leave, as seen by row i + 1
    { h.finish(lookahead) };                           // after the last row of a chunk that is kept
    { h.tick() };                                  // the present f is one of those averaged
    { c.ticks() } -> std::same_as<std::uint64_t>;
    { c.plan_is_readonly() } -> std::same_as<bool>;     // whether an event by itself changes nothing before its commit
    { h.begin(n, bool{}) };                        // a transaction over n rows, in which outputs may be added
    { h.keep() };
    { h.rollback() };
    { h.add_output() };                            // one more, all zero
    { h.split_output() };                          // the only output f becomes two: -f/2 and f/2
    { c.scores(batch, out) };                      // of what is shown (the mean, where it averages); outputs() a row
    { c.norm2() } -> std::same_as<double>;
    { c.bytes() } -> std::same_as<std::size_t>;
    { h.visit(archive, std::uint64_t{}) };         // saves or loads everything but points; second: events seen
};

}  // namespace gristmill
