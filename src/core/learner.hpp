// The loop and its look-ahead; the only file that knows all the others.
//
// Over a chunk, the kernel values of the next rows against the stored points are computed in one block (a matrix
// product's efficiency). Then the events are handled one by one, in order; when one of them is stored, its column of the
// block is written over. Each event is planned first (kernels, rule, budget: anything that may fail) and committed after,
// and a chunk is one transaction: an error leaves the learner as it was.
#pragma once

#include <functional>

#include "core/budgets.hpp"
#include "core/expansion.hpp"
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
    void score(const Batch& batch, double* scores) const;

    // A new class: the first extra one turns the binary learner into a max-score one, f into (-f/2, f/2).
    void add_class();

    const Expansion& expansion() const { return expansion_; }
    Expansion& expansion_to_restore() { return expansion_; }
    Task task() const { return task_; }
    std::size_t outputs() const { return expansion_.outputs(); }
    std::span<const double> intercept() const { return intercept_; }
    double average_intercept(std::size_t output) const;
    std::uint64_t seen() const { return mutables_.seen; }
    const Rule& rule() const { return rule_; }
    const Budget& budget() const { return budget_; }
    std::size_t bytes() const { return expansion_.bytes() + sizeof *this; }

    // Small numbers that change while learning; part of a saved model.
    struct Mutables {
        std::uint64_t seen = 0, steps = 0;  // events that came; events that were learned (weight above 0)
        Random random;
    };
    const Mutables& mutables() const { return mutables_; }
    std::vector<double> rule_state() const;
    std::span<const double> intercept_sum() const { return intercept_sum_; }
    void restore(const Mutables& mutables, std::span<const double> rule_state, std::span<const double> intercept,
                 std::span<const double> intercept_sum);

    // Called between blocks of the look-ahead; may throw to stop the chunk.
    std::function<void()> poll;

  private:
    struct Chunk;
    void learn_rows(Chunk& chunk);
    void event(Chunk& chunk, std::size_t i);
    void commit(Chunk& chunk, std::size_t i, const Step& step, const Entry& entry, const double* victim_row);
    void expire(Chunk& chunk, std::size_t i);
    void report(std::span<const double> scores, const double* row, double* out) const;
    std::size_t window(std::size_t left) const;

    Expansion expansion_;
    Rule rule_;
    Budget budget_;
    Task task_;
    std::vector<double> intercept_, intercept_sum_;
    Mutables mutables_;
};

}  // namespace gristmill
