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

#include "core/adapt/class_balance.hpp"
#include "core/adapt/intervals.hpp"
#include "core/mixture/mixture.hpp"
#include "core/mixture/novelty_mixture.hpp"
#include "core/race/class_means.hpp"
#include "core/race/expert.hpp"
#include "core/race/memory_shares.hpp"
#include "core/race/race_scaling.hpp"
#include "core/race/race_target.hpp"

namespace gristmill {

// Dense rows, and the non-zeros of the sparse rows that they were hashed from, if there are any.
struct RaceRows : DenseRows<double> {
    const WideChunk* wide = nullptr;
    std::size_t first = 0;  // position of the first row among those of `wide`
    const double* weights = nullptr;  // of the rows; all 1 if there are none
    double weight(std::size_t row) const { return weights ? weights[row] : 1.0; }
    RaceRows part(std::size_t start, std::size_t n) const {
        return {{row(start), n, width}, wide, first + start, weights ? weights + start : nullptr};
    }
};

struct RaceState {
    RaceState(Task task, std::size_t experts, double share, std::size_t memory, double quantile);
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
    std::optional<WideColumns>
        wide_columns;  // of sparse rows, which are hashed to `width` numbers for experts that store points
    std::optional<std::size_t> means_scaling;  // of the expert of class means, where one may come
    bool has_class_means = false;  // it is the last of the experts
    ClassBalance balance;  // on: samples are weighed by how often their class came
    std::vector<double> held_weights;  // empty if all are 1
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
    void add_class_means();
    void drop_class_means();
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
    // keep their budgets. quantile: of the targets, which a regression predicts; 0: their centre.
    Race(Task task, std::size_t experts, double share, std::size_t memory, double quantile = 0)
        : state(task, experts, share, memory, quantile) {}

    // The position of a scaling in ScaledRows, of which the first is none; it is added if it is new. warmup: samples after which it
    // is frozen.
    std::size_t scaling(RaceScaling::Method method, std::uint64_t warmup);
    // requires: all experts were added.
    // outside: bytes of the memory that are taken by what prepares rows for the race.
    void begin(std::size_t width, std::size_t outside = 0);
    void widen(std::size_t width, std::size_t outside = 0);

    void check(const RaceRows& rows) const;
    // One pass over a chunk; known: classes that are known beforehand. Returns the scores of each sample before it was learned,
    // `outputs()` numbers each, if `want`.
    std::vector<double> learn(const RaceRows& rows, std::span<const double> labels, bool want, std::size_t known);
    void learn_one(const double* row, std::size_t width, double label, double weight = 1);
    // passes: 0 for as many as lower the error on a tail that is held out.
    void learn_batch(const RaceRows& rows, std::span<const double> labels, std::size_t known, std::size_t passes);
    void score(const RaceRows& rows, double* out) const;
    // Sparse rows of very many columns. requires: `state.wide_columns`.
    void check(const SparseRows<double>& rows) const;
    std::vector<double> learn(const SparseRows<double>& rows, std::span<const double> labels, bool want,
                              std::size_t known, const double* weights = nullptr);
    void score(const SparseRows<double>& rows, double* out) const;
    // Scores of one expert, in the units of the targets.
    void score_expert(const Expert& expert, const RaceRows& rows, double* out) const;

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
    void scale(const RaceRows& rows, Scaled& out, bool single);
    void apply_scalings(const RaceRows& rows, Scaled& out) const;
    void set_views(const RaceRows& rows, Scaled& out) const;
    std::uint64_t due() const;
    Step cut(const RaceRows& rows, std::span<const double> labels, std::size_t start, std::size_t known);
    void step(const RaceRows& rows, std::span<const double> labels, std::size_t classes, std::vector<double>& out);
    void learn_expert(Expert& expert, const ScaledRows& rows, std::span<const double> labels,
                      std::span<const double> inside, std::size_t classes, double* out);
    void hold(const RaceRows& rows, std::span<const double> labels, std::vector<double>& out);
    void learn_held();
    void add_class_means(std::size_t classes);
    void set_targets(std::span<const double> labels);
    void pass_over(const RaceRows& rows, std::size_t classes, std::vector<double>& out);
    void score_scaled(const ScaledRows& rows, double* out) const;
    void finish(std::size_t count);
    void finish_step(std::span<const double> labels);
    std::vector<std::size_t> experts_to_weigh() const;
    void learn_steps(RaceRows rows, std::span<const double> labels, std::vector<double>* out, std::size_t known);
    void revisit(RaceRows rows, std::span<const double> labels);
    std::size_t passes_that_help(const RaceRows& rows, std::span<const double> labels, std::size_t head);
    double tail_error(const RaceRows& rows, std::span<const double> labels) const;
    bool learn_single(RaceRows row, double label);
    std::vector<double> balanced(const RaceRows& rows, std::span<const double> labels);
    void check_classes(std::span<const double> labels, std::size_t known) const;
    static RaceRows hashed(const WideChunk& chunk);

    bool in_batch_ = false;  // a batch is learned: column weights are renewed for all experts, whatever it costs
    // Scratch memory.
    Scaled scaled_;
    WideChunk wide_;
    std::vector<double> scores_, targets_, clipped_, tamed_, mixed_;
    std::vector<Mixture::ExpertScores> expert_scores_;
    std::vector<std::uint8_t> planned_;
};

}  // namespace gristmill
