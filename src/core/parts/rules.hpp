// Folder parts: losses, update rules, budgets, and what rules and budgets need of a hypothesis.
// It includes base/ and kernels/; adapt/, learner/ and everything above may include it.
// Begin with this file: a rule maps a trial to a step. It changes only its own state.
//
// To add a rule: a struct with `Step operator()(const Trial&)` (and `needs`, `state` where the defaults do not
// suffice); its name in `Rule` at the end; a line in parts/named.hpp; a class in rules.py. CONTRIBUTING.md has an
// example.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <variant>

#include "core/base/quantile_window.hpp"
#include "core/parts/losses.hpp"
#include "core/parts/needs.hpp"

namespace gristmill {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// One event as a rule sees it. All scores are those before the update. With more than two classes the score is the
// margin over the best rival, the label is +1 and `self` is 2 k(x,x): the squared norm of the step that raises the one
// score and lowers the other.
struct Trial {
    double score = 0;
    double label = 0;
    double self = 0;         // k(x, x)
    std::uint64_t step = 1;  // t, from 1
    double weight = 1;
    // Set only for rules that declare them, see Needs.
    double norm2 = kUnknown;       // ||f||^2
    double residual = kUnknown;    // distance of k(x,.) from the span of the stored points
    double projected2 = kUnknown;  // ||P k(x,.)||^2, P the projection onto that span
    double tolerance = kUnknown;   // of the budget Project
    double tangent = kUnknown;     // v(x), where v is the derivative of f by the log rate
    double along = kUnknown;       // <f, v>
    double present = 0;            // the event's own coefficient, if it is stored from an earlier pass
    double mass = kUnknown;        // the sum of all coefficients
};

struct Step {
    double coefficient = 0;     // of the new point; 0: nothing is stored
    double shrink = 1;          // factor on all stored coefficients; 0 clears the store
    double intercept = 0;       // added to the intercept
    double radius = kInfinity;  // afterwards ||f|| <= radius
    bool fold_only = false;     // only the projection of the new point is added to f
    double tangent = 0;         // coefficient of the new point in v
    double tangent_keep = 1, tangent_mix = 0;  // v <- keep v + mix f, with f before this step
};

enum class Schedule { constant, inv_sqrt };

inline double scheduled(double rate, Schedule schedule, std::uint64_t step) {
    return schedule == Schedule::constant ? rate : rate / std::sqrt(static_cast<double>(step));
}

struct RuleBase {
    Needs needs() const { return {}; }
    template <class F>
    void state(F&&) {}  // calls its argument with the name and the value of each number that changes while learning
    double novelty_margin() const { return 1.0; }  // the threshold subtracted from novelty scores
    std::size_t bytes() const { return 0; }        // upper bound of memory outside the struct
};

struct Perceptron : RuleBase {
    Step operator()(const Trial& trial) {
        return {.coefficient = trial.label * trial.score <= 0 ? trial.label * trial.weight : 0.0};
    }
};

struct Sgd : RuleBase {  // NORMA
    Loss loss;
    double rate = 0.1, reg = 0;  // eta, lambda
    Schedule schedule = Schedule::constant;
    bool intercept = false;

    Step operator()(const Trial& trial) {
        const double rate_now = scheduled(rate, schedule, trial.step);
        const double push = rate_now * trial.weight * loss.push(trial.score, trial.label);
        loss.adapt(rate_now * trial.weight, loss.beyond(trial.score, trial.label));
        return {.coefficient = push, .shrink = 1 - rate_now * reg, .intercept = intercept ? push : 0.0};
    }
    template <class F>
    void state(F&& f) {
        f("width", loss.width);
    }
    double novelty_margin() const { return loss.width; }
};

// The hinge loss with margin 1 (regression: with a tube of width epsilon), and the sign of the step that reduces it.
struct Shortfall {
    double loss, sign;
    Shortfall(const Trial& trial, bool regression, double epsilon) {
        const double error = trial.label - trial.score;
        loss = regression ? std::abs(error) - epsilon : 1 - trial.label * trial.score;
        sign = regression ? std::copysign(1.0, error) : trial.label;
    }
};

struct PassiveAggressive : RuleBase {
    double aggressiveness = 1.0;  // C
    int variant = 1;
    double epsilon = 0.1;
    bool regression = false;

    Step operator()(const Trial& trial) {
        const Shortfall miss(trial, regression, epsilon);
        const double limit = aggressiveness * trial.weight;
        const double extent = variant == 2 ? trial.self + 1 / (2 * limit) : trial.self;
        if (!(miss.loss > 0) || trial.self < 0 || !(extent > 0)) return {};
        const double size = variant == 1 ? std::min(limit, miss.loss / extent) : miss.loss / extent;
        return {.coefficient = miss.sign * size};
    }
};

struct FeasibleSet : RuleBase {  // projections onto feasible sets (Herbster), figures 2-4
    double epsilon = 0, radius = kInfinity;  // radius: gamma
    bool regression = false;

    Needs needs() const { return {.norm = std::isfinite(radius)}; }
    Step operator()(const Trial& trial) {
        const Shortfall miss(trial, regression, epsilon);
        if (!(miss.loss > 0) || !(trial.self > 0)) return {};
        return {.coefficient = miss.sign * miss.loss / trial.self, .radius = radius};
    }
};

struct Implicit : RuleBase {  // ILK: minimises 1/2 ||f - f_t||^2 + rate (reg/2 ||f||^2 + C loss)
    Loss loss;
    double trade = 1, rate = 1, reg = 0;  // C, eta, lambda
    Schedule schedule = Schedule::constant;

    Step operator()(const Trial& trial) {
        const double rate_now = scheduled(rate, schedule, trial.step);
        const double keep = 1 / (1 + rate_now * reg);  // 1 - tau
        const double cap = keep * rate_now * trade * trial.weight;
        const double kept = keep * trial.score, y = trial.label, self = trial.self;
        double step = 0;
        if (loss.kind == LossKind::squared) {
            if (self >= 0) step = (y - kept) / (1 / cap + self);
        } else if (loss.kind == LossKind::hinge) {
            if (self > 0) step = y * std::clamp((loss.width - y * kept) / self, 0.0, cap);
        } else if (self >= 0) {
            step = y * logistic_root(y * kept, self, cap);
        }
        return {.coefficient = step, .shrink = keep};
    }
    double novelty_margin() const { return loss.width; }

    // The root of u = cap/(1 + exp(margin + u self)) in (0, cap): Newton steps inside a shrinking bracket.
    static double logistic_root(double margin, double self, double cap) {
        double low = 0, high = cap, u = cap * Loss::sigmoid(-margin);
        for (int i = 0; i < 100 && high > low; ++i) {
            const double share = Loss::sigmoid(-(margin + u * self));
            const double excess = u - cap * share;
            (excess > 0 ? high : low) = u;
            const double slope = 1 + cap * self * share * (1 - share);
            double next = u - excess / slope;
            if (!(next > low && next < high)) next = 0.5 * (low + high);
            if (std::abs(next - u) <= 1e-16 * cap) return next;
            u = next;
        }
        return u;
    }
};

struct Alma : RuleBase {  // ALMA_2
    double alpha = 0.9, margin = 1, size = 1;  // alpha, B, C
    double corrections = 0;                    // k - 1

    Needs needs() const { return {.norm = true}; }
    Step operator()(const Trial& trial) {
        const double root = std::sqrt(corrections + 1);
        if (trial.label * trial.score > (1 - alpha) * margin / root) return {};
        corrections += 1;
        return {.coefficient = trial.label * trial.weight * size / root, .radius = 1.0};
    }
    template <class F>
    void state(F&& f) {
        f("corrections", corrections);
    }
};

struct Romma : RuleBase {  // the smallest w that classifies this event correctly and keeps the earlier constraints
    bool aggressive = false;
    static constexpr double kParallel = 1e-12;

    Needs needs() const { return {.norm = true}; }
    Step operator()(const Trial& trial) {
        const double f = trial.score, y = trial.label, xx = trial.self, ww = trial.norm2;
        if (!(aggressive ? y * f < 1 : y * f <= 0) || !(xx > 0)) return {};
        const double determinant = xx * ww - f * f;
        if (ww == 0 || y * f >= xx * ww || determinant <= kParallel * xx * ww)
            return {.coefficient = y / xx, .shrink = 0};
        return {.coefficient = ww * (y - f) / determinant, .shrink = (xx * ww - y * f) / determinant};
    }
};

struct MarginProjection : RuleBase {  // Projectron++
    bool squared = false;

    Needs needs() const { return {.projection = true}; }
    Step operator()(const Trial& trial) {
        const double agreement = trial.label * trial.score, loss = 1 - agreement;
        if (agreement <= 0) return {.coefficient = trial.label * trial.weight};
        if (agreement > 1 || !(trial.projected2 > 0)) return {};
        double ratio = trial.residual == 0 ? 0.0 : trial.residual / trial.tolerance;  // delta / eta
        if (squared) ratio *= ratio;
        if (!(loss >= ratio)) return {};
        const double size = std::min({loss / trial.projected2, 2 * (loss - ratio) / trial.projected2, trial.weight});
        return {.coefficient = trial.label * size, .fold_only = true};
    }
};

struct Adatron : RuleBase {  // clipped dual coordinate ascent; later passes update the same points
    double rate = 1, limit = kInfinity;  // eta, C

    Needs needs() const { return {.present = true}; }
    Step operator()(const Trial& trial) {
        if (!(trial.self > 0)) return {};
        const double old = trial.label * trial.present;
        const double now = std::clamp(old + rate * (1 - trial.label * trial.score), 0.0, limit * trial.weight);
        return {.coefficient = trial.label * (now - old)};
    }
};

struct StepSizeAdaptation : RuleBase {  // SVMD: stochastic gradient descent with a learned log rate
    Loss loss;
    double rate = 0.1, reg = 0, meta_rate = 0, decay = 1;  // eta_0, lambda, mu, SMD's lambda
    bool linear = false;
    static constexpr double kLargestShare = 0.99;  // largest share of f that one step may forget

    Needs needs() const { return {.norm = true, .tangent = true}; }
    Step operator()(const Trial& trial) {
        const double slope = -trial.weight * loss.push(trial.score, trial.label);  // l'
        const double bend = trial.weight * loss.curvature(trial.score, trial.label);  // l''
        const double gain = meta_rate * (reg * trial.along + slope * trial.tangent);
        rate *= linear ? std::max(0.5, 1 - gain) : elementary::exp(-gain);
        if (reg > 0) rate = std::min(rate, kLargestShare / reg);
        return {.coefficient = -rate * slope,
                .shrink = 1 - rate * reg,
                .tangent = -rate * (slope + decay * bend * trial.tangent),
                .tangent_keep = decay * (1 - rate * reg),
                .tangent_mix = -rate * reg};
    }
    template <class F>
    void state(F&& f) {
        f("rate", rate);
    }
    double novelty_margin() const { return loss.width; }
};

// Kernel density: f is the weighted mean of k(x, .) over the stored points; eviction does not bias it. A score below
// the quantile `nu` of the last scores is an alarm.
struct Density : RuleBase {
    double decay = 0, nu = 0.01, neighbours = 0;
    double total = 0;  // total weight of the points in f
    QuantileWindow scores = {};
    double latest = 0;  // the score of the event being learned
    static constexpr std::size_t kQuiet = 50;  // first events, which never raise an alarm

    Needs needs() const { return {.mass = true, .neighbours = neighbours}; }
    Step operator()(const Trial& trial) {
        latest = trial.score;
        const bool empty = !(trial.mass > 0);  // nothing is stored, or all weight was lost
        const double kept = empty ? 0.0 : (1 - decay) * total * trial.mass;
        total = kept + trial.weight;
        return {.coefficient = trial.weight / total, .shrink = empty ? 1.0 : kept / total / trial.mass};
    }
    void settle() { scores.push(latest); }
    template <class F>
    void state(F&& f) {
        f("total", total);
    }
    template <class A>
    void visit(A& archive) {
        std::vector<double> recent = scores.values();
        archive.numbers("recent", recent);
        if (!archive.loads) return;
        if (recent.size() > QuantileWindow::kMost) archive.refuse("recent", "has too many entries");
        scores = {};
        for (const double score : recent) scores.push(score);
    }
    double novelty_margin() const { return scores.size() < kQuiet ? 0.0 : scores.quantile(nu); }
    std::size_t bytes() const { return QuantileWindow::bytes(); }
};

// A rule written in Python.
struct ForeignRule {
    virtual ~ForeignRule() = default;
    virtual Step propose(const Trial& trial) = 0;
};
struct Foreign : RuleBase {
    std::shared_ptr<ForeignRule> rule;
    bool norm = false;
    Needs needs() const { return {.norm = norm}; }
    Step operator()(const Trial& trial) { return rule->propose(trial); }
};

using Rule = std::variant<Perceptron, Sgd, PassiveAggressive, FeasibleSet, Implicit, Alma, Romma, MarginProjection,
                          Adatron, StepSizeAdaptation, Density, Foreign>;

inline Needs needs_of(const Rule& rule) {
    return std::visit([](const auto& r) { return r.needs(); }, rule);
}

// Called after the step of an event is committed: updates state beyond the numbers of `state`.
inline void settle(Rule& rule) {
    if (auto* density = std::get_if<Density>(&rule)) density->settle();
}

// The targets were multiplied by `factor`: an adaptive width is multiplied as well.
inline void rescale(Rule& rule, double factor) {
    if (auto* sgd = std::get_if<Sgd>(&rule); sgd && sgd->loss.nu) sgd->loss.width *= factor;
}

inline std::size_t rule_bytes(const Rule& rule) {
    return std::visit([](const auto& r) { return r.bytes(); }, rule);
}

inline double novelty_margin(const Rule& rule) {
    return std::visit([](const auto& r) { return r.novelty_margin(); }, rule);
}

}  // namespace gristmill
