// A hypothesis in the span of few stored points: what the budget `Project` uses in place of coefficients.
//
// One span per output over one shared store of points. The coordinates define the hypothesis; the coefficients of the
// points are computed from them at the end of a chunk, for predictions.
#pragma once

#include "core/expansion/cholesky.hpp"
#include "core/expansion/expansion.hpp"

namespace gristmill {

class ProjectedExpansion {
  public:
    static constexpr const char* kName = "a hypothesis in the span of stored points";
    static constexpr Needs kSupports = {.norm = true, .projection = true, .span = true, .average = true};

    // requires: the budget of the composition is Project.
    ProjectedExpansion(Kernel kernel, std::unique_ptr<Points> points, const Composition& composition);

    const Expansion& expansion() const { return store_; }
    void widen(std::size_t width) { store_.widen(width); }
    std::size_t outputs() const { return spans_.size(); }
    std::size_t coefs_per_term() const { return spans_.size(); }
    std::size_t size() const { return store_.size(); }
    std::size_t width() const { return store_.width(); }
    std::size_t bytes() const;
    double norm2() const;

    // Kernel values of the rows ahead, and their coordinates in every output's basis.
    struct Lookahead : gristmill::Lookahead {
        explicit Lookahead(gristmill::Lookahead&& lookahead) : gristmill::Lookahead(std::move(lookahead)) {}
        double* coordinates(std::size_t output, std::size_t i) { return z[output].data() + i * z_stride; }

        std::size_t z_stride = 0, solved = 0;  // number of rows with coordinates
        std::vector<Lines<double>> z;
        Lines<double> members;  // kernel values at an output's members, gathered
        double residual = 0;    // of the last measured row
        bool changed = false;   // whether the coefficients are out of date
    };
    struct Plan {
        bool fold = false;  // project onto the span instead of storing
    };
    void check(const Batch& batch) const { store_.check(batch); }
    Lookahead make_lookahead(const Batch& batch) const { return Lookahead(store_.make_lookahead(batch)); }
    Lookahead make_revisit_lookahead(const Batch& batch, std::int64_t start) const {
        return Lookahead(store_.make_revisit_lookahead(batch, start));
    }
    std::size_t window(std::size_t left) const { return store_.window(left); }
    void load(Lookahead& lookahead, std::size_t first, std::size_t count) const;
    // Score from the coefficients, without a substitution; agrees with `score` up to rounding.
    void keep_targets(std::size_t targets) { store_.keep_targets(targets); }
    double rough_score(Lookahead& lookahead, std::size_t output) const {
        return store_.score(output, lookahead.row(0));
    }
    double score(Lookahead& lookahead, std::size_t i, std::size_t output) const;
    double average_score(Lookahead& lookahead, std::size_t i, std::size_t output) const;
    double self(Lookahead& lookahead, std::size_t i) const { return lookahead.self(i); }
    void measure(Lookahead& lookahead, std::size_t i, std::span<const double> direction, Trial& trial);
    bool overflows(const Trial& trial, const Step& step) const { return store_.overflows(trial, step); }
    Plan plan(Lookahead& lookahead, std::size_t i, Term& term, Budget& budget, Random& random);
    void commit(Lookahead& lookahead, std::size_t i, const Plan& plan, const Term& term);
    void expire(Lookahead&, std::size_t, std::int64_t) {}
    void finish(Lookahead& lookahead) {
        if (lookahead.changed) refresh();
    }
    void tick();
    std::uint64_t ticks() const { return ticks_; }
    bool plan_is_readonly() const { return false; }  // a commit needs memory: every event is a transaction
    void add_output();
    // Changes the rows of the stored points, which keep their coefficients; what becomes dependent is projected.
    void change_points(const RowChange& change);
    void scale_outputs(std::span<const double> factors);  // f_o <- factor_o f_o, including past hypotheses
    void rescale_labels(std::span<const double> factors, std::span<const double> shifts) {
        store_.rescale_labels(factors, shifts);
    }
    void split_output();
    void scores(const Batch& batch, double* out) const { store_.scores(batch, out); }
    void gradients(const Batch& batch, double* out) const { store_.gradients(batch, out); }
    void begin(std::size_t rows, bool grows);
    void keep();
    void rollback();
    void visit(Archive& archive, std::uint64_t seen);

  private:
    void solve(Lookahead& lookahead) const;
    void store(Lookahead& lookahead, std::size_t i, const Term& term);
    void rebuild(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& members);
    void refresh();  // computes coefficients (of the average, if averaging) from the coordinates

    Expansion store_;
    double tolerance_;
    bool norm_, average_;  // whether the rule needs the norm; whether predictions use the average
    std::size_t limit_;
    std::uint64_t ticks_ = 0;
    std::vector<CholeskySpan> spans_;
    // Undo state of a transaction.
    std::vector<CholeskySpan::Snapshot> snapshots_;
    std::vector<CholeskySpan> narrower_;  // the spans before outputs were added or points were changed
    std::uint64_t ticks_before_ = 0;
};

}  // namespace gristmill
