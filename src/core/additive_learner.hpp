// The loop over an additive kernel: the same rules, steps and budgets as learner.hpp, the score from trees.
//
// f = scale * sum_i coef_i k(x_i, .). This class owns terms, trees, scale and norm together and is the only one that
// writes any of them. Each event is planned first and committed after; a chunk is one transaction.
#pragma once

#include <functional>

#include "core/additive.hpp"
#include "core/batch.hpp"
#include "core/budgets.hpp"
#include "core/learner.hpp"
#include "core/random.hpp"
#include "core/rules.hpp"
#include "core/terms.hpp"

namespace gristmill {

class AdditiveLearner {
  public:
    // width: columns of an input row; single: rows come, and are kept, as floats. Throws std::invalid_argument for a budget that trees cannot serve.
    AdditiveLearner(std::vector<Coordinate> coordinates, std::size_t width, bool single, bool skip_missing, Rule rule,
                    Budget budget, Task task, std::size_t outputs, std::uint64_t seed);

    // Throws RowError for the first row that cannot be taken.
    void check(const Batch& batch) const;
    // As in Learner.
    void learn(const Batch& batch, std::span<const double> labels, std::span<const double> weights, double* scores);
    void score(const Batch& batch, double* scores) const;
    // What each coordinate adds to each output: rows x outputs x coordinates.
    void components(const Batch& batch, double* out) const;
    void add_class();
    void compile() { sum_.compile(); }
    bool compiled() const { return sum_.compiled(); }

    const Terms& terms() const { return terms_; }
    const AdditiveSum& sum() const { return sum_; }
    Task task() const { return task_; }
    std::size_t outputs() const { return sum_.outputs(); }
    std::size_t width() const { return terms_.width(); }
    double coef(std::size_t slot, std::size_t output) const { return scale_ * terms_.coefs(slot)[output]; }
    std::span<const double> intercept() const { return intercept_; }
    const Rule& rule() const { return rule_; }
    std::uint64_t seen() const { return mutables_.seen; }
    std::vector<double> rule_state() const;
    double norm2() const;
    std::size_t bytes() const { return terms_.bytes() + sum_.bytes() + sizeof *this; }

    struct State {  // plain numbers; with the terms and the shapes of the trees, the whole learner
        double scale = 1, norm2 = 0, doubt = 0, floor = 0;
        Learner::Mutables mutables;
        std::vector<double> rule, intercept;
    };
    State state() const { return {scale_, norm2_, doubt_, floor_, mutables_, rule_state(), intercept_}; }
    struct Odd {  // an entry that does not follow from the coefficients of its terms
        std::size_t tree, entry;
        double coef, rest;
    };
    std::vector<Odd> odd_entries() const;
    // requires: a fresh learner. rows, ids, coefs (by output): as they were, slot by slot; shapes: by output, then coordinate.
    void restore(const State& state, const double* rows, std::span<const std::int64_t> ids,
                 const std::vector<std::vector<double>>& coefs, const std::vector<std::vector<std::uint8_t>>& shapes,
                 std::span<const Odd> odd);

    std::function<void()> poll;  // called now and then in a chunk; may throw to stop it

  private:
    struct Scratch;
    struct Plan;
    void event(Scratch& scratch, const Batch& batch, std::size_t at, double label, double weight, double* out);
    void decide(Scratch& scratch, std::size_t at, double label, double weight, Plan& plan);
    void make_room(std::span<const std::size_t> outputs, std::size_t more);
    void commit(Scratch& scratch, Plan& plan);
    Entry choose(std::span<const double> coefs, double shrink, Random& random) const;
    void shrink(double factor);
    void add(Scratch& scratch, std::span<const double> coefs);
    void remove(std::size_t slot);
    void stay_inside(double radius);
    void repair_norm();
    void expire();
    double exact_norm2(double* absolute) const;
    std::vector<TreeEntry> fresh_entries(std::size_t output, std::size_t c) const;

    AdditiveSum sum_;
    Terms terms_;
    bool skip_missing_;
    Rule rule_;
    Budget budget_;
    Task task_;
    bool track_norm_;
    double scale_ = 1, norm2_ = 0, doubt_ = 0, floor_ = 0;  // as in Expansion
    std::vector<double> intercept_;
    Learner::Mutables mutables_;
    std::vector<double> row_, keys_;  // of a stored term, while learning
    bool filled_ = false;               // room for all that the budget allows has been made
};

}  // namespace gristmill
