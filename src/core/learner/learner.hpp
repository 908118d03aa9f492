// Folder learner: the concept of a hypothesis and the one learning loop.
// It includes adapt/, parts/, kernels/ and base/; expansion/ and everything above may include it.
// Begin with this file: the loop over trial, rule, step, budget, intercept, averages, classes and counters, for every
// hypothesis.
//
// Each event is planned first (kernels, rule, budget: everything that may fail) and then committed, and a chunk is one
// transaction: an error leaves the learner unchanged. The result does not depend on how a stream is cut into chunks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "core/adapt/calibration.hpp"
#include "core/adapt/class_balance.hpp"
#include "core/adapt/intervals.hpp"
#include "core/kernels/check.hpp"
#include "core/learner/hypothesis.hpp"

namespace gristmill {

enum class Task { classification, regression, novelty };

[[noreturn]] inline void fail(std::size_t row, const char* what, double value) {
    char text[240];
    std::snprintf(text, sizeof text, "row %zu: %s %g", row, what, value);
    throw RowError(row, text);
}

// Result of relearning with new column factors: the error of one pass over the stored points, before and with them.
struct RelearnResult {
    double before = 0, after = 0;
    bool accepted = false;
};

template <class Part>
std::vector<double> state_of(Part part) {
    std::vector<double> state;
    std::visit([&](auto& p) { p.state([&](const char*, double& x) { state.push_back(x); }); }, part);
    return state;
}

template <Hypothesis H>
class Learner {
  public:
    // parts: arguments of the hypothesis. Throws std::invalid_argument if it cannot serve rule or budget.
    template <class... Parts>
    Learner(Rule rule, Budget budget, Task task, bool average, std::uint64_t seed, Parts&&... parts)
        : first_rule_(rule), rule_(std::move(rule)), budget_(std::move(budget)),
          needs_(supported(needs_of(rule_) | needs_of(budget_), average)), task_(task), average_(average),
          hypothesis_(std::forward<Parts>(parts)..., Composition{needs_, budget_, average}), intercept_(1),
          intercept_sum_(1), intervals_(task == Task::regression ? 1 : 0) {
        counts_.random.seed = seed;
        fit_memory();
    }

    void check(const Batch& batch) const { hypothesis_.check(batch); }

    // Sets the number of regression targets, each with a rule of its own. requires: regression, nothing learned yet.
    void set_targets(std::size_t targets);

    // One pass over a chunk. labels: class codes in order of first appearance, targets, or empty for novelty; weights:
    // may be empty. A new class is added at the event that has it. classes: number of classes known beforehand. scores,
    // if given: receives the score of each event before it is learned, outputs() numbers per row; 0 for classes unknown
    // at that time.
    void learn(const Batch& batch, std::span<const double> labels, std::span<const double> weights,
               std::vector<double>* scores, std::size_t classes = 0) {
        Chunk chunk{batch, labels, weights, scores, hypothesis_.make_lookahead(batch)};
        const std::size_t rows = batch_count(batch);
        if (scores) scores->assign(rows * outputs(), 0.0);
        const bool grows = brings_output(labels, classes);
        // The norm is repaired before the rule runs, and a Python rule may throw afterwards.
        const bool repairs = needs_.norm && std::holds_alternative<Foreign>(rule_);
        if (rows == 1 && hypothesis_.plan_is_readonly() && !grows && !repairs) {
            learn_single(chunk, classes);  // plan, then commit: nothing to roll back
        } else {
            transact(rows, grows, [&] {
                add_classes(chunk, classes);
                learn_rows(chunk);
                hypothesis_.finish(chunk.lookahead);
            });
        }
    }

    // Another pass over earlier events, the first of them at position `start` of the stream.
    void revisit(const Batch& batch, std::span<const double> labels, std::span<const double> weights,
                 std::int64_t start)
        requires requires(const H h) { h.make_revisit_lookahead(batch, start); }
    {
        Chunk chunk{batch, labels, weights, nullptr, hypothesis_.make_revisit_lookahead(batch, start)};
        chunk.start = start;
        transact(batch_count(batch), false, [&] {
            learn_rows(chunk);
            hypothesis_.finish(chunk.lookahead);
        });
    }

    // Rescales the targets: y_o -> factor_o * y_o + shift_o. Coefficients, intercept, adaptive widths and stored labels
    // follow, so that predictions are the same in the new units. requires: a factor > 0 and a shift per target.
    void rescale_targets(std::span<const double> factors, std::span<const double> shifts)
        requires requires(H h) { h.scale_outputs(factors); };

    // Changes the rows of the stored points, which keep their coefficients.
    void change_points(const RowChange& change)
        requires requires(H h) { h.change_points(change); }
    {
        transact(hypothesis_.size(), false, [&] { hypothesis_.change_points(change); });
    }

    // Multiplies the columns of the stored points by factors and relearns f. The new f is a blend of two: the old f,
    // with its scores at the stored points kept as well as possible, and, with a share of at most one half, a new f
    // learned in `passes` over the stored points with their labels, oldest first, from f = 0 and a fresh rule. The old
    // f alone would ignore the new factors; the labels alone would forget what evicted points had taught. Counters,
    // ages and random state are kept. Nothing changes if the error of the first pass exceeds that of a pass with the
    // old factors by more than the share `slack`.
    RelearnResult relearn(std::span<const double> factors, std::size_t passes, double slack)
        requires(H::kSupports.present);

    // Scores of rows, outputs() numbers per row.
    void score(const Batch& batch, double* scores) const {
        hypothesis_.scores(batch, scores);
        const double margin = this->margin();
        const std::size_t rows = batch_count(batch);
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t o = 0; o < outputs(); ++o, ++scores) {
                *scores = *scores + shown_intercept(o) - margin;
                if (!std::isfinite(*scores)) fail(r, "the score is not finite (kernel values too large):", *scores);
            }
    }

    // d f_o / d x of the predicting f, in the order (row, output, feature).
    void gradient(const Batch& batch, double* out) const
        requires requires(const H h) { h.gradients(batch, out); }
    {
        hypothesis_.gradients(batch, out);
        const std::size_t each = outputs() * width(), rows = batch_count(batch);
        for (std::size_t r = 0; r < rows; ++r) {
            const double* slopes = out + r * each;
            if (all_finite(slopes, each)) continue;
            const double* bad = std::find_if(slopes, slopes + each, [](double x) { return !std::isfinite(x); });
            fail(r, "the gradient is not finite (kernel values too large):", *bad);
        }
    }
    // Probabilities from the scores of a row, classes() numbers.
    void probabilities(std::span<const double> scores, double* out) const {
        calibration_.probabilities(scores, counts_.classes, out);
    }
    const Intervals& intervals() const { return intervals_; }  // of a regressor, one per target
    // Report raw f(x) without subtracting the margin (the caller thresholds). Not serialised.
    void report_raw_scores() { raw_scores_ = true; }
    // Gives all classes equal total weight. requires: nothing was learned yet.
    void balance_classes() { class_balance_.on = true; }

    const H& hypothesis() const { return hypothesis_; }
    H& hypothesis() { return hypothesis_; }
    Task task() const { return task_; }
    std::size_t width() const { return hypothesis_.width(); }
    std::size_t outputs() const { return intercept_.size(); }
    std::size_t classes() const { return counts_.classes; }
    std::size_t targets() const { return 1 + other_rules_.size(); }
    double shown_intercept(std::size_t output) const {
        if (!average_) return intercept_[output];
        return hypothesis_.ticks() == 0 ? 0.0 : intercept_sum_[output] / static_cast<double>(hypothesis_.ticks());
    }
    // The threshold of novelty scores: the current one, or its average over time.
    double margin() const {
        if (task_ != Task::novelty || raw_scores_) return 0.0;
        return average_ && hypothesis_.ticks() > 0 ? counts_.margins / static_cast<double>(hypothesis_.ticks())
                                                   : novelty_margin(rule_);
    }
    // How many points fit into `memory` bytes, everything counted; outputs: 0 for the current number.
    std::size_t points_within(std::size_t memory, std::size_t outputs = 0) const;
    // Changes the budget to `memory` bytes; surplus points are evicted. requires: a budget with a size.
    void resize(std::size_t memory);
    std::uint64_t seen() const { return counts_.seen; }
    const Rule& rule() const { return rule_; }
    const Budget& budget() const { return budget_; }
    std::size_t bytes() const { return hypothesis_.bytes() + fixed_bytes(); }
    std::size_t fixed_bytes() const {
        return sizeof *this - sizeof hypothesis_ + rule_bytes(rule_) + intervals_.bytes();
    }

    // Saves or loads all state that changes while learning, but the points. requires, to load: a new learner.
    void visit(Archive& archive);

    // One event in two steps: plan(), which may fail and changes nothing, and commit(), which cannot fail. Its memory
    // is reused from event to event.
    class Single;
    // Whether Single can be used: no norm is repaired and no Python code runs.
    bool takes_singly() const {
        return hypothesis_.plan_is_readonly() && targets() == 1 && !needs_.norm && !needs_.span &&
               !std::holds_alternative<Foreign>(rule_) && !std::holds_alternative<ForeignBudgetPart>(budget_);
    }
    // Adds columns that were 0 in all earlier events; a size in bytes is not checked until `resize`.
    void widen(std::size_t width)
        requires requires(H h) { h.widen(width); }
    {
        hypothesis_.widen(width);
    }
    // A copy with columns that were 0 in all earlier events. What a budget in bytes has no more room for is evicted.
    Learner widened(std::size_t width) const
        requires requires(H h) { h.widen(width); }
    {
        Learner wide(*this);
        wide.widen(width);
        wide.fit_memory();
        return wide;
    }

    // Called between blocks of rows of a long chunk; may throw to stop it.
    std::function<void()> poll;

  private:
    // Counters that change while learning.
    struct Counts {
        std::uint64_t seen = 0, steps = 0;  // events; events learned (weight > 0)
        std::size_t classes = 0;  // seen or announced; one output serves the first two
        Random random;
        double margins = 0;  // novelty: sum of the margins of the averaged hypotheses
    };
    struct Chunk {
        const Batch& batch;
        std::span<const double> labels, weights;
        std::vector<double>* out;
        typename H::Lookahead lookahead;
        std::size_t first = 0;  // index of the first loaded row
        std::optional<std::int64_t> start = {};  // position of the first row, in a later pass
        std::size_t targets = 1;  // labels per row
        std::vector<double> scores = {}, coefs = {}, shown = {}, offsets = {};
        std::vector<Rule> other_rules = {};

        double label(std::size_t at) const { return labels.empty() ? 1.0 : labels[at * targets]; }
        // All labels of a row; novelty has the constant 1.
        std::span<const double> labels_of(std::size_t at) const {
            static constexpr double kOne = 1.0;
            return labels.empty() ? std::span(&kOne, 1) : labels.subspan(at * targets, targets);
        }
        double weight(std::size_t at) const { return weights.empty() ? 1.0 : weights[at]; }
    };
    // The changes of an event outside the hypothesis, computed before anything changes.
    struct Decision {
        Rule rule;
        Budget budget;
        Random random;
        std::size_t own = 0, rival = 0;  // outputs that the step raises and lowers; equal if there is no rival
    };

    static Needs supported(Needs needs, bool average) {
        needs.average |= average;
        if (const char* what = H::kSupports.lacks(needs))
            throw std::invalid_argument(std::string(H::kName) + " cannot serve this rule and budget, which need " +
                                        what);
        return needs;
    }
    static std::size_t outputs_for(std::size_t classes) { return classes > 2 ? classes : 1; }

    bool brings_output(std::span<const double> labels, std::size_t classes) const;

    // State outside the hypothesis that a rollback restores.
    struct Snapshot {
        Rule rule;
        std::vector<Rule> other_rules;
        Budget budget;
        Counts counts;
        std::vector<double> intercept, intercept_sum;
        Calibration calibration;
        ClassBalance class_balance;
        Intervals intervals;
    };
    Snapshot snapshot() const {
        return {rule_,          other_rules_, budget_,        counts_,   intercept_,
                intercept_sum_, calibration_, class_balance_, intervals_};
    }
    void rollback(const Snapshot& snapshot);
    void transact(std::size_t rows, bool grows, const std::function<void()>& work);

    struct Replay;
    double replay(Replay& points, std::size_t passes);
    void blend(Replay& stored, std::span<const double> scores, const std::vector<std::vector<double>>& present,
               std::span<const double> intercept)
        requires(H::kSupports.present);
    double error_of(std::span<const double> scores, std::span<const double> labels) const;

    void learn_single(Chunk& chunk, std::size_t classes);
    void learn_rows(Chunk& chunk) {
        const std::size_t rows = batch_count(chunk.batch);
        resize(chunk);
        for (std::size_t first = 0; first < rows;) {
            // A row with a new output starts a new block.
            if (new_output(chunk, first)) add_classes(chunk, static_cast<std::size_t>(chunk.labels[first]) + 1, first);
            std::size_t count = hypothesis_.window(rows - first);
            for (std::size_t i = 1; i < count; ++i)
                if (new_output(chunk, first + i)) count = i;
            chunk.first = first;
            hypothesis_.load(chunk.lookahead, first, count);
            for (std::size_t i = 0; i < count; ++i) event(chunk, i);
            first += count;
            if (poll) poll();
        }
    }

    void resize(Chunk& chunk) const {
        chunk.targets = targets();
        chunk.scores.resize(outputs());
        chunk.coefs.resize(hypothesis_.coefs_per_term());
    }

    bool new_output(const Chunk& chunk, std::size_t at) const {
        return task_ == Task::classification &&
               chunk.labels[at] >= static_cast<double>(std::max<std::size_t>(counts_.classes, 2));
    }

    // Adds classes up to the given number; `at`: the rows before it have been reported.
    void add_classes(Chunk& chunk, std::size_t classes, std::size_t at = 0);
    // Adds one class. The third class replaces the output f by -f/2 and f/2 and adds a zero output.
    void add_class();

    // Converts a size in bytes into a number of points for the current number of outputs.
    void fit_memory();
    std::size_t least_memory(std::size_t points) const;

    // Whether cheap approximate scores show that a single event changes nothing; a wide tolerance keeps rounding from
    // deciding.
    bool changes_nothing(Chunk& chunk);
    void count_event(const Chunk& chunk, std::size_t at, std::uint64_t steps) {
        counts_.steps += steps;
        if (chunk.start) return;
        ++counts_.seen;
        if (task_ != Task::classification) return;
        const auto label = static_cast<std::size_t>(chunk.labels[at]);
        counts_.classes = std::max(counts_.classes, label + 1);
        if (steps > 0) class_balance_.count(label);
    }

    void score_event(Chunk& chunk, std::size_t i) {
        for (std::size_t o = 0; o < outputs(); ++o) {
            chunk.scores[o] = intercept_[o] + hypothesis_.score(chunk.lookahead, i, o);
            if (!std::isfinite(chunk.scores[o]))
                fail(chunk.first + i,
                     "the score is not finite (kernel values too large, or learning diverged):", chunk.scores[o]);
        }
    }

    void event(Chunk& chunk, std::size_t i) {
        const std::size_t at = chunk.first + i;
        score_event(chunk, i);
        if (chunk.out) report(chunk, i, chunk.out->data() + at * outputs());
        const bool counts = chunk.weight(at) != 0, calibrated = counts && calibrates(chunk);
        if (calibrated && average_) {  // without averaging the scores are the predictions
            chunk.shown.resize(outputs());
            report(chunk, i, chunk.shown.data());
        }
        if (counts && targets() > 1) learn_targets(chunk, i);
        else if (counts) learn_event(chunk, i);
        if (calibrated) update_calibration(chunk, at);
        count_event(chunk, at, counts ? 1 : 0);
        if (const auto* window = std::get_if<Window>(&budget_))
            hypothesis_.expire(chunk.lookahead, i, window->horizon(static_cast<std::int64_t>(counts_.seen)));
    }

    // Updates probabilities and intervals with the prediction and the label of an event.
    void update_calibration(const Chunk& chunk, std::size_t at) noexcept {
        const std::span<const double> predicted = average_ ? chunk.shown : chunk.scores;
        if (task_ == Task::regression) intervals_.learn(predicted, chunk.labels_of(at).data());
        else calibration_.learn(predicted, static_cast<std::size_t>(chunk.label(at)));
    }

    // Whether the event updates probabilities and intervals: in the first pass only. If the predicted scores are
    // expensive, only every eighth event after the first 512 does, chosen by position.
    bool calibrates(const Chunk& chunk) const {
        if (task_ == Task::novelty || chunk.start) return false;
        if (task_ == Task::regression) return true;
        constexpr bool rough = requires(typename H::Lookahead& lookahead, const H& h) { h.rough_score(lookahead, 0); };
        return !(rough || average_) || counts_.seen < 512 || counts_.seen % 8 == 0;
    }

    void report(Chunk& chunk, std::size_t i, double* out) const {
        for (std::size_t o = 0; o < outputs(); ++o) {
            out[o] = average_ ? shown_intercept(o) + hypothesis_.average_score(chunk.lookahead, i, o) : chunk.scores[o];
            out[o] -= margin();
        }
    }

    Trial trial(Chunk& chunk, std::size_t i, Decision& decision) const {
        const std::size_t at = chunk.first + i;
        const double label = chunk.label(at);
        Trial trial{.score = chunk.scores[0],
                    .label = label,
                    .self = hypothesis_.self(chunk.lookahead, i),
                    .step = counts_.steps + 1,
                    .weight = chunk.weight(at)};
        if (!std::isfinite(trial.self))
            fail(at, "k(x, x) is not finite (scale the inputs, or choose another kernel):", trial.self);
        if (task_ != Task::classification) return trial;
        trial.weight *= class_balance_.weight(static_cast<std::size_t>(label), !chunk.start);
        if (outputs() == 1) {
            trial.label = 2 * label - 1;
            return trial;
        }
        std::size_t &own = decision.own, &rival = decision.rival;
        own = static_cast<std::size_t>(label);
        rival = own == 0 ? 1 : 0;
        for (std::size_t o = rival + 1; o < outputs(); ++o)
            if (o != own && chunk.scores[o] > chunk.scores[rival]) rival = o;
        trial.score = chunk.scores[own] - chunk.scores[rival];
        trial.label = 1;
        trial.self *= 2;
        return trial;
    }

    // Sets the coefficients of the new point, one per output.
    void set_coefs(Chunk& chunk, const Decision& decision, double own) const {
        std::fill(chunk.coefs.begin(), chunk.coefs.end(), 0.0);
        chunk.coefs[decision.own] = own;
        if (decision.rival != decision.own) chunk.coefs[decision.rival] = -own;
    }

    // All that an event is going to change, worked out before anything changes.
    struct Planned {
        Decision decision;
        Term term;
        typename H::Plan plan;
    };
    Planned plan_event(Chunk& chunk, std::size_t i) {
        const std::size_t at = chunk.first + i;
        Decision decision{rule_, budget_, counts_.random};
        Trial trial = this->trial(chunk, i, decision);
        set_coefs(chunk, decision, 1.0);
        hypothesis_.measure(chunk.lookahead, i, chunk.coefs, trial);
        const Step step = std::visit([&](auto& r) { return r(trial); }, decision.rule);
        check_step(at, trial, step);
        set_coefs(chunk, decision, step.coefficient);
        const double self = outputs() > 1 ? trial.self / 2 : trial.self;
        Term term{position(chunk, at), chunk.labels_of(at), self, step, chunk.coefs};
        typename H::Plan plan = hypothesis_.plan(chunk.lookahead, i, term, decision.budget, decision.random);
        return {std::move(decision), term, std::move(plan)};
    }
    void commit_event(Chunk& chunk, std::size_t i, Planned& planned) {
        commit(chunk, i, planned.decision, planned.plan, planned.term);
        const double offset = planned.term.step.intercept;
        intercept_[planned.decision.own] += offset;
        if (planned.decision.rival != planned.decision.own) intercept_[planned.decision.rival] -= offset;
    }
    void learn_event(Chunk& chunk, std::size_t i) {
        Planned planned = plan_event(chunk, i);
        commit_event(chunk, i, planned);
    }

    std::int64_t position(const Chunk& chunk, std::size_t at) const {  // position in the stream
        return chunk.start ? *chunk.start + static_cast<std::int64_t>(at) : static_cast<std::int64_t>(counts_.seen);
    }

    // One trial per target and one step for all; the point is stored if any coefficient is not 0.
    void learn_targets(Chunk& chunk, std::size_t i);

    // Applies the changes. Cannot fail.
    void commit(Chunk& chunk, std::size_t i, Decision& decision, typename H::Plan& plan, Term& term) {
        if (average_) {
            // the margin is averaged with the hypothesis
            if (task_ == Task::novelty) counts_.margins += novelty_margin(rule_);
            hypothesis_.tick();
            for (std::size_t o = 0; o < outputs(); ++o) intercept_sum_[o] += intercept_[o];
        }
        rule_ = std::move(decision.rule);
        budget_ = std::move(decision.budget);
        counts_.random = decision.random;
        hypothesis_.commit(chunk.lookahead, i, plan, term);
        settle(rule_);
    }

    void check_step(std::size_t at, const Trial& trial, const Step& step) const {
        if (!std::isfinite(step.coefficient) || !std::isfinite(step.shrink) || !std::isfinite(step.intercept) ||
            !std::isfinite(step.tangent))
            fail(at, "the rule proposed a step that is not finite (learning diverged; a smaller rate may help):",
                 step.coefficient);
        if (!(step.radius >= 0)) fail(at, "the rule proposed a radius that is not a number >= 0:", step.radius);
        if (std::isfinite(step.radius) && !needs_.norm)
            fail(at, "a rule that proposes a radius must say needs_norm = True, got the radius", step.radius);
        if (hypothesis_.overflows(trial, step))
            fail(at, "the coefficients would overflow (learning diverged; a smaller rate may help):", step.coefficient);
    }

    Rule first_rule_;  // before the first event
    Rule rule_;
    std::vector<Rule> other_rules_;  // rules of the second and later targets
    Budget budget_;
    Needs needs_;
    Task task_;
    bool average_;
    bool raw_scores_ = false;
    H hypothesis_;
    std::vector<double> intercept_, intercept_sum_;
    Counts counts_;
    Calibration calibration_;
    ClassBalance class_balance_;
    Intervals intervals_;
};

}  // namespace gristmill

#include "core/learner/details.hpp"
#include "core/learner/relearn.hpp"
#include "core/learner/saving.hpp"
