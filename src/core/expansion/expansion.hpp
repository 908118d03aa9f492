// f = scale * sum_i coef_i k(x_i, .), several outputs over the same points, with their inner products on request.
//
// THE invariant: points, coefficients, scale and norm describe the same f after every operation. This class is the only
// one that writes any of them. Coefficients are kept unscaled and shrinking is one multiplication; when the scale leaves
// a safe range it is multiplied in, unseen from outside.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/learner/hypothesis.hpp"
#include "core/expansion/neighbours.hpp"
#include "core/expansion/merge_partners.hpp"
#include "core/kernels/points.hpp"
#include "core/kernels/lookahead.hpp"

namespace gristmill {

class Expansion {
  public:
    static constexpr const char* kName = "an expansion over stored points";
    static constexpr Needs kSupports = {.norm = true, .tangent = true, .present = true, .rows = true,
                                        .partners = true, .average = true, .mass = true, .neighbours = 1};

    Expansion(Kernel kernel, std::unique_ptr<Points> points, std::size_t outputs, bool track_norm, bool average);
    Expansion(Kernel kernel, std::unique_ptr<Points> points, const Composition& composition);

    const Kernel& kernel() const { return kernel_; }
    const Points& points() const { return *points_; }
    Points& points() { return *points_; }
    std::size_t size() const { return points_->size(); }
    std::size_t outputs() const { return coef_.size() - hidden_; }  // visible ones
    std::size_t coefs_per_term() const { return coef_.size(); }
    std::size_t width() const { return points_->width(); }
    bool tracks_norm() const { return track_norm_; }
    bool averages() const { return average_; }
    double scale() const { return scale_; }
    // <f_a, f_b>. requires: tracks_norm().
    double inner(std::size_t a, std::size_t b) const { return inner_[a * coef_.size() + b]; }
    double mass() const;   // the sum of the coefficients of the first output
    double norm2() const;  // sum over visible outputs of ||f_o||^2; computed afresh where it is not tracked
    double coef(std::size_t slot, std::size_t output) const { return scale_ * coef_[output][slot]; }
    // NaN where it is not known.
    double label(std::size_t slot, std::size_t target = 0) const { return label_[target][slot]; }
    std::size_t targets() const { return label_.size(); }
    void keep_targets(std::size_t targets) { label_.resize(targets, Lines<double>(label_[0].size())); }  // so many labels a point
    double shown_coef(std::size_t slot, std::size_t output) const {
        return average_ ? average_coef(slot, output) : coef(slot, output);
    }
    // As a store for budgets: they judge by visible outputs.
    std::int64_t id(std::size_t slot) const { return points_->id(slot); }
    std::size_t oldest() const { return points_->oldest(); }
    std::size_t newer(std::size_t slot) const { return points_->newer(slot); }
    std::size_t smallest() const;
    // requires: it keeps partners. may_go: the slots that may leave.
    Entry cheapest_fold(const Newcomer& newcomer) const;
    Partners::Fold cheapest_fold(std::span<const std::uint8_t> may_go) const;
    std::uint64_t rows_for_partners() const { return partners_ ? partners_->rows() : 0; }
    double magnitude(std::size_t slot) const;  // the largest |coefficient| of a point in a visible output

    // f_o(x) from the row of kernel values at x, padded(size) of them.
    double score(std::size_t output, const double* row) const;
    // The same for the mean over time of all f that `tick` was told of.
    double average_score(std::size_t output, const double* row) const;
    double average_coef(std::size_t slot, std::size_t output) const;
    void tick() { weight_ += scale_, ++ticks_; }  // the present f is one of those averaged
    std::uint64_t ticks() const { return ticks_; }

    // f <- factor f. ensures: 0 clears (with an average the points stay, their coefficients 0).
    void shrink(double factor);
    // f_o <- f_o + c_o k(x, .) in slot `slot` (== size: append; else what is there must have been emptied by `release`).
    // values: kernel values at the stored points, used for the norm only.
    void add(std::size_t slot, std::int64_t id, const Batch& batch, std::size_t row, std::span<const double> coefs,
             const double* values, double self, std::span<const double> told = {});
    // f_o <- f_o + c k(x_slot, .) for a point that is stored. requires: !tracks_norm(), for the norm would need a score.
    void adjust(std::size_t slot, std::size_t output, double c) { change(slot, output, c / scale_); }
    // Takes the term of a slot out of f but leaves the slot, for `add` to fill. row: its kernel row, for the norm only.
    void release(std::size_t slot, const double* row);
    // Takes term and slot out; the last point moves into the slot.
    void remove(std::size_t slot, const double* row);
    // The term of `slot` is added to that of `onto`, in past hypotheses too: share of its coefficients. row: the kernel row of
    // `onto`, for the norm only. The slot itself stays as it is.
    void fold(std::size_t slot, std::size_t onto, double share, const double* row);
    // f_to <- keep f_to + mix f_from
    void combine(std::size_t to, double keep, std::size_t from, double mix);
    // Changes the coefficients of a slot by so much. row: its kernel row, for the norm only.
    void adjust(std::size_t slot, std::span<const double> by, const double* row);
    // Sets all coefficients of an output, at their true scale. Not with a tracked norm.
    void assign(std::size_t output, std::span<const double> coefs);
    // Afterwards ||f|| <= radius. requires: tracks_norm().
    void stay_inside(double radius);
    // Recompute the norm if rounding may by now show in it. Evaluates kernels, so it belongs before a step, not in it.
    void repair_norm();
    void add_output();                 // one more, all zero; where there are auxiliary ones, one more of those
    void split_output(double factor);  // one output f becomes two: -factor f and factor f; so does an auxiliary one
    // Whether shrinking by `factor` and then adding `coefficient` keeps every coefficient finite.
    bool has_room_for(double coefficient, double factor) const;
    // Columns of the stored points times these factors; f is another one then.
    void rescale(std::span<const double> factors) { points_->rescale(factors); }
    // f_o <- factor_o f_o, past hypotheses too. Several factors: not with a tracked norm.
    void retell(std::span<const double> factors);
    // The labels of the stored points, y_o as factor_o y_o + shift_o.
    void relabel(std::span<const double> factors, std::span<const double> shifts) {
        for (std::size_t t = 0; t < label_.size(); ++t)
            for (double& y : label_[t]) y = factors[t] * y + shifts[t];
    }
    void pair_again(Sight& stored);  // after that, with the points as they are now
    void restart();  // all coefficients 0, the points still there
    // All coefficients at their true scale, by output, then slot.
    std::vector<std::vector<double>> coefs() const;
    void set_coefs(const std::vector<std::vector<double>>& coefs);
    // f changes so that it has these scores at the stored points (a row each, as they are seen), nearly: a few sweeps of
    // Gauss-Seidel on (K + ridge diag K) c = scores + pull ridge diag K c_0 from the present coefficients c_0, to which (pull 1)
    // or to 0 (pull 0) the ridge draws. Not with a tracked norm: set_coefs follows.
    void keep_scores(Sight& stored, std::span<const double> scores, double pull);
    void reserve(std::size_t n);
    void keep_partners() { partners_.emplace(); }
    void set_limit(std::size_t limit) { limit_ = limit, points_->set_limit(limit); }  // a window holds one more for a moment

    std::size_t bytes() const;
    // How many points fit into so many bytes with so many outputs; 0 if that cannot be said of these points.
    std::size_t points_within(std::size_t bytes, std::size_t outputs) const;
    // No more than so many points from now on: those that are too many leave as the budget says.
    void resize(std::size_t limit, const Budget& budget, Random& random);
    // From the Gram matrix; `terms`, if given, is the sum of absolute terms.
    std::vector<double> exact_inner(double* terms = nullptr) const;

    // ---- as a hypothesis, see learner/hypothesis.hpp
    using Sight = gristmill::Sight;
    struct Plan {
        Entry entry = {Entry::Kind::refuse};
        std::size_t present = Points::npos;  // the event's own slot, if it came by before
        Lines<double> victim_row, partner_row;  // for the norm only
    };
    void check(const Batch& batch) const;
    Sight look(const Batch& batch) const { return Sight(*points_, kernel_, batch); }
    Sight look_again(const Batch& batch, std::int64_t start) const;
    Sight look_at_stored() const;  // the stored points as rows, oldest first, to be learned again
    void look_anew(Sight& stored) const;  // at the same points, after their columns have changed
    std::size_t window(std::size_t left) const { return Sight::length(size(), left); }
    void load(Sight& sight, std::size_t first, std::size_t count) const;
    double score(Sight& sight, std::size_t i, std::size_t output) const { return said(output, sight.row(i)); }
    double average_score(Sight& sight, std::size_t i, std::size_t output) const { return average_score(output, sight.row(i)); }
    double self(Sight& sight, std::size_t i) const { return sight.self(i); }
    void measure(Sight& sight, std::size_t i, std::span<const double> direction, Trial& trial);
    bool overflows(const Trial& trial, const Step& step) const;
    Plan plan(Sight& sight, std::size_t i, Term& term, Budget& budget, Random& random);
    void commit(Sight& sight, std::size_t i, const Plan& plan, const Term& term);
    void expire(Sight& sight, std::size_t i, std::int64_t horizon);
    void finish(Sight&) {}
    bool plans_alone() const { return !points_->may_fail(); }
    void scores(const Batch& batch, double* out) const;
    void gradients(const Batch& batch, double* out) const;  // of what is shown: (row, output, feature)
    void split_output() { split_output(0.5); }
    // A chunk is one transaction: after begin(), rollback() brings everything back as it was, keep() lets go.
    void begin(std::size_t rows = 0, bool grows = false);
    void rollback();
    void keep();
    void visit(Archive& archive, std::uint64_t seen);

  private:
    // What a transaction has to bring back beside the points.
    struct State {
        std::vector<Lines<double>> coef, lag, sum;
        std::vector<Lines<double>> label;
        std::vector<double> inner;
        double scale, doubt, floor, weight;
        std::uint64_t ticks;
        std::optional<Partners> partners;
    };
    // The score, or how near the neighbours are where the rule asks for that.
    double said(std::size_t output, const double* row) const {
        return neighbours_ > 0 ? neighbours::score(row, label_[0].data(), size(), neighbours_) : score(output, row);
    }
    void square_coefs(double factor) const;  // into squares_, times the square of the scale and of `factor`
    void adjust_present(Sight& sight, std::size_t i, const Plan& plan, const Term& term);
    void change(std::size_t slot, std::size_t output, double by);  // of the unscaled coefficient
    // The inner products after f_o gains c_o k(x, .), from f_o(x) before and k(x, x).
    void count_term(std::span<const double> coefs, std::span<const double> scores, double self);
    void renormalize();

    Kernel kernel_;
    std::unique_ptr<Points> points_;
    bool track_norm_, average_;
    bool weighs_ = false;     // the rule asks for the mass
    double neighbours_ = 0;   // share of the stored points that a score is measured by; labels are how far those had theirs then
    bool windowed_ = false;   // points leave by age alone, and others move about then
    bool only_puts_ = false;  // neither rule nor budget looks at stored points, which others may read while one learns
    std::size_t hidden_ = 0;  // the last outputs, which are auxiliary: none, or as many as the visible ones
    std::size_t limit_ = Points::npos;
    std::vector<Lines<double>> coef_;        // by output, then slot; padded with 0
    std::vector<Lines<double>> lag_, sum_;   // for the average; see change() and renormalize()
    std::vector<Lines<double>> label_ = std::vector<Lines<double>>(1);  // by target and slot
    std::vector<double> inner_;              // <f_a, f_b> at (a, b), if tracked
    double scale_ = 1;
    double doubt_ = 0;   // what rounding may have done to inner_
    double floor_ = 0;   // what it does even to a fresh norm
    double weight_ = 0;  // sum of the scales since the last renormalisation
    std::uint64_t ticks_ = 0;
    mutable std::optional<Partners> partners_;  // with Merge; what is known of them grows while they are asked
    mutable std::vector<double> squares_;       // scratch: squared coefficients by slot
    std::optional<State> saved_;
};

}  // namespace gristmill
