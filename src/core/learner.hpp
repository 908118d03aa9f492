// The loop and its look-ahead; the only file that knows all the others.
//
// Over a chunk, the kernel values of the next rows against the stored points are computed in one block (a matrix
// product's efficiency). Then the events are handled one by one, in order; when one of them is stored, its column of the
// block is written over. Each event is planned first (kernels, rule, budget: anything that may fail) and committed after,
// and a chunk is one transaction: an error leaves the learner as it was.
#pragma once

#include <functional>
#include <optional>

#include "core/budgets.hpp"
#include "core/expansion.hpp"
#include "core/projections.hpp"
#include "core/random.hpp"
#include "core/rules.hpp"

namespace gristmill {

enum class Task { binary, multiclass, regression, novelty };

class Learner {
  public:
    Learner(Kernel kernel, std::unique_ptr<Points> points, Rule rule, Budget budget, Task task, std::size_t outputs,
            bool average, std::uint64_t seed);

    // One pass over a chunk. labels: -1/+1, class numbers, targets, or nothing for novelty; weights: or nothing.
    // scores, if given: what each event was said to be before it was learned, outputs() numbers a row.
    void learn(const Batch& batch, std::span<const double> labels, std::span<const double> weights, double* scores);
    // One more pass over events that came before, the first of them at position `start` of the stream (Adatron).
    void revisit(const Batch& batch, std::span<const double> labels, std::span<const double> weights, std::int64_t start);
    void score(const Batch& batch, double* scores) const;

    // A new class: the first extra one turns the binary learner into a max-score one, f into (-f/2, f/2).
    void add_class();

    const Expansion& expansion() const { return expansion_; }
    Expansion& expansion_to_restore() { return expansion_; }
    std::optional<Projections>& projections() { return projections_; }
    const std::optional<Projections>& projections() const { return projections_; }
    Task task() const { return task_; }
    std::size_t outputs() const { return intercept_.size(); }
    std::span<const double> intercept() const { return intercept_; }
    double average_intercept(std::size_t output) const;
    double margin() const;  // what a novelty score is measured from: of now, or the mean over time
    double norm2() const;  // of the present f, over all outputs
    std::uint64_t seen() const { return mutables_.seen; }
    const Rule& rule() const { return rule_; }
    const Budget& budget() const { return budget_; }
    std::size_t bytes() const;

    // Small numbers that change while learning; part of a saved model.
    struct Mutables {
        std::uint64_t seen = 0, steps = 0;  // events that came; events that were learned (weight above 0)
        std::uint64_t ticks = 0;            // hypotheses in the average
        Random random;
        double margins = 0;                 // novelty: their sum over the hypotheses in the average
    };
    const Mutables& mutables() const { return mutables_; }
    std::vector<double> rule_state() const;
    std::vector<double> budget_state() const;
    std::span<const double> intercept_sum() const { return intercept_sum_; }
    void restore(const Mutables& mutables, std::span<const double> rule_state, std::span<const double> budget_state,
                 std::span<const double> intercept, std::span<const double> intercept_sum);

    // Called between blocks of the look-ahead; may throw to stop the chunk.
    std::function<void()> poll;

  private:
    struct Chunk;
    struct Plan;
    void transact(const std::function<void()>& work);
    void learn_rows(Chunk& chunk);
    bool passes_by(Chunk& chunk);
    void event(Chunk& chunk, std::size_t i);
    Trial trial(Chunk& chunk, std::size_t i, Plan& plan);
    void check_step(std::size_t at, const Trial& trial, const Step& step) const;
    void decide(Chunk& chunk, std::size_t i, Plan& plan);
    void commit(Chunk& chunk, std::size_t i, Plan& plan);
    void commit_term(Chunk& chunk, std::size_t i, Plan& plan);
    void commit_projected(Chunk& chunk, std::size_t i, Plan& plan);
    void expire(Chunk& chunk, std::size_t i);
    const double* victim_row(Chunk& chunk, std::size_t slot) const;
    void report(Chunk& chunk, std::size_t i, double* out) const;
    std::size_t window(std::size_t left) const;

    Rule rule_;
    Budget budget_;
    Needs needs_;
    bool average_;
    Expansion expansion_;
    std::optional<Projections> projections_;  // with the budget Project: where the hypothesis really lives
    Task task_;
    std::vector<double> intercept_, intercept_sum_;
    Mutables mutables_;
};

}  // namespace gristmill
