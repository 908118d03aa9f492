// The rules over explicit weights: w in a mapped space of fixed width, one event at a time, in constant memory.
//
// The invariant is that of expansion.hpp: weights, scale and norm describe the same w after every operation, and only
// `Weights` writes any of them. A norm costs no more than the step that changed it, so it is computed afresh each time
// and never drifts.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/learner.hpp"

namespace gristmill {

class Weights {
  public:
    Weights(std::size_t width, std::size_t outputs, bool track_norm, bool average);
    std::size_t width() const { return width_; }
    std::size_t outputs() const { return values_.size(); }
    bool averages() const { return average_; }
    bool tracks_norm() const { return track_norm_; }
    double norm2() const { return norm2_; }  // over all outputs, if tracked
    double exact_norm2() const;
    double at(std::size_t output, std::size_t i) const { return scale_ * values_[output][i]; }
    double average_at(std::size_t output, std::size_t i) const;

    // <w_o, z>; z has padded(width) entries, the last ones 0.
    double score(std::size_t output, const double* z) const;
    double average_score(std::size_t output, const double* z) const;
    void tick();  // the present w is one of those averaged

    // w <- factor w + sum_o coefs_o z in output o, then inside the ball. ensures: norm2 is that of w.
    void step(double factor, std::span<const double> coefs, const double* z, double radius);
    void add_output();
    void split_output(double factor);  // one output w becomes two: -factor w and factor w

    struct State {
        std::vector<Lines<double>> values, sum;  // by output; padded with 0
        double scale = 1, norm2 = 0;
        std::uint64_t ticks = 0;
    };
    State state() const { return {values_, sum_, scale_, norm2_, ticks_}; }
    void restore(State state);
    std::uint64_t ticks() const { return ticks_; }
    std::size_t bytes() const { return (values_.size() + sum_.size()) * padded(width_) * sizeof(double); }

  private:
    void rescale(double factor);

    std::size_t width_;
    bool track_norm_, average_;
    std::vector<Lines<double>> values_, sum_;
    double scale_ = 1, norm2_ = 0;
    std::uint64_t ticks_ = 0;
};

class LinearLearner {
  public:
    LinearLearner(std::size_t width, Rule rule, Task task, std::size_t outputs, bool average);

    // One pass over mapped rows; the arguments are those of Learner::learn. An error leaves the learner as it was.
    template <class T>
    void learn(const DenseRows<T>& rows, std::span<const double> labels, std::span<const double> weights, double* scores);
    template <class T>
    void score(const DenseRows<T>& rows, double* scores) const;
    void add_class();

    const Weights& weights() const { return weights_; }
    std::size_t outputs() const { return weights_.outputs(); }
    Task task() const { return task_; }
    const Rule& rule() const { return rule_; }
    std::span<const double> intercept() const { return counts_.intercept; }
    double average_intercept(std::size_t output) const;
    std::size_t bytes() const { return weights_.bytes() + sizeof *this; }

    struct Counts {
        std::uint64_t seen = 0, steps = 0;
        std::vector<double> intercept, intercept_sum;
        double margins = 0;  // novelty: their sum over the hypotheses in the average
    };
    double margin() const;  // what a novelty score is measured from: of now, or the mean over time
    const Counts& counts() const { return counts_; }
    std::vector<double> rule_state() const;
    void restore(Counts counts, std::span<const double> rule_state, Weights::State weights);

    std::function<void()> poll;  // called now and then; may throw to stop the chunk

  private:
    void event(std::size_t row, const double* z, double label, double weight, double* out);
    void report(std::span<const double> scores, const double* z, double* out) const;

    Weights weights_;
    Rule rule_;
    Task task_;
    Counts counts_;
    std::vector<double> scores_, coefs_;  // scratch of one event
};

}  // namespace gristmill
