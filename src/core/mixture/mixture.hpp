// Experts that run side by side, mixed event by event: weights that follow their losses (AdaHedge with a fixed share), the
// probabilities of each expert's scores, and what is told of the race afterwards. Knows nothing of what an expert is.
//
// A classifier has two voices: its scores as probabilities with a learned shift between the classes, and without. The shift is worth
// much where the scores lean to one class, and costs errors where they do not, all the more where things drift; losses decide.
//
// The experts learn whatever the mixture does, so that their scores of a chunk come first and are mixed here in one go; every
// number depends on the events alone, not on how they were cut into chunks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/archive.hpp"
#include "core/adapt/calibration.hpp"

namespace gristmill {

// Weights by AdaHedge (de Rooij, van Erven, Grunwald, Koolen, 2014): w proportional to w exp(-eta loss), with eta from the losses
// themselves; a fixed share of all weight goes round evenly, so that who was bad may come back (Herbster, Warmuth, 1998).
class Hedge {
  public:
    // least: the gap is never less, so that the weights do not jump; 0: it begins with what the first event that tells the experts
    // apart says, and the unit of the losses does not matter.
    Hedge(std::size_t experts, double share, double least)
        : share_(share), least_(least), gap_(least), weights_(experts, 1 / static_cast<double>(experts)) {}

    // losses: >= 0, one an expert; those without weight are passed over.
    void step(std::span<const double> losses);
    void leave(std::size_t expert);
    void enter(std::size_t expert);

    std::span<const double> weights() const { return weights_; }
    // What everybody has by the share alone: it keeps an expert in the race and says nothing for it.
    double uniform_share() const;
    void visit(Archive& archive);

    void make_room() { trial_.resize(weights_.size()); }

  private:
    void normalise();

    static constexpr double kKeep = 0.999;   // what an event leaves of the gap: the shares that go round would widen it for ever
    static constexpr double kBegin = 0.1;    // of the first gap, where there is no least one
    static constexpr double kRounding = 1e-9;  // losses that differ by less are the same
    static constexpr double kMaxRate = 1e290;  // of eta: a gap that is almost 0 must not make it infinite

    double share_, least_;
    double gap_;  // Delta: how much the weights have lost to the best exponential mixture, of late
    std::vector<double> weights_;
    std::vector<double> trial_ = {};  // room to work in
};

class Mixture {
  public:
    enum class Kind { classes, numbers };

    Mixture(Kind kind, std::size_t experts, double share);

    // What an expert said of some rows: `outputs` numbers a row. A number that is not finite says that it has left.
    struct ExpertScores {
        std::size_t expert;
        const double* scores;
    };

    // From here on so many classes are known.
    void add_classes(std::size_t classes);
    // One pass over a chunk. labels: class numbers, all below classes(), or targets. outputs: 1 for two classes and for numbers, else
    // classes(). met: how many classes had been met before the first row. out: classes() probabilities a row (at least two), or one
    // number a row.
    void learn(std::span<const ExpertScores> expert_scores, std::size_t rows, std::span<const double> labels, std::size_t known_classes, double* out);
    // Takes the memory that learning one more row needs, so that it cannot fail.
    void make_room();
    // The same for rows that are not learned.
    void mix(std::span<const ExpertScores> expert_scores, std::size_t rows, double* out) const;

    void leave(std::size_t expert);
    void enter(std::size_t expert);
    // The losses of the experts are counted anew.
    void reset_recent();

    std::size_t experts() const { return errors_.size(); }
    std::size_t classes() const { return classes_; }
    std::size_t columns() const { return kind_ == Kind::numbers ? 1 : std::max<std::size_t>(classes_, 2); }
    std::size_t outputs() const { return kind_ == Kind::numbers || classes_ <= 2 ? 1 : classes_; }
    std::vector<double> weights() const;  // of both voices
    // Whether an expert's scores have any weight in `mix`.
    bool counts(std::size_t expert) const;
    std::vector<double> recent() const;   // sum of losses since the mark, of the better voice
    std::span<const double> counted() const { return counted_; } // events since the mark
    std::span<const double> errors() const { return errors_; }   // all mistakes (without a shift), or all absolute errors
    std::span<const double> events() const { return events_; }   // that each expert was there for
    double own_errors() const { return own_errors_; }
    std::uint64_t seen() const { return seen_; }
    // Lines of position, mean error so far, then the weights and the mean errors of the experts.
    std::span<const float> history() const { return history_; }
    std::size_t line() const { return 2 + 2 * experts(); }
    std::size_t bytes() const;
    std::size_t bytes_for(std::size_t classes) const;  // at most, with so many classes

    void visit(Archive& archive);

  private:
    static constexpr double kUnseenProbability = 1e-9;    // probability of a class that has not come yet
    static constexpr std::size_t kLines = 128;  // of the history, which is thinned when it is full
    static constexpr double kMinGap = 10;          // of losses of about 1 at most; that of numbers shows itself
    static constexpr double kMaxErrorRatio = 20;      // mean errors of the mixture: no loss of a number counts more
    static constexpr double kLogLossShare = 0.3;       // of the loss of a class is the logarithmic one, the rest the mistake
    static constexpr double kMaxLogLoss = 5;    // the largest logarithmic loss that counts
    static constexpr double kFirstStep = 8;     // events between two lines, at first
    static constexpr double kMaxError = 1e280;  // the largest absolute error that counts

    struct RowLoss {
        double error, loss;
    };
    // Places of the voices of an expert: e, and e + experts() for that without a shift.
    std::size_t variants() const { return hedge_.weights().size(); }
    template <class F>
    void each_variant(std::size_t expert, F f) const {
        for (std::size_t v = expert; v < variants(); v += experts()) f(v);
    }
    RowLoss loss_of(const double* shares, std::size_t label) const;
    // Of a number; a sum over any stream stays finite.
    static double error_of(double predicted, double target) { return std::min(std::abs(predicted - target), kMaxError); }
    void find_active(std::span<const ExpertScores> expert_scores, std::size_t row);
    void mix_row(std::span<const ExpertScores> expert_scores, std::size_t row, double* out);
    void discount_new_classes(double* out, std::size_t known) const;
    void update_experts(std::span<const ExpertScores> expert_scores, std::size_t row, double label);
    void expert_prediction(std::size_t variant, const double* scores, double* out) const;
    void append_history();

    Kind kind_;
    Hedge hedge_;
    std::size_t classes_ = 0;
    std::vector<Calibration> calibrations_;
    std::vector<double> recent_;  // of each voice
    std::vector<double> counted_, errors_, events_;
    double own_errors_ = 0, first_error_ = 0, step_ = kFirstStep;
    std::uint64_t seen_ = 0;
    std::vector<float> history_;
    std::vector<double> shares_ = {}, losses_ = {};  // room to work in
    std::vector<std::uint8_t> active_ = {};
};

}  // namespace gristmill
