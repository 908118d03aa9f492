#include "core/learner.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace gristmill {

namespace {

[[noreturn]] void fail(std::size_t row, const char* what, double value) {
    char text[240];
    std::snprintf(text, sizeof text, "%s %g", what, value);
    throw RowError(row, text);
}

std::size_t limit_of(const Budget& budget) {
    return std::visit([](const auto& b) { return b.limit(); }, budget);
}

}  // namespace

// The look-ahead over one chunk: kernel values of the next rows against every slot.
struct Learner::Chunk {
    const Batch& batch;
    std::span<const double> labels, weights;
    double* out;
    std::unique_ptr<Ahead> ahead;
    std::size_t first = 0, count = 0, stride = 0;  // the rows now in `values`
    Lines<double> values, column, victim;
    std::vector<double> scores, coefs;

    double* row(std::size_t i) { return values.data() + i * stride; }

    void load(const Expansion& f, std::size_t from, std::size_t rows, std::size_t slots) {
        first = from;
        count = rows;
        stride = padded(slots);
        ahead->load(from, rows);
        if (values.size() < rows * stride) values.resize(rows * stride);
        // Slots that will be filled on the way are read before they are, with coefficient 0: they must be finite.
        const std::size_t known = padded(f.size());
        for (std::size_t r = 0; r < rows; ++r) std::fill(row(r) + known, row(r) + stride, 0.0);
        ahead->rows(values.data(), stride);
    }
    // Row i has gone into a slot: the rows still to come see it there.
    void stored(std::size_t i, std::size_t slot) {
        if (i + 1 >= count) return;
        column.resize(padded(count));
        ahead->among(i, column.data());
        for (std::size_t r = i + 1; r < count; ++r) row(r)[slot] = column[r];
    }
    // The last slot has moved into a removed one; what it leaves behind may be infinite, and 0 * infinity is no score.
    void moved(std::size_t i, std::size_t from, std::size_t to) {
        for (std::size_t r = i + 1; r < count; ++r) {
            row(r)[to] = row(r)[from];
            row(r)[from] = 0;
        }
    }
    void cleared(std::size_t i, std::size_t slots) {
        for (std::size_t r = i + 1; r < count; ++r) std::fill(row(r), row(r) + slots, 0.0);
    }
};

Learner::Learner(Kernel kernel, std::unique_ptr<Points> points, Rule rule, Budget budget, Task task,
                 std::size_t outputs, bool average, std::uint64_t seed)
    : expansion_(std::move(kernel), std::move(points), outputs, needs_norm(rule), average),
      rule_(std::move(rule)), budget_(std::move(budget)), task_(task), intercept_(outputs), intercept_sum_(outputs) {
    mutables_.random.seed = seed;
    expansion_.set_limit(limit_of(budget_));
}

std::size_t Learner::window(std::size_t left) const {
    // Long enough for a matrix product's efficiency, short enough that rows against rows cost little beside rows
    // against the stored points. The result does not depend on it.
    const std::size_t wanted = std::clamp<std::size_t>(expansion_.size() / 6 / 4 * 4, 16, 128);
    return std::min(left, wanted);
}

void Learner::learn(const Batch& batch, std::span<const double> labels, std::span<const double> weights,
                    double* scores) {
    Chunk chunk{batch, labels, weights, scores, expansion_.points().ahead(expansion_.kernel(), batch), 0, 0, 0, {}, {}, {},
                std::vector<double>(outputs()), std::vector<double>(outputs())};
    // An event by itself is planned, then committed: nothing to roll back, unless it runs foreign code or repairs the norm.
    if (batch_count(batch) == 1 && !expansion_.points().may_fail() && !expansion_.tracks_norm()) {
        chunk.load(expansion_, 0, 1, expansion_.size() + 1);
        return event(chunk, 0);
    }
    const auto rule = rule_;
    const auto mutables = mutables_;
    const auto intercept = intercept_, intercept_sum = intercept_sum_;
    expansion_.begin();
    try {
        learn_rows(chunk);
    } catch (...) {
        expansion_.rollback();
        rule_ = rule;
        mutables_ = mutables;
        intercept_ = intercept;
        intercept_sum_ = intercept_sum;
        throw;
    }
    expansion_.commit();
}

void Learner::learn_rows(Chunk& chunk) {
    const std::size_t rows = batch_count(chunk.batch);
    for (std::size_t first = 0; first < rows;) {
        const std::size_t count = window(rows - first);
        const std::size_t slots = std::min(expansion_.size() + count, std::max(limit_of(budget_), expansion_.size()));
        // A window budget holds one point more for the moment between adding and forgetting.
        chunk.load(expansion_, first, count, slots + 1);
        for (std::size_t i = 0; i < count; ++i) event(chunk, i);
        first += count;
        if (poll) poll();
    }
}

void Learner::report(std::span<const double> scores, const double* row, double* out) const {
    for (std::size_t o = 0; o < outputs(); ++o)
        out[o] = expansion_.averages() ? expansion_.average_score(o, row) + average_intercept(o) : scores[o];
    if (task_ == Task::novelty) out[0] -= novelty_margin(rule_);
}

void Learner::event(Chunk& chunk, std::size_t i) {
    const std::size_t at = chunk.first + i;
    const double* row = chunk.row(i);
    const double weight = chunk.weights.empty() ? 1.0 : chunk.weights[at];
    auto& scores = chunk.scores;
    for (std::size_t o = 0; o < outputs(); ++o) {
        scores[o] = expansion_.score(o, row) + intercept_[o];
        if (!std::isfinite(scores[o])) fail(at, "the score is not finite (kernel values too large, or learning diverged):", scores[o]);
    }
    if (chunk.out) report(scores, row, chunk.out + at * outputs());
    if (weight == 0) {
        ++mutables_.seen;
        return expire(chunk, i);
    }

    const double label = chunk.labels.empty() ? 1.0 : chunk.labels[at];
    Trial trial{.score = scores[0], .label = label, .self = chunk.ahead->self(i), .step = mutables_.steps + 1,
                .weight = weight};
    std::size_t own = 0, rival = 0;
    if (task_ == Task::multiclass) {
        own = static_cast<std::size_t>(label);
        rival = own == 0 ? 1 : 0;
        for (std::size_t o = rival + 1; o < outputs(); ++o)
            if (o != own && scores[o] > scores[rival]) rival = o;
        trial.score = scores[own] - scores[rival];
        trial.label = 1;
        trial.self *= 2;
    }
    if (expansion_.tracks_norm()) {
        expansion_.repair_norm();
        trial.norm2 = expansion_.norm2();
    }
    Rule rule = rule_;  // committed only when the whole event is
    const Step step = std::visit([&](auto& r) { return r(trial); }, rule);
    if (!std::isfinite(step.coefficient) || !std::isfinite(step.shrink) || !std::isfinite(step.intercept))
        fail(at, "the rule proposed a step that is not finite (learning diverged; a smaller rate may help):", step.coefficient);
    if (!(step.radius >= 0)) fail(at, "the rule proposed a radius that is not a number >= 0:", step.radius);
    if (std::isfinite(step.radius) && !expansion_.tracks_norm())
        fail(at, "a rule that proposes a radius must say needs_norm = True, got the radius", step.radius);
    const double c = step.coefficient;
    const double grown = trial.norm2 * step.shrink * step.shrink + std::abs(2 * c * trial.score) + c * c * std::abs(trial.self);
    if (!expansion_.has_room_for(c, step.shrink) || (expansion_.tracks_norm() && !std::isfinite(grown)))
        fail(at, "the coefficients would overflow (learning diverged; a smaller rate may help):", step.coefficient);

    std::fill(chunk.coefs.begin(), chunk.coefs.end(), 0.0);
    chunk.coefs[own] = step.coefficient;
    if (task_ == Task::multiclass) chunk.coefs[rival] = -step.coefficient;
    Entry entry{Entry::Kind::refuse};
    Random random = mutables_.random;
    if (step.coefficient != 0) {
        const Newcomer newcomer{static_cast<std::int64_t>(mutables_.seen), chunk.coefs, step.shrink};
        if (step.shrink != 0)
            entry = std::visit([&](auto& b) { return b.choose(expansion_, newcomer, random); }, budget_);
        else
            entry = {};  // everything leaves: there is room
        if (entry.kind == Entry::Kind::append) expansion_.reserve(expansion_.size() + 1);
    }
    const double* victim_row = nullptr;
    if (expansion_.tracks_norm() && entry.kind == Entry::Kind::replace) {
        chunk.victim.resize(padded(expansion_.size()));
        expansion_.points().stored_row(expansion_.kernel(), entry.slot, chunk.victim.data());
        victim_row = chunk.victim.data();
    }

    // Nothing from here on can fail.
    mutables_.random = random;
    rule_ = std::move(rule);
    if (expansion_.averages()) {
        expansion_.tick();
        for (std::size_t o = 0; o < outputs(); ++o) intercept_sum_[o] += intercept_[o];
    }
    commit(chunk, i, step, entry, victim_row);
    intercept_[own] += step.intercept;
    if (task_ == Task::multiclass) intercept_[rival] -= step.intercept;
    ++mutables_.seen;
    ++mutables_.steps;
    expire(chunk, i);
}

void Learner::commit(Chunk& chunk, std::size_t i, const Step& step, const Entry& entry, const double* victim_row) {
    const double* row = chunk.row(i);
    const std::size_t before = expansion_.size();
    expansion_.shrink(step.shrink);
    if (expansion_.size() < before) chunk.cleared(i, before);
    if (entry.kind != Entry::Kind::refuse) {
        std::size_t slot = expansion_.size();
        if (entry.kind == Entry::Kind::replace) {
            slot = entry.slot;
            expansion_.release(slot, victim_row);
        }
        if (expansion_.tracks_norm())
            for (std::size_t o = 0; o < outputs(); ++o) chunk.scores[o] = expansion_.score(o, row);
        const auto id = static_cast<std::int64_t>(mutables_.seen);
        expansion_.add(slot, id, chunk.batch, chunk.first + i, chunk.coefs, chunk.scores, chunk.ahead->self(i));
        chunk.stored(i, slot);
    }
    if (std::isfinite(step.radius) && expansion_.tracks_norm()) expansion_.stay_inside(step.radius);
}

void Learner::expire(Chunk& chunk, std::size_t i) {
    const auto* window = std::get_if<Window>(&budget_);
    if (!window) return;
    const std::int64_t horizon = window->horizon(static_cast<std::int64_t>(mutables_.seen));
    for (std::size_t slot = expansion_.points().oldest();
         slot != Points::npos && expansion_.points().id(slot) < horizon; slot = expansion_.points().oldest()) {
        const double* row = nullptr;
        if (expansion_.tracks_norm()) {
            chunk.victim.resize(padded(expansion_.size()));
            expansion_.points().stored_row(expansion_.kernel(), slot, chunk.victim.data());
            row = chunk.victim.data();
        }
        const std::size_t last = expansion_.size() - 1;
        expansion_.remove(slot, row);
        chunk.moved(i, last, slot);
    }
}

void Learner::score(const Batch& batch, double* scores) const {
    const std::size_t rows = batch_count(batch);
    const auto ahead = expansion_.points().ahead(expansion_.kernel(), batch);
    const std::size_t stride = padded(expansion_.size());
    const std::size_t block = std::clamp<std::size_t>((8u << 20) / (8 * (stride + 1)), 16, 128);
    Lines<double> values(std::min(rows, block) * stride);
    std::vector<double> now(outputs());
    for (std::size_t first = 0; first < rows; first += block) {
        const std::size_t count = std::min(block, rows - first);
        ahead->load(first, count);
        ahead->rows(values.data(), stride);
        for (std::size_t r = 0; r < count; ++r) {
            const double* row = values.data() + r * stride;
            for (std::size_t o = 0; o < outputs(); ++o) {
                now[o] = expansion_.score(o, row) + intercept_[o];
                if (!std::isfinite(now[o])) fail(first + r, "the score is not finite (kernel values too large):", now[o]);
            }
            report(now, row, scores + (first + r) * outputs());
        }
    }
}

double Learner::average_intercept(std::size_t output) const {
    const auto ticks = expansion_.ticks();
    return ticks == 0 ? 0.0 : intercept_sum_[output] / static_cast<double>(ticks);
}

void Learner::add_class() {
    if (task_ == Task::binary) {
        task_ = Task::multiclass;
        expansion_.split_output(0.5);
        for (auto* b : {&intercept_, &intercept_sum_}) *b = {-0.5 * (*b)[0], 0.5 * (*b)[0]};
    }
    expansion_.add_output();
    intercept_.push_back(0);
    intercept_sum_.push_back(0);
}

std::vector<double> Learner::rule_state() const {
    std::vector<double> state;
    Rule rule = rule_;
    std::visit([&](auto& r) { r.state([&](double& x) { state.push_back(x); }); }, rule);
    return state;
}

void Learner::restore(const Mutables& mutables, std::span<const double> rule_state, std::span<const double> intercept,
                      std::span<const double> intercept_sum) {
    std::size_t used = 0, wanted = 0;
    Rule rule = rule_;
    std::visit([&](auto& r) {
        r.state([&](double& x) {
            ++wanted;
            if (used < rule_state.size()) x = rule_state[used++];
        });
    }, rule);
    if (wanted != rule_state.size() || intercept.size() != outputs() || intercept_sum.size() != outputs())
        throw std::invalid_argument("the saved state does not fit the rule or the number of outputs");
    rule_ = std::move(rule);
    mutables_ = mutables;
    intercept_.assign(intercept.begin(), intercept.end());
    intercept_sum_.assign(intercept_sum.begin(), intercept_sum.end());
}

}  // namespace gristmill
