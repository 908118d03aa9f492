// Folder expansion: support vectors as a hypothesis: coefficients, projection onto their span, merging, compression.
// It includes learner/ and below; pairwise/, fleet/ and bind/ may include it.
// Begin with this file: f = scale * sum_i coef_i k(x_i, .), several outputs over the same points, with inner products
// on request.
//
// Invariant: points, coefficients, scale and norm describe the same f after every operation. Only this class writes
// them. Coefficients are stored unscaled, so that shrinking is one multiplication; when the scale leaves a safe range
// it is multiplied into the coefficients.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/expansion/merge_partners.hpp"
#include "core/expansion/neighbours.hpp"
#include "core/kernels/lookahead.hpp"
#include "core/kernels/points.hpp"
#include "core/learner/hypothesis.hpp"

namespace gristmill {

class Expansion {
  public:
    static constexpr const char* kName = "an expansion over stored points";
    static constexpr Needs kSupports = {.norm = true,
                                        .tangent = true,
                                        .present = true,
                                        .rows = true,
                                        .partners = true,
                                        .average = true,
                                        .mass = true,
                                        .neighbours = 1};

    Expansion(Kernel kernel, std::unique_ptr<Points> points, std::size_t outputs, bool track_norm, bool average);
    Expansion(Kernel kernel, std::unique_ptr<Points> points, const Composition& composition);

    const Kernel& kernel() const { return kernel_; }
    const Points& points() const { return *points_; }
    Points& points() { return *points_; }
    std::size_t size() const { return points_->size(); }
    std::size_t outputs() const { return coef_.size() - hidden_; }  // without hidden ones
    std::size_t coefs_per_term() const { return coef_.size(); }
    std::size_t width() const { return points_->width(); }
    bool averages() const { return average_; }
    double scale() const { return scale_; }
    // <f_a, f_b>. requires: the norm is tracked.
    double inner(std::size_t a, std::size_t b) const { return inner_[a * coef_.size() + b]; }
    double mass() const;   // sum of the coefficients of the first output
    double norm2() const;  // sum over visible outputs of ||f_o||^2; computed from scratch if it is not tracked
    double coef(std::size_t slot, std::size_t output) const { return scale_ * coef_[output][slot]; }
    // Label of a stored point; NaN if unknown.
    double label(std::size_t slot, std::size_t target = 0) const { return label_[target][slot]; }
    std::size_t targets() const { return label_.size(); }
    // number of labels per point
    void keep_targets(std::size_t targets) { label_.resize(targets, Lines<double>(label_[0].size())); }
    double shown_coef(std::size_t slot, std::size_t output) const {
        return average_ ? average_coef(slot, output) : coef(slot, output);
    }
    // ---- as a store for budgets, which use visible outputs only
    std::int64_t id(std::size_t slot) const { return points_->id(slot); }
    std::size_t oldest() const { return points_->oldest(); }
    std::size_t newer(std::size_t slot) const { return points_->newer(slot); }
    std::size_t smallest() const;
    // requires: keep_partners(). may_go: the slots that may be evicted.
    Entry cheapest_fold(const Newcomer& newcomer) const;
    MergePartners::Fold cheapest_fold(std::span<const std::uint8_t> may_go) const;
    std::uint64_t rows_for_partners() const { return partners_ ? partners_->rows() : 0; }
    double magnitude(std::size_t slot) const;  // largest |coefficient| of a point in a visible output

    // f_o(x) from the kernel values of x, padded(size) numbers.
    double score(std::size_t output, const double* row) const;
    // The same for the average of all f at the calls of tick().
    double average_score(std::size_t output, const double* row) const;
    double average_coef(std::size_t slot, std::size_t output) const;
    void tick() {
        weight_ += scale_;
        ++ticks_;
    }  // adds the present f to the average
    std::uint64_t ticks() const { return ticks_; }

    // f <- factor f. ensures: 0 clears the store (if averaging, the points stay with coefficient 0).
    void shrink(double factor);
    // f_o <- f_o + c_o k(x, .) in slot `slot` (== size: append; otherwise `release` must have emptied it). values:
    // kernel values at the stored points, used only for the norm.
    void add(std::size_t slot, std::int64_t id, const Batch& batch, std::size_t row, std::span<const double> coefs,
             const double* values, double self, std::span<const double> labels = {});
    // f_o <- f_o + c k(x_slot, .) for a stored point. requires: the norm is not tracked, since it would need a score.
    void adjust(std::size_t slot, std::size_t output, double c) { change(slot, output, c / scale_); }
    // Removes the term of a slot from f but keeps the slot, for `add` to fill. row: its kernel row, used only for the
    // norm.
    void release(std::size_t slot, const double* row);
    // Removes term and slot; the last point moves into the slot.
    void remove(std::size_t slot, const double* row);
    // Adds `share` times the coefficients of `slot` to those of `onto`, in past hypotheses too. row: the kernel row of
    // `onto`, used only for the norm. The slot itself is unchanged.
    void fold(std::size_t slot, std::size_t onto, double share, const double* row);
    // f_to <- keep f_to + mix f_from
    void combine(std::size_t to, double keep, std::size_t from, double mix);
    // Adds `by` to the coefficients of a slot. row: its kernel row, used only for the norm.
    void adjust(std::size_t slot, std::span<const double> by, const double* row);
    // Sets all coefficients of an output, at their true scale. requires: the norm is not tracked.
    void assign(std::size_t output, std::span<const double> coefs);
    // Scales f so that ||f|| <= radius. requires: the norm is tracked.
    void stay_inside(double radius);
    // Recomputes the norm if accumulated rounding may be visible in it. Evaluates kernels, so it must run before a
    // step.
    void repair_norm();
    void add_output();  // adds an output that is zero, and an auxiliary one where there are any
    void split_output(double factor);  // replaces the one output f by -factor f and factor f; an auxiliary one likewise
    // Whether all coefficients stay in the safe range after shrinking by `factor` and adding `coefficient`.
    bool stays_in_range(double coefficient, double factor) const;
    // Multiplies the columns of the stored points by factors; this changes f.
    void rescale(std::span<const double> factors) { points_->rescale(factors); }
    // Changes the rows of the stored points, which keep their coefficients; norm and merge partners are recomputed.
    void change_points(const RowChange& change);
    // f_o <- factor_o f_o, including past hypotheses. Several factors require that the norm is not tracked.
    void scale_outputs(std::span<const double> factors);
    // Rescales the stored labels: y_o <- factor_o y_o + shift_o.
    void rescale_labels(std::span<const double> factors, std::span<const double> shifts) {
        for (std::size_t t = 0; t < label_.size(); ++t)
            for (double& y : label_[t]) y = factors[t] * y + shifts[t];
    }
    // recomputes the merge partners from the kernel rows of the stored points
    void refresh_partners(Lookahead& stored);
    void refresh_partners();  // the same without their Gram matrix in memory: a block of rows at a time
    void clear_coefs();  // sets all coefficients to 0 and keeps the points
    // All coefficients at their true scale, by output, then slot.
    std::vector<std::vector<double>> coefs() const;
    void set_coefs(const std::vector<std::vector<double>>& coefs);
    // Changes f so that its scores at the stored points are approximately `scores`, one row per look-ahead row: a few
    // Gauss-Seidel sweeps on (K + ridge diag K) c = scores + pull ridge diag K c_0, starting from the present
    // coefficients c_0; the ridge pulls towards c_0 (pull 1) or 0 (pull 0). Does not update a tracked norm: set_coefs
    // must follow.
    void fit_scores(Lookahead& stored, std::span<const double> scores, double pull);
    void reserve(std::size_t n);
    void keep_partners() { partners_.emplace(); }
    // Adds columns in which every stored point has 0.
    void widen(std::size_t width) { points_ = points_->widened(width); }
    // a window holds one more point temporarily
    void set_limit(std::size_t limit) {
        limit_ = limit;
        points_->set_limit(limit);
    }

    std::size_t bytes() const;
    // How many points fit into `bytes` with `outputs` outputs; 0 if the size of a point is not fixed.
    std::size_t points_within(std::size_t bytes, std::size_t outputs) const;
    // Sets the limit; surplus points are evicted by the budget.
    void resize(std::size_t limit, const Budget& budget, Random& random);
    // Inner products from the Gram matrix; `terms`, if given, receives the sum of absolute terms.
    std::vector<double> exact_inner(double* terms = nullptr) const;

    // ---- as a hypothesis, see learner/hypothesis.hpp
    using Lookahead = gristmill::Lookahead;
    struct Plan {
        Entry entry = {Entry::Kind::refuse};
        std::size_t present = Points::npos;  // the event's own slot, if it is stored
        Lines<double> evicted_row, partner_row;  // used only for the norm
    };
    void check(const Batch& batch) const;
    Lookahead make_lookahead(const Batch& batch) const { return Lookahead(*points_, kernel_, batch); }
    Lookahead make_revisit_lookahead(const Batch& batch, std::int64_t start) const;
    Lookahead make_stored_lookahead() const;  // the stored points as rows, oldest first, for relearning
    void refresh_lookahead(Lookahead& stored) const;  // recomputes it after the columns of the points changed
    std::size_t window(std::size_t left) const { return Lookahead::length(size(), left); }
    void load(Lookahead& lookahead, std::size_t first, std::size_t count) const;
    double score(Lookahead& lookahead, std::size_t i, std::size_t output) const {
        return output_score(output, lookahead.row(i));
    }
    double average_score(Lookahead& lookahead, std::size_t i, std::size_t output) const {
        return average_score(output, lookahead.row(i));
    }
    double self(Lookahead& lookahead, std::size_t i) const { return lookahead.self(i); }
    void measure(Lookahead& lookahead, std::size_t i, std::span<const double> direction, Trial& trial);
    bool overflows(const Trial& trial, const Step& step) const;
    Plan plan(Lookahead& lookahead, std::size_t i, Term& term, Budget& budget, Random& random);
    void commit(Lookahead& lookahead, std::size_t i, const Plan& plan, const Term& term);
    void expire(Lookahead& lookahead, std::size_t i, std::int64_t horizon);
    void finish(Lookahead&) {}
    bool plan_is_readonly() const { return !points_->may_fail(); }
    void scores(const Batch& batch, double* out) const;
    void gradients(const Batch& batch, double* out) const;  // of the predicting f: (row, output, feature)
    void split_output() { split_output(0.5); }
    // Transactions: after begin(), rollback() restores everything, keep() commits.
    void begin(std::size_t rows = 0, bool grows = false);
    void rollback();
    void keep();
    void visit(Archive& archive, std::uint64_t seen);

  private:
    static constexpr double kRounding = 4e-16;  // one or two ulp of each term that was added or removed
    // State that a rollback restores beside the points.
    struct State {
        std::vector<Lines<double>> coef, lag, sum;
        std::vector<Lines<double>> label;
        std::vector<double> inner;
        double scale, error_bound, error_floor, weight;
        std::uint64_t ticks;
        std::optional<MergePartners> partners;
    };
    // The score, or the nearest-neighbour score if the rule needs one.
    double output_score(std::size_t output, const double* row) const {
        return neighbours_ > 0 ? neighbours::score(row, label_[0].data(), size(), neighbours_) : score(output, row);
    }
    // squared coefficients into squares_, times the square of scale and `factor`
    void square_coefs(double factor) const;
    void adjust_present(Lookahead& lookahead, std::size_t i, const Plan& plan, const Term& term);
    void change(std::size_t slot, std::size_t output, double by);  // adds `by` to the unscaled coefficient
    // Updates the inner products when f_o gains c_o k(x, .), from f_o(x) before and k(x, x).
    void count_term(std::span<const double> coefs, std::span<const double> scores, double self);
    void renormalize();

    Kernel kernel_;
    OwnedPoints points_;
    bool track_norm_, average_;
    bool needs_mass_ = false;  // the rule needs the mass
    // share of stored points used by nearest-neighbour scores; labels then hold the reach of each point
    double neighbours_ = 0;
    bool windowed_ = false;  // points are evicted only by age, and slots move
    bool inserts_only_ = false;  // neither rule nor budget reads stored points, so that background work may
    std::size_t hidden_ = 0;  // number of auxiliary outputs, stored last: 0, or one for each visible output
    std::size_t limit_ = Points::npos;
    std::vector<Lines<double>> coef_;  // by output, then slot; padded with 0
    std::vector<Lines<double>> lag_, sum_;  // for the average; see average_coef() and renormalize()
    std::vector<Lines<double>> label_ = std::vector<Lines<double>>(1);  // by target and slot
    std::vector<double> inner_;  // <f_a, f_b> at (a, b), if tracked
    double scale_ = 1;
    double error_bound_ = 0;  // bound of the rounding error of inner_
    double error_floor_ = 0;  // rounding error of a freshly computed norm
    double weight_ = 0;  // sum of the scales at the ticks since the last renormalisation
    std::uint64_t ticks_ = 0;
    // with Merge; mutable, because stale partners are refreshed on demand
    mutable std::optional<MergePartners> partners_;
    mutable std::vector<double> squares_;  // scratch: squared coefficients by slot
    std::optional<State> saved_;
};

}  // namespace gristmill
