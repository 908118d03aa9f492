// The experts of a race: kernel learners behind a scaling, baselines that cost nothing, and straight lines.
//
// Begin with `Expert`. Each learns a chunk, or one event in two steps, of which only the first may fail, so that a race can take
// an event with all of its experts or with none. What may include this folder: the bindings. It includes pipeline and below.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/mixture/least_squares.hpp"
#include "core/pipeline/relevance.hpp"

namespace gristmill {

// Rows as experts may want them, each made once. A scaling is known by its place among those of the race.
struct ScaledRows {
    std::size_t count = 0, width = 0;
    std::span<const double* const> scaled;  // by scaling; the first are the rows as they came
    std::span<const float* const> singles;  // the same in single precision, where somebody wants them
};

class Expert {
  public:
    virtual ~Expert() = default;
    virtual std::unique_ptr<Expert> clone() const = 0;

    // One pass over a chunk; out: what was said of each event, `outputs` numbers each, NaN from the event on that it cannot take.
    virtual void learn(const ScaledRows& rows, std::span<const double> labels, std::size_t classes, double* out) = 0;
    // One event. plan: all that may fail; nothing changes. commit: the rest, which cannot. False: it cannot be taken so.
    virtual bool plan(const ScaledRows& row, double label, std::size_t classes, double* out) = 0;
    virtual void commit() = 0;
    virtual void score(const ScaledRows& rows, std::size_t classes, double* out) const = 0;
    virtual void widen(std::size_t) {}
    virtual std::size_t bytes() const = 0;

    bool runs() const { return note.empty() && !rests; }
    std::string note;            // why it is no longer there
    bool rests = false;          // it has lost, and its memory is another's
    bool scales_target = false;  // whether it is told targets centred and scaled
};

inline std::size_t outputs_of(std::size_t classes) { return classes > 2 ? classes : 1; }

// ---- a kernel learner ---------------------------------------------------------------------------------------------------

class LearnerExpert final : public Expert {
  public:
    // fresh: nothing was learned yet. scaling: its place in ScaledRows.
    LearnerExpert(const PointLearner& fresh, std::size_t scaling, bool weighs, bool scales);
    LearnerExpert(const LearnerExpert& other);

    std::unique_ptr<Expert> clone() const override { return std::make_unique<LearnerExpert>(*this); }
    void learn(const ScaledRows& rows, std::span<const double> labels, std::size_t classes, double* out) override;
    bool plan(const ScaledRows& row, double label, std::size_t classes, double* out) override;
    void commit() override;
    void score(const ScaledRows& rows, std::size_t classes, double* out) const override;
    void widen(std::size_t width) override;
    std::size_t bytes() const override;

    // Events that come by, and teach nothing.
    void pass_over(const ScaledRows& rows);
    // One more pass over the last events, as far as it was there for them; what it cannot take again it leaves alone.
    void revisit(const ScaledRows& rows, std::span<const double> labels);
    // As before the first event, with rows of this width.
    void begin(std::size_t width);
    void resize(std::size_t memory);
    std::size_t points_within(std::size_t memory, std::size_t outputs) const;
    bool is_window() const { return std::holds_alternative<DropOldest>(learner.budget()); }
    std::size_t weighing_bytes() const;
    bool is_single() const { return single_; }
    std::size_t scaling() const { return scaling_; }
    bool wants_singles() const { return single_ && !relevance; }

    PointLearner learner;
    std::optional<Relevance> relevance;

  private:
    // The rows as its store takes them; `room` holds them where they are made here.
    struct Room {
        std::vector<double> doubles;
        std::vector<float> singles;
    };
    Batch batch_of(const ScaledRows& rows, Room& room) const;

    PointLearner pristine_;  // as it was before the first event
    std::size_t scaling_;
    bool single_;
    // A lone event, and the memory that it needs: not copied.
    struct Lone {
        Room row;
        std::unique_ptr<PointLearner::Single> event;
        std::string note;
        bool passes = false;
    };
    Lone lone_;
    Room chunk_;
};

// ---- baselines ------------------------------------------------------------------------------------------------------------

// What costs nothing and must be beaten: the class so far most frequent, the class before, the mean so far, the value before.
class Baseline final : public Expert {
  public:
    enum class Kind { majority, no_change, mean, last };
    explicit Baseline(Kind kind) : kind(kind), numbers(kind == Kind::majority ? 2 : kind == Kind::last ? 1 : 3) {
        if (kind == Kind::no_change) numbers = {-1, 1, 1};
    }
    std::unique_ptr<Expert> clone() const override { return std::make_unique<Baseline>(*this); }
    void learn(const ScaledRows& rows, std::span<const double> labels, std::size_t classes, double* out) override;
    bool plan(const ScaledRows& row, double label, std::size_t classes, double* out) override;
    void commit() override { take(label_); }
    void score(const ScaledRows& rows, std::size_t classes, double* out) const override;
    std::size_t bytes() const override;

    Kind kind;
    // majority: events of each class; no_change: the last class, how often it came again and how often not; mean: the first target,
    // the sum of differences from it, events; last: the value.
    std::vector<double> numbers;

  private:
    void say(std::size_t classes, double* out) const;
    void take(double label);
    double label_ = 0;
};

// ---- straight lines -------------------------------------------------------------------------------------------------------

// Least squares on the standardised columns; or the target before, and least squares of its change on theirs.
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
    void begin(std::size_t width) { line.emplace(width + (changes ? 0 : 1), kForget); }

    bool changes;
    std::optional<LeastSquares> line;
    double first = 0, last = 0;
    std::uint64_t seen = 0;
    std::vector<double> row;  // the event before

  private:
    static constexpr double kForget = 0.999;  // what an event leaves of the weight of those before it
    double take(const double* x, std::size_t width, double target);
    void set_features(const double* x, std::size_t width, std::vector<double>& out) const;

    std::size_t scaling_;
    std::vector<double> features_;
    const double* planned_ = nullptr;
    std::size_t width_ = 0;
    double label_ = 0;
};

}  // namespace gristmill
