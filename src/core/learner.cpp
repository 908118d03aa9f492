#include "core/learner.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unordered_map>

namespace gristmill {

namespace {

[[noreturn]] void fail(std::size_t row, const char* what, double value) {
    char text[240];
    std::snprintf(text, sizeof text, "row %zu: %s %g", row, what, value);
    throw RowError(row, text);
}

std::size_t limit_of(const Budget& budget) {
    return std::visit([](const auto& b) { return b.limit(); }, budget);
}

bool projects(const Budget& budget) { return std::holds_alternative<Project>(budget); }

template <class Part>
std::vector<double> state_of(Part part) {
    std::vector<double> state;
    std::visit([&](auto& p) { p.state([&](double& x) { state.push_back(x); }); }, part);
    return state;
}

template <class Part>
Part with_state(Part part, std::span<const double> state) {
    std::size_t used = 0;
    std::visit([&](auto& p) { p.state([&](double& x) { if (used < state.size()) x = state[used]; ++used; }); }, part);
    if (used != state.size()) throw std::invalid_argument("the saved state does not fit the rule and the budget");
    return part;
}

}  // namespace

// The look-ahead over one chunk: kernel values of the next rows against every slot.
struct Learner::Chunk {
    const Batch& batch;
    std::span<const double> labels, weights;
    double* out;
    std::unique_ptr<Ahead> ahead;
    std::size_t first = 0, count = 0, stride = 0;  // the rows now in `values`
    Lines<double> values, column;
    VictimRows victims;
    Projections::Window coordinates;
    std::vector<double> scores, coefs;
    bool changed = false;  // whether coordinates no longer are what the coefficients say
    // Later passes: where the events of this batch are, by position.
    std::optional<std::int64_t> start;
    std::unordered_map<std::int64_t, std::size_t> slots;

    double* row(std::size_t i) { return values.data() + i * stride; }

    void load(const Expansion& f, std::size_t from, std::size_t rows, std::size_t slots_wanted) {
        first = from;
        count = rows;
        stride = padded(slots_wanted);
        ahead->load(from, rows);
        if (values.size() < rows * stride) values.resize(rows * stride);
        // Slots that will be filled on the way are read before they are, with coefficient 0: they must be finite.
        const std::size_t known = padded(f.size());
        for (std::size_t r = 0; r < rows; ++r) std::fill(row(r) + known, row(r) + stride, 0.0);
        ahead->rows(values.data(), stride);
    }
    // Row i has gone into a slot: the rows still to come see it there, and so do those that will leave.
    void stored(std::size_t i, std::size_t slot) {
        victims.stored(row(i), slot);
        if (i + 1 >= count) return;
        column.resize(padded(count));
        ahead->among(i, column.data());
        for (std::size_t r = i + 1; r < count; ++r) row(r)[slot] = column[r];
    }
    // The last slot has moved into a removed one; what it leaves behind may be infinite, and 0 * infinity is no score.
    void moved(std::size_t i, std::size_t from, std::size_t to) {
        victims.clear();
        for (std::size_t r = i + 1; r < count; ++r) {
            row(r)[to] = row(r)[from];
            row(r)[from] = 0;
        }
    }
    void cleared(std::size_t i, std::size_t slots_then) {
        victims.clear();
        for (std::size_t r = i + 1; r < count; ++r) std::fill(row(r), row(r) + slots_then, 0.0);
    }
};

// All that an event is going to change, worked out before anything changes.
struct Learner::Plan {
    Rule rule;
    Budget budget;
    Random random;
    std::size_t own = 0, rival = 0;  // outputs that the step raises and lowers
    double self = 0;                 // k(x, x)
    Step step = {};
    Entry entry = {Entry::Kind::refuse};
    bool fold = false;                 // with Project: into the span, not into the store
    std::size_t present = Points::npos;  // the event's own slot, if it came by before
    const double* victim_row = nullptr;
};

Learner::Learner(Kernel kernel, std::unique_ptr<Points> points, Rule rule, Budget budget, Task task,
                 std::size_t outputs, bool average, std::uint64_t seed)
    : rule_(std::move(rule)), budget_(std::move(budget)), needs_(needs_of(rule_)), average_(average),
      // With Project the norm and the average are those of the coordinates.
      expansion_(std::move(kernel), std::move(points), outputs + (needs_.tangent ? 1 : 0),
                 !projects(budget_) && (needs_.norm || needs_norm(budget_)), average && !projects(budget_)),
      task_(task), intercept_(outputs), intercept_sum_(outputs) {
    mutables_.random.seed = seed;
    expansion_.set_limit(limit_of(budget_));
    if (needs_.tangent) expansion_.hide_last();
    if (const auto* project = std::get_if<Project>(&budget_)) projections_.emplace(outputs, project->tolerance);
}

double Learner::norm2() const {
    if (projections_) return projections_->norm2();
    if (needs_.tangent) return expansion_.inner(0, 0);
    return expansion_.tracks_norm() ? expansion_.norm2() : expansion_.exact_norm2();
}

std::size_t Learner::bytes() const {
    return expansion_.bytes() + (projections_ ? projections_->bytes() : 0) + sizeof *this;
}

std::size_t Learner::window(std::size_t left) const {
    // Long enough for a matrix product's efficiency, short enough that rows against rows cost little beside rows
    // against the stored points. The result does not depend on it.
    const std::size_t wanted = std::clamp<std::size_t>(expansion_.size() / 6 / 8 * 8, 16, 128);
    return std::min(left, wanted);
}

void Learner::transact(const std::function<void()>& work) {
    const auto rule = rule_;
    const auto budget = budget_;
    const auto mutables = mutables_;
    const auto intercept = intercept_, intercept_sum = intercept_sum_;
    expansion_.begin();
    if (projections_) projections_->begin();
    try {
        work();
    } catch (...) {
        expansion_.rollback();
        if (projections_) projections_->rollback();
        rule_ = rule;
        budget_ = budget;
        mutables_ = mutables;
        intercept_ = intercept;
        intercept_sum_ = intercept_sum;
        throw;
    }
    expansion_.commit();
    if (projections_) projections_->commit();
}

void Learner::learn(const Batch& batch, std::span<const double> labels, std::span<const double> weights,
                    double* scores) {
    Chunk chunk{.batch = batch, .labels = labels, .weights = weights, .out = scores,
                .ahead = expansion_.points().ahead(expansion_.kernel(), batch), .values = {}, .column = {}, .victims = {},
                .coordinates = {}, .scores = std::vector<double>(outputs()),
                .coefs = std::vector<double>(expansion_.outputs()), .start = {}, .slots = {}};
    const bool repairs = expansion_.tracks_norm() && std::holds_alternative<Foreign>(rule_);  // and may throw thereafter
    if (batch_count(batch) == 1 && !expansion_.points().may_fail() && !repairs) {
        // An event by itself is planned, then committed: nothing to roll back.
        chunk.load(expansion_, 0, 1, expansion_.size() + 1);
        if (projections_) {
            if (passes_by(chunk)) return;
            projections_->load(chunk.coordinates, chunk.values.data(), chunk.stride, 1);
        }
        event(chunk, 0);
        if (chunk.changed) projections_->refresh(expansion_, average_, mutables_.ticks);
        return;
    }
    transact([&] { learn_rows(chunk); });
    if (chunk.changed) projections_->refresh(expansion_, average_, mutables_.ticks);
}

void Learner::revisit(const Batch& batch, std::span<const double> labels, std::span<const double> weights,
                      std::int64_t start) {
    Chunk chunk{.batch = batch, .labels = labels, .weights = weights, .out = nullptr,
                .ahead = expansion_.points().ahead(expansion_.kernel(), batch), .values = {}, .column = {}, .victims = {},
                .coordinates = {}, .scores = std::vector<double>(outputs()),
                .coefs = std::vector<double>(expansion_.outputs()), .start = start, .slots = {}};
    for (std::size_t slot = 0; slot < expansion_.size(); ++slot) chunk.slots[expansion_.points().id(slot)] = slot;
    transact([&] { learn_rows(chunk); });
}

void Learner::learn_rows(Chunk& chunk) {
    const std::size_t rows = batch_count(chunk.batch);
    for (std::size_t first = 0; first < rows;) {
        const std::size_t count = window(rows - first);
        const std::size_t slots = std::min(expansion_.size() + count, std::max(limit_of(budget_), expansion_.size()));
        // A window budget holds one point more for the moment between adding and forgetting.
        chunk.load(expansion_, first, count, slots + 1);
        if (projections_) projections_->load(chunk.coordinates, chunk.values.data(), chunk.stride, count);
        for (std::size_t i = 0; i < count; ++i) event(chunk, i);
        first += count;
        if (poll) poll();
    }
}

// With Project, a lone event costs a substitution only if it changes something: the coefficients of the points, which are
// at hand, tell most events that do not. A wide guard keeps rounding from ever deciding.
bool Learner::passes_by(Chunk& chunk) {
    if (chunk.out || average_) return false;
    constexpr double kGuard = 1e-6;
    double largest = 0;
    for (std::size_t o = 0; o < outputs(); ++o) {
        chunk.scores[o] = expansion_.score(o, chunk.row(0)) + intercept_[o];
        largest = std::max(largest, std::abs(chunk.scores[o]));
    }
    if (!std::isfinite(largest)) return false;
    Plan plan{rule_, budget_, mutables_.random};
    Trial seen = trial(chunk, 0, plan);
    if (seen.weight == 0) return false;
    seen.residual = 0;
    seen.projected2 = seen.tolerance = 1;
    const double middle = seen.score;
    for (const double side : {-1.0, 0.0, 1.0}) {
        Rule rule = rule_;
        seen.score = middle + side * kGuard * (1 + largest);
        const Step step = std::visit([&](auto& r) { return r(seen); }, rule);
        if (step.coefficient != 0 || step.shrink != 1 || step.intercept != 0 || state_of(rule) != state_of(rule_))
            return false;
    }
    ++mutables_.seen;
    ++mutables_.steps;
    return true;
}

void Learner::report(Chunk& chunk, std::size_t i, double* out) const {
    auto& projections = const_cast<std::optional<Projections>&>(projections_);
    for (std::size_t o = 0; o < outputs(); ++o) {
        out[o] = average_ ? average_intercept(o) +
                                (projections ? projections->average_score(chunk.coordinates, i, o, mutables_.ticks)
                                             : expansion_.average_score(o, chunk.row(i)))
                          : chunk.scores[o];
        out[o] -= margin();
    }
}

Trial Learner::trial(Chunk& chunk, std::size_t i, Plan& plan) {
    const std::size_t at = chunk.first + i;
    const double label = chunk.labels.empty() ? 1.0 : chunk.labels[at];
    plan.self = chunk.ahead->self(i);
    Trial trial{.score = chunk.scores[0], .label = label, .self = plan.self, .step = mutables_.steps + 1,
                .weight = chunk.weights.empty() ? 1.0 : chunk.weights[at]};
    if (task_ == Task::multiclass) {
        plan.own = static_cast<std::size_t>(label);
        plan.rival = plan.own == 0 ? 1 : 0;
        for (std::size_t o = plan.rival + 1; o < outputs(); ++o)
            if (o != plan.own && chunk.scores[o] > chunk.scores[plan.rival]) plan.rival = o;
        trial.score = chunk.scores[plan.own] - chunk.scores[plan.rival];
        trial.label = 1;
        trial.self *= 2;
    }
    return trial;
}

void Learner::event(Chunk& chunk, std::size_t i) {
    const std::size_t at = chunk.first + i;
    // A window takes out what it forgets, which moves others about: nothing to work out ahead there.
    chunk.victims.left = std::holds_alternative<Window>(budget_) ? 1 : batch_count(chunk.batch) - at;
    for (std::size_t o = 0; o < outputs(); ++o) {
        chunk.scores[o] = intercept_[o] + (projections_ ? projections_->score(chunk.coordinates, i, o)
                                                        : expansion_.score(o, chunk.row(i)));
        if (!std::isfinite(chunk.scores[o]))
            fail(at, "the score is not finite (kernel values too large, or learning diverged):", chunk.scores[o]);
    }
    if (chunk.out) report(chunk, i, chunk.out + at * outputs());
    if (chunk.weights.empty() || chunk.weights[at] != 0) {
        Plan plan{rule_, budget_, mutables_.random};
        decide(chunk, i, plan);
        commit(chunk, i, plan);  // nothing from here on can fail
        ++mutables_.steps;
    }
    if (!chunk.start) ++mutables_.seen;
    expire(chunk, i);
}

const double* Learner::victim_row(Chunk& chunk, std::size_t slot) const {
    if (!expansion_.tracks_norm()) return nullptr;  // only the norm asks what a point was worth
    return chunk.victims.row(expansion_, slot);
}

void Learner::check_step(std::size_t at, const Trial& trial, const Step& step) const {
    if (!(step.radius >= 0)) fail(at, "the rule proposed a radius that is not a number >= 0:", step.radius);
    if (std::isfinite(step.radius) && !needs_.norm)
        fail(at, "a rule that proposes a radius must say needs_norm = True, got the radius", step.radius);
    const double c = step.coefficient;
    const double grown = trial.norm2 * step.shrink * step.shrink + std::abs(2 * c * trial.score) + c * c * std::abs(trial.self);
    if (!expansion_.has_room_for(c, step.shrink) || (expansion_.tracks_norm() && !std::isfinite(grown)))
        fail(at, "the coefficients would overflow (learning diverged; a smaller rate may help):", c);
}

void Learner::decide(Chunk& chunk, std::size_t i, Plan& plan) {
    const std::size_t at = chunk.first + i;
    Trial trial = this->trial(chunk, i, plan);
    auto& coefs = chunk.coefs;
    auto give = [&](double own) {
        std::fill(coefs.begin(), coefs.end(), 0.0);
        coefs[plan.own] = own;
        if (task_ == Task::multiclass) coefs[plan.rival] = -own;
    };
    give(1.0);
    Projections::Fit fit;
    if (projections_) {
        if (needs_.norm) trial.norm2 = projections_->norm2();
        fit = projections_->fit(chunk.coordinates, i, coefs, plan.self);
        trial.residual = fit.residual;
        trial.projected2 = fit.projected2;
        trial.tolerance = projections_->tolerance();
    } else if (expansion_.tracks_norm()) {
        expansion_.repair_norm();
        trial.norm2 = needs_.tangent ? expansion_.inner(0, 0) : expansion_.norm2();
    }
    if (needs_.tangent) {
        trial.tangent = expansion_.score(1, chunk.row(i));
        trial.along = expansion_.inner(0, 1);
    }
    if (chunk.start)
        if (const auto found = chunk.slots.find(*chunk.start + static_cast<std::int64_t>(at)); found != chunk.slots.end()) {
            plan.present = found->second;
            trial.present = expansion_.coef(plan.present, plan.own);
        }

    plan.step = std::visit([&](auto& r) { return r(trial); }, plan.rule);
    const Step& step = plan.step;
    if (!std::isfinite(step.coefficient) || !std::isfinite(step.shrink) || !std::isfinite(step.intercept) ||
        !std::isfinite(step.tangent))
        fail(at, "the rule proposed a step that is not finite (learning diverged; a smaller rate may help):",
             step.coefficient);
    check_step(at, trial, step);
    give(step.coefficient);
    if (needs_.tangent) coefs[1] = step.tangent;
    if (step.coefficient == 0 && step.tangent == 0) return;
    if (projections_) {
        plan.fold = step.fold_only || fit.residual <= projections_->tolerance();
        if (!plan.fold) expansion_.reserve(expansion_.size() + 1);
        return;
    }
    if (plan.present != Points::npos) return;
    plan.entry = {};  // after clearing there is room
    const auto id = static_cast<std::int64_t>(chunk.start ? *chunk.start + static_cast<std::int64_t>(at) : mutables_.seen);
    const Newcomer newcomer{id, std::span(coefs).first(outputs()), step.shrink, chunk.row(i), plan.self, &chunk.victims};
    if (step.shrink != 0)
        plan.entry = std::visit([&](auto& b) { return b.choose(expansion_, newcomer, plan.random); }, plan.budget);
    if (plan.entry.kind == Entry::Kind::append) expansion_.reserve(expansion_.size() + 1);
    if (plan.entry.kind == Entry::Kind::replace) plan.victim_row = victim_row(chunk, plan.entry.slot);
}

void Learner::commit(Chunk& chunk, std::size_t i, Plan& plan) {
    if (average_ && task_ == Task::novelty) mutables_.margins += novelty_margin(rule_);  // it belongs to the hypothesis
    rule_ = std::move(plan.rule);
    budget_ = std::move(plan.budget);
    mutables_.random = plan.random;
    if (average_) {
        ++mutables_.ticks;
        projections_ ? projections_->tick() : expansion_.tick();
        for (std::size_t o = 0; o < outputs(); ++o) intercept_sum_[o] += intercept_[o];
    }
    projections_ ? commit_projected(chunk, i, plan) : commit_term(chunk, i, plan);
    intercept_[plan.own] += plan.step.intercept;
    if (task_ == Task::multiclass) intercept_[plan.rival] -= plan.step.intercept;
}

void Learner::commit_term(Chunk& chunk, std::size_t i, Plan& plan) {
    const Step& step = plan.step;
    const double* row = chunk.row(i);
    if (needs_.tangent) {
        // The shrinking below multiplies v too; what v keeps is measured against that.
        expansion_.combine(1, step.tangent_keep / step.shrink, 0, step.tangent_mix / step.shrink);
    }
    const std::size_t before = expansion_.size();
    expansion_.shrink(step.shrink * plan.entry.factor);
    if (expansion_.size() < before) chunk.cleared(i, before);
    for (double& c : chunk.coefs) c *= plan.entry.factor;
    const std::int64_t id = chunk.start ? *chunk.start + static_cast<std::int64_t>(chunk.first + i)
                                        : static_cast<std::int64_t>(mutables_.seen);
    if (plan.present != Points::npos) {
        if (step.coefficient != 0) {
            const std::size_t slot = plan.present, last = expansion_.size() - 1;
            expansion_.adjust(slot, chunk.coefs, row);
            if (expansion_.magnitude(slot) == 0) {
                expansion_.remove(slot, row);
                chunk.moved(i, last, slot);
                chunk.slots.erase(id);
                if (slot != last) chunk.slots[expansion_.points().id(slot)] = slot;
            }
        }
    } else if (plan.entry.kind != Entry::Kind::refuse) {
        std::size_t slot = expansion_.size();
        if (plan.entry.kind == Entry::Kind::replace) {
            slot = plan.entry.slot;
            expansion_.release(slot, plan.victim_row);
        }
        std::vector<double> scores;
        if (expansion_.tracks_norm())
            for (std::size_t o = 0; o < expansion_.outputs(); ++o) scores.push_back(expansion_.score(o, row));
        expansion_.add(slot, id, chunk.batch, chunk.first + i, chunk.coefs, scores, plan.self);
        chunk.stored(i, slot);
        if (chunk.start) chunk.slots[id] = slot;
    }
    if (std::isfinite(step.radius)) expansion_.stay_inside(step.radius);
}

void Learner::commit_projected(Chunk& chunk, std::size_t i, Plan& plan) {
    const Step& step = plan.step;
    if (step.shrink != 1) projections_->scale(step.shrink);
    if (step.coefficient != 0) {
        if (plan.fold) {
            projections_->fold(chunk.coordinates, i, chunk.coefs);
        } else {
            const std::size_t slot = expansion_.size();
            const std::vector<double> nothing(expansion_.outputs(), 0.0);
            expansion_.add(slot, static_cast<std::int64_t>(mutables_.seen), chunk.batch, chunk.first + i, nothing, nothing,
                           plan.self);
            chunk.stored(i, slot);
            projections_->add(chunk.coordinates, i, chunk.coefs, plan.self, slot, chunk.column.data());
        }
    }
    if (std::isfinite(step.radius)) projections_->stay_inside(step.radius);
    chunk.changed |= step.shrink != 1 || step.coefficient != 0 || average_;
}

void Learner::expire(Chunk& chunk, std::size_t i) {
    const auto* window = std::get_if<Window>(&budget_);
    if (!window) return;
    const std::int64_t horizon = window->horizon(static_cast<std::int64_t>(mutables_.seen));
    for (std::size_t slot = expansion_.points().oldest();
         slot != Points::npos && expansion_.points().id(slot) < horizon; slot = expansion_.points().oldest()) {
        const std::size_t last = expansion_.size() - 1;
        expansion_.remove(slot, victim_row(chunk, slot));
        chunk.moved(i, last, slot);
    }
}

void Learner::score(const Batch& batch, double* scores) const {
    const std::size_t rows = batch_count(batch);
    const auto ahead = expansion_.points().ahead(expansion_.kernel(), batch);
    const std::size_t stride = padded(expansion_.size());
    const std::size_t block = std::clamp<std::size_t>((8u << 20) / (8 * (stride + 1)), 16, 128);
    const double margin = this->margin();
    const bool mean = average_ && !projections_;
    Lines<double> values(std::min(rows, block) * stride);
    for (std::size_t first = 0; first < rows; first += block) {
        const std::size_t count = std::min(block, rows - first);
        ahead->load(first, count);
        ahead->rows(values.data(), stride);
        for (std::size_t r = 0; r < count; ++r) {
            const double* row = values.data() + r * stride;
            for (std::size_t o = 0; o < outputs(); ++o) {
                const double value = (mean ? expansion_.average_score(o, row) : expansion_.score(o, row)) +
                                     (average_ ? average_intercept(o) : intercept_[o]) - margin;
                if (!std::isfinite(value)) fail(first + r, "the score is not finite (kernel values too large):", value);
                scores[(first + r) * outputs() + o] = value;
            }
        }
    }
}

double Learner::average_intercept(std::size_t output) const {
    return mutables_.ticks == 0 ? 0.0 : intercept_sum_[output] / static_cast<double>(mutables_.ticks);
}

double Learner::margin() const {
    if (task_ != Task::novelty) return 0.0;
    return average_ && mutables_.ticks > 0 ? mutables_.margins / static_cast<double>(mutables_.ticks)
                                           : novelty_margin(rule_);
}

void Learner::add_class() {
    if (task_ == Task::binary) {
        task_ = Task::multiclass;
        expansion_.split_output(0.5);
        if (projections_) projections_->split_output(0.5);
        for (auto* b : {&intercept_, &intercept_sum_}) *b = {-0.5 * (*b)[0], 0.5 * (*b)[0]};
    }
    expansion_.add_output();
    if (projections_) projections_->add_output();
    intercept_.push_back(0);
    intercept_sum_.push_back(0);
}

std::vector<double> Learner::rule_state() const { return state_of(rule_); }

std::vector<double> Learner::budget_state() const { return state_of(budget_); }

void Learner::restore(const Mutables& mutables, std::span<const double> rule_state,
                      std::span<const double> budget_state, std::span<const double> intercept,
                      std::span<const double> intercept_sum) {
    if (intercept.size() != outputs() || intercept_sum.size() != outputs())
        throw std::invalid_argument("the saved state does not fit the number of outputs");
    Rule rule = with_state(rule_, rule_state);
    budget_ = with_state(budget_, budget_state);
    rule_ = std::move(rule);
    mutables_ = mutables;
    intercept_.assign(intercept.begin(), intercept.end());
    intercept_sum_.assign(intercept_sum.begin(), intercept_sum.end());
}

}  // namespace gristmill
