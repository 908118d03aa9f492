// Folder additive: trees of additive kernels as a hypothesis.
// It includes learner/ and below; bind/ may include it.
// Begin with this file: f = scale * sum_i coef_i k(x_i, .) over an additive kernel, scored by trees.
//
// Only this class writes terms, trees, scale and norm, so that they always describe the same f.
#pragma once

#include "core/additive/additive.hpp"
#include "core/additive/terms.hpp"
#include "core/kernels/points.hpp"
#include "core/learner/hypothesis.hpp"

namespace gristmill {

class Trees {
  public:
    static constexpr const char* kName = "a sum of additive trees";
    static constexpr Needs kSupports = {.norm = true};

    // width: columns of an input row; single: rows arrive, and are stored, in single precision.
    Trees(std::vector<Coordinate> coordinates, std::size_t width, bool single, bool skip_missing,
          const Composition& composition);

    const Terms& terms() const { return terms_; }
    const AdditiveSum& sum() const { return sum_; }
    std::size_t width() const { return terms_.width(); }
    double shown_coef(std::size_t slot, std::size_t output) const { return scale_ * terms_.coefs(slot)[output]; }
    double norm2() const { return track_norm_ ? norm2_ : exact_norm2(nullptr); }
    std::size_t bytes() const { return sizeof *this + terms_.bytes() + sum_.bytes(); }
    // Contribution of each coordinate to each output: rows x outputs x coordinates.
    void components(const Batch& batch, double* out) const;
    void compile() { sum_.compile(); }

    // ---- as a store for budgets
    std::size_t size() const { return terms_.size(); }
    std::int64_t id(std::size_t slot) const { return terms_.id(slot); }
    std::size_t oldest() const { return terms_.size() == 0 ? Points::npos : terms_.oldest(); }
    std::size_t newer(std::size_t slot) const {
        return terms_.newer(slot) == Terms::kNone ? Points::npos : terms_.newer(slot);
    }
    std::size_t smallest() const { return terms_.smallest(); }
    double magnitude(std::size_t slot) const { return std::abs(scale_) * terms_.magnitude(slot); }

    // ---- as a hypothesis, see learner/hypothesis.hpp
    struct Lookahead {
        const Batch* batch = nullptr;
        std::size_t first = 0, count = 0;
        std::size_t at = static_cast<std::size_t>(-1);  // the row in `input` and `keys`
        std::vector<double> row, keys, unscaled;
        const double* input = nullptr;
    };
    struct Plan {
        Entry entry = {Entry::Kind::refuse};
    };
    std::size_t outputs() const { return sum_.outputs(); }
    std::size_t coefs_per_term() const { return outputs(); }
    void check(const Batch& batch) const;
    Lookahead make_lookahead(const Batch& batch) const;
    std::size_t window(std::size_t left) const { return std::min<std::size_t>(left, 256); }
    void load(Lookahead& lookahead, std::size_t first, std::size_t count) const {
        lookahead.first = first;
        lookahead.count = count;
    }
    double score(Lookahead& lookahead, std::size_t i, std::size_t output) const {
        return scale_ * sum_.score(output, keys(lookahead, i));
    }
    double average_score(Lookahead&, std::size_t, std::size_t) const { return kUnknown; }
    double self(Lookahead& lookahead, std::size_t i) const { return sum_.self(keys(lookahead, i)); }
    void measure(Lookahead& lookahead, std::size_t i, std::span<const double> direction, Trial& trial);
    bool overflows(const Trial&, const Step& step) const { return !(std::abs(step.coefficient) <= 1e150); }
    Plan plan(Lookahead& lookahead, std::size_t i, Term& term, Budget& budget, Random& random);
    void commit(Lookahead& lookahead, std::size_t i, const Plan& plan, const Term& term);
    void expire(Lookahead& lookahead, std::size_t i, std::int64_t horizon);
    void finish(Lookahead&) {}
    void tick() {}
    std::uint64_t ticks() const { return 0; }
    bool plan_is_readonly() const { return true; }
    void add_output();
    // Changes the rows of the stored terms, which keep their coefficients. A row that the kernel cannot take stays as it was.
    void change_points(const RowChange& change);
    // f <- factor f. Several outputs share one scale: several factors are refused.
    void scale_outputs(std::span<const double> factors) {
        if (factors.size() > 1) throw std::invalid_argument("trees of several targets have one scale");
        shrink(factors[0]);
    }
    void split_output();
    void scores(const Batch& batch, double* out) const;
    void gradients(const Batch& batch, double* out) const;  // (row, output, column); 0 for a missing column
    void begin(std::size_t rows, bool grows);
    void keep();
    void rollback();
    void visit(Archive& archive, std::uint64_t seen);

  private:
    struct OddEntry {  // an entry that rounding made different from the sum of its terms
        std::size_t tree, entry;
        double coef, rest;
    };
    struct Numbers {
        double scale, norm2, error_bound, error_floor;
        std::size_t outputs;
    };
    const double* keys(Lookahead& lookahead, std::size_t i) const;
    void reserve_for(std::span<const double> coefs, std::size_t more);
    void shrink(double factor);
    void add(Lookahead& lookahead, const Term& term);
    void remove(std::size_t slot);
    void stay_inside(double radius);
    void repair_norm();
    double exact_norm2(double* absolute) const;
    std::vector<std::vector<double>> coefs_by_output() const;
    std::vector<TreeEntry> fresh_entries(std::size_t output, std::size_t c) const;
    std::vector<OddEntry> odd_entries() const;
    void visit_trees(Archive& archive);

    AdditiveSum sum_;
    Terms terms_;
    bool skip_missing_, track_norm_;
    std::size_t limit_;
    double scale_ = 1, norm2_ = 0, error_bound_ = 0, error_floor_ = 0;  // norm and rounding errors as in Expansion
    std::vector<double> row_, keys_;  // scratch: a stored term
    bool filled_ = false;  // whether memory for the whole budget has been reserved
    Numbers before_ = {};  // undo state of a transaction
};

}  // namespace gristmill
