// Folder mixture: predictions of several experts mixed event by event.
// It includes adapt/ and base/; race/ and bind/ may include it.
// Begin with this file: expert weights that follow the losses (AdaHedge with a fixed share), calibrated probabilities
// of each expert, and statistics for reports. It is independent of what an expert is.
//
// Numbers are mixed by absolute errors, or by pinball losses where a quantile is asked for; then an expert has two variants, too: shifted by
// the quantile of its residuals, and as it is.
//
// A classifier has two variants: probabilities with a learned shift between the classes, and without. The shift helps
// if the scores are biased to one class and costs errors otherwise, especially under drift; the losses decide.
//
// The experts do not depend on the mixture, so that their scores of a whole chunk are computed first and mixed here;
// every number depends on the events only and not on how they were cut into chunks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/adapt/calibration.hpp"
#include "core/base/archive.hpp"
#include "core/mixture/residual_quantile.hpp"

namespace gristmill {

// Weights by AdaHedge (de Rooij, van Erven, Grunwald, Koolen, 2014): w proportional to w exp(-eta loss), with eta from
// the losses themselves; a fixed share of all weight is redistributed evenly, so that a bad expert can recover
// (Herbster, Warmuth, 1998).
class Hedge {
  public:
    // least: lower bound of the gap, so that the weights do not jump; 0: the gap starts from the first event with
    // different losses, and the unit of the losses does not matter.
    Hedge(std::size_t experts, double share, double least)
        : share_(share), least_(least), gap_(least), weights_(experts, 1 / static_cast<double>(experts)) {}

    // losses: >= 0, one per expert; experts without weight are skipped.
    void step(std::span<const double> losses);
    void leave(std::size_t expert);
    void enter(std::size_t expert);
    void set(double gap, std::vector<double> weights) {
        gap_ = gap;
        weights_ = std::move(weights);
    }
    double gap() const { return gap_; }

    std::span<const double> weights() const { return weights_; }
    // The weight that every expert has by the fixed share alone: it says nothing about its quality.
    double uniform_share() const;
    void visit(Archive& archive);

    // Another expert at this position, with little weight.
    void insert(std::size_t position);
    void erase(std::size_t position);

    void make_room() { trial_.resize(weights_.size()); }

  private:
    void normalise();

    // forgetting factor of the gap, which the redistributed shares would widen forever
    static constexpr double kKeep = 0.999;
    static constexpr double kBegin = 0.1;  // factor of the first gap, if there is no lower bound
    static constexpr double kRounding = 1e-9;  // losses that differ by less count as equal
    static constexpr double kMaxRate = 1e290;  // largest eta: a gap of almost 0 must not make it infinite

    double share_, least_;
    double gap_;  // Delta: recent regret of the weights relative to the best exponential mixture
    std::vector<double> weights_;
    std::vector<double> trial_ = {};  // scratch
};

class Mixture {
  public:
    enum class Kind { classes, numbers };

    // quantile: of the targets that numbers predict; 0: their centre.
    Mixture(Kind kind, std::size_t experts, double share, double quantile = 0);

    // Scores of an expert for some rows: `outputs` numbers per row. A score that is not finite removes the expert.
    struct ExpertScores {
        std::size_t expert;
        const double* scores;
    };

    // Adds classes up to this number.
    void add_classes(std::size_t classes);
    // One pass over a chunk. labels: class codes below classes(), or targets. Scores have 1 column for two classes and
    // for numbers, otherwise classes(). known_classes: number of classes known before the first row. out: classes()
    // probabilities per row (at least two), or one number per row. weights: of the rows, by which losses are multiplied; all 1 if
    // there are none.
    void learn(std::span<const ExpertScores> expert_scores, std::size_t rows, std::span<const double> labels,
               std::size_t known_classes, double* out, const double* weights = nullptr);
    // Samples that are counted and not learned.
    void pass_over(std::size_t count) { seen_ += count; }
    // Allocates what learning one more row needs, so that it cannot fail.
    void make_room();
    // Mixes rows without learning.
    void mix(std::span<const ExpertScores> expert_scores, std::size_t rows, double* out) const;

    // Of a number: absolute or pinball; a sum over any stream stays finite.
    double error_of(double predicted, double target) const {
        const double error = std::min(std::abs(predicted - target), kMaxError);
        return quantile_ == 0 ? error : (target > predicted ? quantile_ : 1 - quantile_) * error;
    }

    void leave(std::size_t expert);
    void enter(std::size_t expert);
    // One more expert, the last, which has little weight at first; or without the last.
    void add_expert();
    void drop_last_expert();
    // Residuals count from now on only: what was predicted before were no predictions of the experts.
    void forget_residuals();
    // Resets the recent losses of the experts.
    void reset_recent();

    // A mixture that learned apart from others.
    struct Part {
        const Mixture* mixture;
        double share;  // of the result
        std::vector<std::uint8_t> runs;  // by expert
        std::vector<std::size_t> codes;  // the position of each of its classes among those of the result
    };
    // Losses, errors and samples add up, so that the weights are multiplied; where an expert does not run it has the mean weight.
    // A calibration is the weighted mean over the parts that know all classes. requires: nothing was learned here.
    void unite(std::span<const Part> parts, std::size_t classes);

    std::size_t experts() const { return errors_.size(); }
    std::size_t classes() const { return classes_; }
    std::size_t columns() const { return kind_ == Kind::numbers ? 1 : std::max<std::size_t>(classes_, 2); }
    std::size_t outputs() const { return kind_ == Kind::numbers || classes_ <= 2 ? 1 : classes_; }
    std::vector<double> weights() const;  // sum over the variants
    // Whether an expert's scores have any weight in `mix`.
    bool counts(std::size_t expert) const;
    std::vector<double> recent() const;  // sum of losses since reset_recent(), of the better variant
    std::span<const double> counted() const { return counted_; }  // events since reset_recent()
    // all mistakes (without a shift), or the sum of absolute errors
    std::span<const double> errors() const { return errors_; }
    std::span<const double> events() const { return events_; }  // events of each expert
    double own_errors() const { return own_errors_; }
    std::uint64_t seen() const { return seen_; }
    // Lines of position, mean error so far, then the weights and the mean errors of the experts.
    std::span<const float> history() const { return history_; }
    std::size_t line() const { return 2 + 2 * experts(); }
    std::size_t bytes() const;
    std::size_t bytes_for(std::size_t classes) const;  // upper bound with this many classes

    void visit(Archive& archive);

  private:
    static constexpr double kUnseenProbability = 1e-9;  // probability of a class not seen yet
    static constexpr std::size_t kLines = 128;  // lines of the history, which is thinned when full
    static constexpr double kMinGap = 10;  // lower bound for class losses of at most about 1; that of numbers adapts
    static constexpr double kMaxErrorRatio = 20;  // largest loss of a number, in mean errors of the mixture
    // share of the logarithmic loss in the loss of a class; the rest is the mistake
    static constexpr double kLogLossShare = 0.3;
    static constexpr double kMaxLogLoss = 5;  // largest logarithmic loss that counts
    static constexpr double kFirstStep = 8;  // initial number of events between two lines
    static constexpr double kMaxError = 1e280;  // the largest absolute error that counts

    struct RowLoss {
        double error, loss;
    };
    // Indices of the variants of an expert: e, and e + experts() for the one without a shift.
    std::size_t variants() const { return hedge_.weights().size(); }
    template <class F>
    void each_variant(std::size_t expert, F f) const {
        for (std::size_t v = expert; v < variants(); v += experts()) f(v);
    }
    RowLoss loss_of(const double* shares, std::size_t label) const;
    void find_active(std::span<const ExpertScores> expert_scores, std::size_t row);
    void mix_row(std::span<const ExpertScores> expert_scores, std::size_t row, double* out);
    void discount_new_classes(double* out, std::size_t known) const;
    void update_experts(std::span<const ExpertScores> expert_scores, std::size_t row, double label, double weight);
    void expert_prediction(std::size_t variant, const double* scores, double* out) const;
    void append_history();
    void unite_calibration(std::size_t variant, std::span<const Part> parts);

    Kind kind_;
    double quantile_;
    Hedge hedge_;
    std::size_t classes_ = 0;
    std::vector<Calibration> calibrations_;
    std::vector<ResidualQuantile> shifts_;  // by expert, where a quantile is asked for
    QuantileCorrection correction_;
    std::vector<double> recent_;  // by variant
    std::vector<double> counted_, errors_, events_;
    double own_errors_ = 0, first_error_ = 0, step_ = kFirstStep;
    std::uint64_t seen_ = 0;
    std::vector<float> history_;
    std::vector<double> shares_ = {}, losses_ = {};  // scratch
    std::vector<std::uint8_t> active_ = {};
};

}  // namespace gristmill
