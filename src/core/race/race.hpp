// A race: experts side by side, scaled rows made once for all of them, the mixture of what they say, and memory that moves.
//
// Everything that learning changes is in RaceState, a value. A chunk is learned with a copy put by, and the copy takes its place
// after any error; one event is planned by all experts, which may fail, and then committed by all, which may not. A chunk is cut
// where a class comes and where something is due, at positions of the stream, so that the numbers do not depend on the chunks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "core/adapt/intervals.hpp"
#include "core/adapt/scaling.hpp"
#include "core/mixture/mixture.hpp"
#include "core/mixture/novelty_mixture.hpp"
#include "core/pipeline/target_scale.hpp"
#include "core/race/expert.hpp"
#include "core/race/memory_shares.hpp"

namespace gristmill {

struct RaceState {
    RaceState(Task task, std::size_t experts, double share, std::size_t memory);
    RaceState(const RaceState& other);
    RaceState(RaceState&&) = default;
    RaceState& operator=(RaceState&&) = default;

    Task task;
    std::size_t width = 0;
    std::vector<ColumnScaling> scalings;
    std::vector<std::unique_ptr<Expert>> experts;
    std::variant<Mixture, NoveltyMixture> mixed;
    Intervals errors;  // of the mixture of a regression
    std::optional<TargetScale> target;
    MemoryShares shares;
    std::uint64_t quiet = 0;  // events before which nothing is due; 0: it has to be looked up

    Mixture& mixture() { return std::get<Mixture>(mixed); }
    const Mixture& mixture() const { return std::get<Mixture>(mixed); }
    bool is_learner(std::size_t place) const { return dynamic_cast<const LearnerExpert*>(experts[place].get()) != nullptr; }
    LearnerExpert& learner(std::size_t place) { return static_cast<LearnerExpert&>(*experts[place]); }
    const LearnerExpert& learner(std::size_t place) const { return static_cast<const LearnerExpert&>(*experts[place]); }
    std::uint64_t seen() const { return std::visit([](const auto& m) { return m.seen(); }, mixed); }
    std::size_t classes() const { return task == Task::classification ? mixture().classes() : 0; }
    std::size_t outputs() const { return outputs_of(classes()); }
    std::size_t mixture_bytes_for(std::size_t classes) const;
    void leave(std::size_t expert) { std::visit([&](auto& m) { m.leave(expert); }, mixed); }
    std::size_t bytes() const;
};

class Race {
  public:
    // share: of the weights that go round, or of the events that are alarms. memory: 0 for experts that keep their budgets.
    Race(Task task, std::size_t experts, double share, std::size_t memory) : state(task, experts, share, memory) {}

    // The place of a scaling among those of ScaledRows, of which the first is none; it is made if it is not there. warmup: events
    // after which it is frozen.
    std::size_t scaling(bool by_range, std::uint64_t warmup);
    // After all experts.
    void begin(std::size_t width);
    void widen(std::size_t width);

    void check(const DenseRows<double>& rows) const;
    // One pass over a chunk; known: classes that are known beforehand. Returns what was said before each event, `outputs()` numbers
    // each, if `want`.
    std::vector<double> learn(const DenseRows<double>& rows, std::span<const double> labels, bool want, std::size_t known);
    void learn_one(const double* row, std::size_t width, double label);
    // passes: 0 for as many as a tail that is kept back is told better for.
    void learn_batch(const DenseRows<double>& rows, std::span<const double> labels, std::size_t known, std::size_t passes);
    void score(const DenseRows<double>& rows, double* out) const;

    RaceState state;
    std::function<void()> poll;  // called between steps; may throw

  private:
    struct Step {
        std::size_t stop, classes;
    };
    // Rows through every scaling, and as they came.
    struct Scaled {
        std::vector<std::vector<double>> scaled;
        std::vector<std::vector<float>> singles;
        std::vector<const double*> at;
        std::vector<const float*> singles_at;
        ScaledRows rows;
    };
    void scale(const DenseRows<double>& rows, Scaled& out, bool learn);
    void make_lookahead(const DenseRows<double>& rows, Scaled& out) const;
    void point(const DenseRows<double>& rows, Scaled& out) const;
    std::uint64_t due() const;
    Step cut(std::span<const double> labels, std::size_t start, std::size_t known);
    void step(const DenseRows<double>& rows, std::span<const double> labels, std::size_t classes, std::vector<double>& out);
    void tell(Expert& expert, const ScaledRows& rows, std::span<const double> labels, std::span<const double> inside,
              std::size_t classes, double* out);
    void settle(std::span<const double> labels);
    std::vector<std::size_t> to_weigh() const;
    void learn_steps(const DenseRows<double>& rows, std::span<const double> labels, std::vector<double>* out, std::size_t known);
    void revisit(const DenseRows<double>& rows, std::span<const double> labels);
    std::size_t passes_that_help(const DenseRows<double>& rows, std::span<const double> labels, std::size_t head);
    double tail_error(const DenseRows<double>& rows, std::span<const double> labels) const;
    bool learn_single(const double* row, double label);

    bool patient_ = false;  // a batch is learned: results count for more than time
    // Memory to work in.
    Scaled scaled_;
    std::vector<double> said_, inside_, mixed_;
    std::vector<Mixture::ExpertScores> heard_;
    std::vector<std::uint8_t> planned_;
};

}  // namespace gristmill
