// Folder structured: hypotheses over (input, label) pairs, f = sum_i c_i K((x_i, y_i), .), for labels with structure.
// It includes expansion/ and below; bind/ may include it.
// Begin with this file. An input is one row or a sequence of rows, a label has one symbol per row, and
//   K((x, y), (x', y')) = sum_{s,t} k(x_s, x'_t) [y_s = y'_t] + w sum_{s,t} [y_s = y'_t] [y_{s+1} = y'_{t+1}].
// With one row this is k(x, x') [y = y'], multiclass classification. A kernel of the caller's own gives its values itself.
// The search for the best label is the caller's: scores of symbols at each row, and of pairs of symbols that follow each
// other, are what it needs.
//
// A hypothesis is a value: a caller changes a copy and replaces the old one, so that an error changes nothing.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/base/random.hpp"
#include "core/expansion/cholesky.hpp"
#include "core/kernels/lookahead.hpp"

namespace gristmill {

using Label = std::span<const std::int32_t>;

struct JointSettings {
    enum class Rule { perceptron, margin_projection, implicit } rule = Rule::perceptron;
    enum class Drop { nothing, oldest, smallest, random } drop = Drop::nothing;
    bool squared = false;  // of margin_projection
    double C = 1, rate = 1, reg = 0;  // of implicit
    std::size_t size = 0;  // largest number of stored inputs, unless nothing is dropped
    bool uniform = false;  // of random
    bool projects = false;
    double tolerance = 0;
    bool average = false;
    double transitions = 0;  // w
};

class JointExpansion;

// What a step needs to know about one sample.
class JointSample {
  public:
    virtual ~JointSample() = default;
    virtual void row(Label label, double* out) = 0;  // K((x, label), .) at all functions
    virtual double cross(Label a, Label b) = 0;  // K((x, a), (x, b))
    virtual std::vector<std::size_t> store() = 0;  // stores the rows; returns their slots
    virtual void removed(std::size_t slot) = 0;  // the last slot has moved into this one
};

class JointExpansion {
  public:
    // points: null if the caller compares inputs.
    JointExpansion(const JointSettings& settings, Kernel kernel, std::unique_ptr<Points> points, std::uint64_t seed);

    const JointSettings& settings() const { return settings_; }
    const Kernel& kernel() const { return kernel_; }
    bool has_points() const { return static_cast<bool>(points_); }
    const Points& points() const { return *points_; }
    Points& points() { return *points_; }

    std::size_t size() const { return ids_.size(); }  // stored inputs, oldest first
    std::size_t functions() const { return of_.size(); }
    std::uint64_t seen() const { return seen_; }
    std::span<const std::int64_t> ids() const { return ids_; }
    std::span<const std::size_t> slots() const { return slots_; }  // of all rows, input by input
    std::span<const std::size_t> first_row() const { return first_row_; }  // of each input, and the end
    std::span<const std::size_t> of() const { return of_; }  // input of each function
    std::span<const std::int32_t> symbols() const { return symbols_; }  // of all functions, one after the other
    std::span<const std::size_t> first_symbol() const { return first_symbol_; }
    Label label(std::size_t i) const {
        return Label(symbols_).subspan(first_symbol_[i], first_symbol_[i + 1] - first_symbol_[i]);
    }
    std::span<const double> coefs() const { return coef_; }
    // Coefficients that predict: present ones, or their mean over time.
    std::vector<double> weights(bool average) const;
    std::size_t bytes() const;

    // out: rows x symbols scores of each symbol at each row, from kernel values[row * stride + slot].
    void row_scores(std::span<const double> weights, const double* values, std::size_t stride, std::size_t rows,
                    std::size_t symbols, double* out) const;
    // out: symbols x symbols, the score of one symbol after another.
    void transition_scores(std::span<const double> weights, std::size_t symbols, double* out) const;
    // K((x, label), .) at all functions from kernel values as above.
    void row(Label label, const double* values, std::size_t stride, double* out) const;

    // The step after a sample with label y whose best rival is `rival`; margin: f(x, y) - f(x, rival); cost: of the rival
    // (implicit). ensures: seen() grows by 1.
    void learn(JointSample& x, Label y, Label rival, double margin, double cost, double weight);
    void pass() { ++seen_; }  // a sample of weight 0
    void tick();  // adds the present hypothesis to the average

    // Symbols that some function has, ascending; they are renumbered 0, 1, ... in this order.
    std::vector<std::int32_t> compact();

    // ---- saved state
    struct State {
        std::vector<std::int64_t> ids;
        std::vector<std::size_t> first_row, of, first_symbol;
        std::vector<std::int32_t> symbols;
        // If the budget projects: coef holds the coordinates of f, factor the rows of L with 1 / diagonal on the diagonal.
        std::vector<double> coef, total, factor;
        std::uint64_t seen = 0, ticks = 0, draws = 0;
        Random random;
    };
    State state() const;
    // requires: the points hold all rows, slot by slot in the order of the inputs; the numbers of `state` fit together.
    void restore(const State& state);

  private:
    struct Term {
        Label label;
        double coef;
    };
    void implicit(JointSample& x, Label y, Label rival, double margin, double cost, double weight);
    void project(JointSample& x, Label y, Label rival, double margin, double weight);
    void add(JointSample& x, std::span<const Term> terms);
    void append(JointSample& x, std::span<const Term> terms);
    void append_function(Label label, double coef);
    void remove(JointSample& x, std::size_t input);
    void refresh() { coef_ = span_.coefficients(span_.coordinates().data()); }

    JointSettings settings_;
    Kernel kernel_;
    OwnedPoints points_;
    std::vector<std::int64_t> ids_;
    std::vector<std::size_t> slots_, first_row_ = {0};
    std::vector<std::size_t> of_, first_symbol_ = {0};
    std::vector<std::int32_t> symbols_;
    std::vector<double> coef_, total_;
    CholeskySpan span_;  // of the functions, if the budget projects
    std::uint64_t seen_ = 0, ticks_ = 0, draws_ = 0;
    Random random_;
};

// Learns samples of one row in order; labels are symbols below `classes`, the rival is the first symbol with the highest
// score plus cost. costs: classes x classes, or empty. scores: null, or rows x classes, before each sample. poll: called
// before each sample.
void learn_classes(JointExpansion& f, const Batch& batch, std::span<const std::int32_t> labels,
                   std::span<const double> weights, std::span<const double> costs, std::size_t classes, double* scores,
                   const std::function<void()>& poll);

// Samples of a chunk against a hypothesis with points: sample i has the rows [start[i], start[i + 1]).
class JointLookahead final : public JointSample {
  public:
    JointLookahead(JointExpansion& f, const Batch& batch, std::span<const std::int64_t> start)
        : f_(f), lookahead_(f.points(), f.kernel(), batch), start_(start) {}

    // Makes sample i the current one. requires: samples come in order. throws RowError if a kernel value is not finite.
    void at(std::size_t i);
    std::size_t rows() const { return static_cast<std::size_t>(start_[i_ + 1] - start_[i_]); }
    const double* values() { return lookahead_.row(first_); }
    std::size_t stride() const { return lookahead_.stride; }

    void row(Label label, double* out) override { f_.row(label, values(), stride(), out); }
    double cross(Label a, Label b) override;
    std::vector<std::size_t> store() override;
    void removed(std::size_t slot) override;

  private:
    void load(std::size_t i);

    JointExpansion& f_;
    Lookahead lookahead_;
    std::span<const std::int64_t> start_;
    std::size_t i_ = 0, end_ = 0, first_ = 0;  // sample, first sample not loaded, first row of the sample in the block
    Lines<double> among_;
};

}  // namespace gristmill
