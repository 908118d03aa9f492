// Folder features: explicit feature maps, and explicit weights as a hypothesis.
// It includes learner/ and below; bind/ may include it.
// Begin with this file: w in a feature space of fixed width, in constant memory.
//
// Invariant as in expansion/expansion.hpp: weights, scale and norm describe the same w after every operation, and only
// this class writes them. Computing the norm costs no more than the step that changed it, so it is computed from
// scratch each time and never drifts.
#pragma once

#include "core/learner/hypothesis.hpp"

namespace gristmill {

class Weights {
  public:
    static constexpr const char* kName = "explicit weights";
    static constexpr Needs kSupports = {.norm = true, .average = true};

    Weights(std::size_t width, const Composition& composition);
    std::size_t width() const { return now_.width; }
    std::size_t outputs() const { return now_.values.size(); }
    std::size_t coefs_per_term() const { return outputs(); }
    double norm2() const;  // over all outputs
    double shown_coef(std::size_t output, std::size_t i) const;
    std::size_t bytes() const {
        return sizeof *this + (now_.values.size() + now_.sum.size()) * padded(width()) * sizeof(double);
    }

    struct Lookahead {
        const Batch* batch;
        std::size_t first = 0, count = 0;
        std::size_t at = static_cast<std::size_t>(-1);  // the row in z
        Lines<double> z;                                // padded with 0
    };
    struct Plan {};
    void check(const Batch& batch) const;
    Lookahead make_lookahead(const Batch& batch) const {
        return {&batch, 0, 0, static_cast<std::size_t>(-1), Lines<double>(padded(width()))};
    }
    std::size_t window(std::size_t left) const { return std::min<std::size_t>(left, 64); }
    void load(Lookahead& lookahead, std::size_t first, std::size_t count) const {
        lookahead.first = first;
        lookahead.count = count;
    }
    double score(Lookahead& lookahead, std::size_t i, std::size_t output) const;
    double average_score(Lookahead& lookahead, std::size_t i, std::size_t output) const;
    double self(Lookahead& lookahead, std::size_t i) const;
    void measure(Lookahead&, std::size_t, std::span<const double>, Trial& trial) {
        if (track_norm_) trial.norm2 = now_.norm2;
    }
    bool overflows(const Trial&, const Step& step) const { return !(std::abs(step.coefficient) <= 1e150); }
    Plan plan(Lookahead&, std::size_t, Term&, Budget&, Random&) { return {}; }
    // w <- shrink w + sum_o coefs_o z in output o, then projected onto the ball.
    void commit(Lookahead& lookahead, std::size_t i, const Plan& plan, const Term& term);
    void expire(Lookahead&, std::size_t, std::int64_t) {}
    void finish(Lookahead&) {}
    void tick();
    std::uint64_t ticks() const { return now_.ticks; }
    bool plan_is_readonly() const { return true; }
    void add_output();
    void scale_outputs(std::span<const double> factors);  // w_o <- factor_o w_o, including past hypotheses
    void split_output();
    void scores(const Batch& batch, double* out) const;
    void begin(std::size_t, bool) { before_ = now_; }
    void keep() { before_.reset(); }
    void rollback() {
        now_ = std::move(*before_);
        before_.reset();
    }
    void visit(Archive& archive, std::uint64_t seen);

  private:
    struct State {
        std::size_t width = 0;
        std::vector<Lines<double>> values, sum;  // by output; padded with 0
        double scale = 1, norm2 = 0;             // the norm, if tracked
        std::uint64_t ticks = 0;
    };
    const double* row(Lookahead& lookahead, std::size_t i) const;
    double exact_norm2() const;
    void rescale(double factor);

    bool track_norm_, average_;
    State now_;
    std::optional<State> before_;
};

}  // namespace gristmill
