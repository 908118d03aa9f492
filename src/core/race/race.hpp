// A race: experts that learn side by side, rows scaled once for all of them, the mixture of their scores, and shared memory.
//
// Everything that learning changes is in RaceState, a value. Before a chunk the state is copied, and any error restores the copy; a
// single sample is planned by all experts, which may fail, and then committed by all, which cannot. A chunk is cut where a class
// comes and where something is due, at positions of the stream, so that the numbers do not depend on the chunks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "core/adapt/intervals.hpp"
#include "core/mixture/mixture.hpp"
#include "core/mixture/novelty_mixture.hpp"
#include "core/race/expert.hpp"
#include "core/race/memory_shares.hpp"
#include "core/race/race_scaling.hpp"
#include "core/race/race_target.hpp"

namespace gristmill {

struct RaceState {
    RaceState(Task task, std::size_t experts, double share, std::size_t memory);
    RaceState(const RaceState& other);
    RaceState(RaceState&&) = default;
    RaceState& operator=(RaceState&&) = default;

    Task task;
    std::size_t width = 0;
    std::vector<RaceScaling> scalings;
    std::vector<std::unique_ptr<Expert>> experts;
    std::variant<Mixture, NoveltyMixture> mixed;
    Intervals errors;  // of the mixture of a regression
    std::optional<RaceTarget> target;
    std::vector<double> held_rows, held_labels;  // samples that are learned once the targets are measured
    MemoryShares shares;
    std::uint64_t quiet = 0;  // samples before which nothing is due; 0: not computed yet

    Mixture& mixture() { return std::get<Mixture>(mixed); }
    const Mixture& mixture() const { return std::get<Mixture>(mixed); }
    bool is_trained(std::size_t place) const {
        return dynamic_cast<const TrainedExpert*>(experts[place].get()) != nullptr;
    }
    TrainedExpert& trained(std::size_t place) { return static_cast<TrainedExpert&>(*experts[place]); }
    const TrainedExpert& trained(std::size_t place) const { return static_cast<const TrainedExpert&>(*experts[place]); }
    std::uint64_t seen() const {
        return std::visit([](const auto& m) { return m.seen(); }, mixed);
    }
    std::size_t classes() const { return task == Task::classification ? mixture().classes() : 0; }
    std::size_t outputs() const { return outputs_of(classes()); }
    std::size_t mixture_bytes_for(std::size_t classes) const;
    void leave(std::size_t expert) {
        std::visit([&](auto& m) { m.leave(expert); }, mixed);
    }
    std::size_t bytes() const;
    std::size_t scaling_bytes() const;  // of scalings and targets, at most
    std::size_t early_bytes() const;  // of these, what the first samples take
    // Rows have this width from now on; memory is not shared out again.
    void set_width(std::size_t columns);
    // Saves or loads everything but the kind of the experts. requires, to load: the same experts, which have begun and learned
    // nothing.
    void visit(Archive& archive);
};

class Race {
  public:
    // share: of the weights that is redistributed after each sample, or of the samples that are alarms. memory: 0 for experts that
    // keep their budgets.
    Race(Task task, std::size_t experts, double share, std::size_t memory) : state(task, experts, share, memory) {}

    // The position of a scaling in ScaledRows, of which the first is none; it is added if it is new. warmup: samples after which it
    // is frozen.
    std::size_t scaling(RaceScaling::Method method, std::uint64_t warmup);
    // requires: all experts were added.
    // outside: bytes of the memory that are taken by what prepares rows for the race.
    void begin(std::size_t width, std::size_t outside = 0);
    void widen(std::size_t width, std::size_t outside = 0);

    void check(const DenseRows<double>& rows) const;
    // One pass over a chunk; known: classes that are known beforehand. Returns the scores of each sample before it was learned,
    // `outputs()` numbers each, if `want`.
    std::vector<double> learn(const DenseRows<double>& rows, std::span<const double> labels, bool want,
                              std::size_t known);
    void learn_one(const double* row, std::size_t width, double label);
    // passes: 0 for as many as lower the error on a tail that is held out.
    void learn_batch(const DenseRows<double>& rows, std::span<const double> labels, std::size_t known,
                     std::size_t passes);
    void score(const DenseRows<double>& rows, double* out) const;
    // Scores of one expert, in the units of the targets.
    void score_expert(const Expert& expert, const DenseRows<double>& rows, double* out) const;

    RaceState state;
    std::function<void()> poll;  // called between steps; may throw

  private:
    struct Step {
        std::size_t stop, classes;
    };
    // Rows through every scaling, and without.
    struct Scaled {
        std::vector<std::vector<double>> scaled;
        std::vector<std::vector<float>> singles;
        std::vector<const double*> at;
        std::vector<const float*> singles_at;
        ScaledRows rows;
    };
    void each_expert(std::vector<std::size_t> places, const std::function<void(TrainedExpert&)>& work);
    void follow(std::size_t scaling, const RowChange& change);
    void scale(const DenseRows<double>& rows, Scaled& out, bool single);
    void apply_scalings(const DenseRows<double>& rows, Scaled& out) const;
    void set_views(const DenseRows<double>& rows, Scaled& out) const;
    std::uint64_t due() const;
    Step cut(std::span<const double> labels, std::size_t start, std::size_t known);
    void step(const DenseRows<double>& rows, std::span<const double> labels, std::size_t classes,
              std::vector<double>& out);
    void learn_expert(Expert& expert, const ScaledRows& rows, std::span<const double> labels,
                      std::span<const double> inside, std::size_t classes, double* out);
    void hold(const DenseRows<double>& rows, std::span<const double> labels, std::vector<double>& out);
    void learn_held();
    void set_targets(std::span<const double> labels);
    void finish_step(std::span<const double> labels);
    std::vector<std::size_t> experts_to_weigh() const;
    void learn_steps(const DenseRows<double>& rows, std::span<const double> labels, std::vector<double>* out,
                     std::size_t known);
    void revisit(const DenseRows<double>& rows, std::span<const double> labels);
    std::size_t passes_that_help(const DenseRows<double>& rows, std::span<const double> labels, std::size_t head);
    double tail_error(const DenseRows<double>& rows, std::span<const double> labels) const;
    bool learn_single(const double* row, double label);

    bool in_batch_ = false;  // a batch is learned: column weights are renewed for all experts, whatever it costs
    // Scratch memory.
    Scaled scaled_;
    std::vector<double> scores_, targets_, clipped_, mixed_;
    std::vector<Mixture::ExpertScores> expert_scores_;
    std::vector<std::uint8_t> planned_;
};

}  // namespace gristmill
