// The experts of a race: learners behind a scaling, baselines without parameters, and linear models.
//
// Begin with `Expert`. Each learns a chunk, or one sample in two steps, of which only the first may fail, so that a race learns a
// sample with all of its experts or with none. `TrainedExpert` is a learner that keeps points: `LearnerExpert` in the core, or a
// learner written in Python behind the same interface (`bind/race/python_expert.hpp`).
// The bindings may include this folder; it includes pipeline/ and below.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/adapt/rank_scaling.hpp"
#include "core/mixture/least_squares.hpp"
#include "core/pipeline/relevance.hpp"
#include "core/pipeline/target_scale.hpp"
#include "core/pipeline/wide_rows.hpp"

namespace gristmill {

// Rows in every form that some expert takes, each computed once. A scaling is identified by its position in the race.
struct ScaledRows {
    std::size_t count = 0, width = 0;
    std::span<const double* const> scaled;  // by scaling; the first are the rows without scaling
    std::span<const float* const> singles;  // the same in single precision, where an expert stores it
    const WideChunk* chunk = nullptr;  // the non-zeros of sparse rows, from its row `first` on
    std::size_t first = 0;
    const double* weights = nullptr;  // of the rows, > 0; all 1 if there are none

    double weight(std::size_t row) const { return weights ? weights[row] : 1.0; }
    std::span<const double> weights_of(std::size_t rows) const {
        return weights ? std::span(weights, rows) : std::span<const double>();
    }
    WideRow wide(std::size_t row) const {
        const std::size_t start = chunk->start[first + row];
        return {chunk->places.data() + start, chunk->values.data() + start, chunk->start[first + row + 1] - start};
    }
};

// Changes a scaled row in place.
using RowChange = std::function<void(double* row)>;

class Expert {
  public:
    virtual ~Expert() = default;
    virtual std::unique_ptr<Expert> clone() const = 0;

    // One pass over a chunk; out: the score of each sample before it was learned, `outputs` numbers each, NaN from the sample on
    // that the expert cannot learn. On an exception the race restores a clone.
    virtual void learn(const ScaledRows& rows, std::span<const double> labels, std::size_t classes, double* out) = 0;
    // One sample. plan: all that may fail; nothing that is learned changes. commit: the rest, which cannot fail. False: the sample
    // has to be learned as a chunk.
    virtual bool plan(const ScaledRows& row, double label, std::size_t classes, double* out) = 0;
    virtual void commit() = 0;
    virtual void score(const ScaledRows& rows, std::size_t classes, double* out) const = 0;
    // More columns, which were 0 so far.
    virtual void widen(std::size_t) {}
    virtual std::size_t bytes() const = 0;
    // With so many classes, at most.
    virtual std::size_t most_bytes(std::size_t) const { return bytes(); }
    // Whether it takes the non-zeros of sparse rows.
    virtual bool is_wide() const { return false; }
    // Saves or loads what changes while learning. width, classes: of the race. requires, to load: an expert that has begun with
    // rows of this width and learned nothing.
    virtual void visit(Archive& archive, std::size_t width, std::size_t classes);

    bool runs() const { return note.empty() && !rests; }
    std::string note;  // why it has left the race
    bool rests = false;  // its memory is used by other experts
    bool scales_target = false;  // whether it learns targets centred and scaled
};

inline std::size_t outputs_of(std::size_t classes) { return classes > 2 ? classes : 1; }

// Scores of fewer classes than the race knows: of two classes each gets half, the others 0.
void spread_outputs(const double* scores, std::size_t rows, std::size_t own, std::size_t wanted, double* out);

// ---- learners -----------------------------------------------------------------------------------------------------------

// A learner that stores points, whose memory a race may change.
class TrainedExpert : public Expert {
  public:
    explicit TrainedExpert(std::size_t scaling) : scaling_(scaling) {}

    // Samples that are counted and not learned.
    virtual void pass_over(const ScaledRows& rows) = 0;
    // One more pass over the last samples, as far as it has seen them; unchanged if it cannot learn them again.
    virtual void revisit(const ScaledRows& rows, std::span<const double> labels) = 0;
    // As before the first sample, with rows of this width.
    virtual void begin(std::size_t width) = 0;
    virtual void resize(std::size_t memory) = 0;
    // How many points fit; 0 where not even one does.
    virtual std::size_t points_within(std::size_t memory, std::size_t outputs) const = 0;
    virtual bool is_window() const = 0;
    virtual std::size_t size() const = 0;  // stored points
    virtual std::uint64_t seen() const = 0;
    virtual void rescale_targets(const TargetScale::Move& move) = 0;
    // Stored points follow a change of the scaling in front of them.
    virtual void follow(const RowChange& change) = 0;

    // Column weights that are learned.
    virtual bool weighs() const { return false; }
    virtual std::size_t weighing_bytes() const { return 0; }
    virtual void relearn(std::uint64_t, bool) {}

    virtual bool wants_singles() const { return false; }
    std::size_t scaling() const { return scaling_; }

  protected:
    std::size_t scaling_;
};

class LearnerExpert final : public TrainedExpert {
  public:
    // fresh: nothing was learned yet. scaling: its position in ScaledRows.
    LearnerExpert(const PointLearner& fresh, std::size_t scaling, bool weighs, bool scales);
    LearnerExpert(const LearnerExpert& other);

    std::unique_ptr<Expert> clone() const override { return std::make_unique<LearnerExpert>(*this); }
    void learn(const ScaledRows& rows, std::span<const double> labels, std::size_t classes, double* out) override;
    bool plan(const ScaledRows& row, double label, std::size_t classes, double* out) override;
    void commit() override;
    void score(const ScaledRows& rows, std::size_t classes, double* out) const override;
    void widen(std::size_t width) override;
    std::size_t bytes() const override;
    void visit(Archive& archive, std::size_t width, std::size_t classes) override;

    void pass_over(const ScaledRows& rows) override;
    void revisit(const ScaledRows& rows, std::span<const double> labels) override;
    void begin(std::size_t width) override;
    void resize(std::size_t memory) override { learner.resize(memory); }
    std::size_t points_within(std::size_t memory, std::size_t outputs) const override;
    bool is_window() const override { return std::holds_alternative<DropOldest>(learner.budget()); }
    std::size_t size() const override { return learner.hypothesis().size(); }
    std::uint64_t seen() const override { return learner.seen(); }
    void rescale_targets(const TargetScale::Move& move) override {
        learner.rescale_targets({&move.factor, 1}, {&move.shift, 1});
    }
    void follow(const RowChange& change) override;
    bool weighs() const override { return relevance.has_value(); }
    std::size_t weighing_bytes() const override;
    void relearn(std::uint64_t position, bool always) override { relevance->relearn(learner, position, always); }
    bool wants_singles() const override { return single_ && !relevance; }

    PointLearner learner;
    std::optional<Relevance> relevance;

  private:
    // Memory for rows in the precision of the store.
    struct RowBuffer {
        std::vector<double> doubles;
        std::vector<float> singles;
    };
    // The rows as the store takes them; a view of the buffer where they are computed here.
    Batch batch_of(const ScaledRows& rows, RowBuffer& buffer) const;

    PointLearner pristine_;  // as it was before the first sample
    bool single_;
    // A single sample that is planned, and the memory that it needs; not copied.
    struct Planned {
        RowBuffer row;
        std::unique_ptr<PointLearner::Single> sample;
        std::string note;
    };
    Planned planned_;
    RowBuffer chunk_;
};

// ---- baselines ------------------------------------------------------------------------------------------------------------

// The most frequent class, the previous class, the running mean, the previous value: what an expert has to beat.
class Baseline final : public Expert {
  public:
    enum class Kind { majority, no_change, mean, last };
    explicit Baseline(Kind kind) : kind(kind), numbers(kind == Kind::majority ? 2 : kind == Kind::last ? 1 : 3) {
        if (kind == Kind::no_change) numbers = {-1, 1, 1};
    }
    std::unique_ptr<Expert> clone() const override { return std::make_unique<Baseline>(*this); }
    void learn(const ScaledRows& rows, std::span<const double> labels, std::size_t classes, double* out) override;
    bool plan(const ScaledRows& row, double label, std::size_t classes, double* out) override;
    void commit() override { take(label_, weight_); }
    void score(const ScaledRows& rows, std::size_t classes, double* out) const override;
    std::size_t bytes() const override;
    void visit(Archive& archive, std::size_t width, std::size_t classes) override;

    Kind kind;
    // majority: samples of each class; no_change: the last class, how often it came again and how often not; mean: the first
    // target, the sum of differences from it, samples; last: the value.
    std::vector<double> numbers;

  private:
    void predict(std::size_t classes, double* out) const;
    void take(double label, double weight = 1);
    double label_ = 0, weight_ = 1;
};

// ---- linear models ----------------------------------------------------------------------------------------------------------

// Least squares on the standardised columns; or the previous target plus least squares of its change on theirs.
class LinearExpert final : public Expert {
  public:
    LinearExpert(bool changes, std::size_t scaling) : changes(changes), scaling_(scaling) {}
    std::unique_ptr<Expert> clone() const override { return std::make_unique<LinearExpert>(*this); }
    void learn(const ScaledRows& rows, std::span<const double> labels, std::size_t classes, double* out) override;
    bool plan(const ScaledRows& row, double label, std::size_t classes, double* out) override;
    void commit() override;
    void score(const ScaledRows& rows, std::size_t classes, double* out) const override;
    void widen(std::size_t width) override;
    std::size_t bytes() const override { return line ? line->bytes() + row.size() * sizeof(double) + 24 : 0; }
    void visit(Archive& archive, std::size_t width, std::size_t classes) override;
    void begin(std::size_t width) { line.emplace(width + (changes ? 0 : 1), kForget); }
    std::size_t scaling() const { return scaling_; }

    bool changes;
    std::optional<LeastSquares> line;
    double first = 0, last = 0;
    std::uint64_t seen = 0;
    std::vector<double> row;  // the previous sample

  private:
    static constexpr double kForget = 0.999;  // of the weight of a sample, kept at each later one
    double take(const double* x, std::size_t width, double target, double weight = 1);
    void set_features(const double* x, std::size_t width, std::vector<double>& out) const;

    std::size_t scaling_;
    std::vector<double> features_;
    const double* planned_ = nullptr;
    std::size_t width_ = 0;
    double label_ = 0, weight_ = 1;
};

}  // namespace gristmill
