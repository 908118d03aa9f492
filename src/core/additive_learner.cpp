#include "core/additive_learner.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace gristmill {

namespace {

constexpr double kRounding = 4e-16;  // a unit in the last place or two of each term that went in or out

[[noreturn]] void fail(std::size_t row, const char* what, double value) {
    char text[240];
    std::snprintf(text, sizeof text, "%s %g", what, value);
    throw RowError(row, text);
}

// One row as dense doubles, whatever it came as.
const double* dense_row(const Batch& batch, std::size_t i, std::vector<double>& buffer) {
    if (const auto* rows = std::get_if<DenseRows<double>>(&batch)) return rows->row(i);
    if (const auto* rows = std::get_if<DenseRows<float>>(&batch)) {
        std::copy(rows->row(i), rows->row(i) + rows->width, buffer.begin());
        return buffer.data();
    }
    auto scatter = [&](const auto& rows) {
        std::fill(buffer.begin(), buffer.end(), 0.0);
        for (std::size_t k = 0; k < rows.nonzeros(i); ++k)
            buffer[static_cast<std::size_t>(rows.columns(i)[k])] = static_cast<double>(rows.values(i)[k]);
    };
    if (const auto* rows = std::get_if<SparseRows<double>>(&batch)) scatter(*rows);
    else if (const auto* rows = std::get_if<SparseRows<float>>(&batch)) scatter(*rows);
    else throw std::invalid_argument("an additive kernel compares rows of numbers");
    return buffer.data();
}

std::size_t limit_of(const Budget& budget) {
    return std::visit([](const auto& b) { return b.limit(); }, budget);
}

std::string described(const Coordinate& coordinate) {
    std::string text = "column " + std::to_string(coordinate.column);
    if (coordinate.other != Coordinate::kNone)
        text = "the product of " + text + " and column " + std::to_string(coordinate.other);
    return text;
}

}  // namespace

struct AdditiveLearner::Scratch {
    std::vector<double> row, keys, scores, coefs;
    const double* input = nullptr;
    double self = 0;

    explicit Scratch(const AdditiveLearner& learner)
        : row(learner.width()), keys(learner.sum_.coordinates().size()), scores(learner.outputs()),
          coefs(learner.outputs()) {}
    void load(const AdditiveLearner& learner, const Batch& batch, std::size_t at) {
        input = dense_row(batch, at, row);
        learner.sum_.keys(input, keys.data());
    }
};

AdditiveLearner::AdditiveLearner(std::vector<Coordinate> coordinates, std::size_t width, bool single, bool skip_missing,
                                 Rule rule, Budget budget, Task task, std::size_t outputs, std::uint64_t seed)
    : sum_(std::move(coordinates), outputs),
      terms_(width, outputs, single, std::holds_alternative<DropSmallest>(budget)),
      skip_missing_(skip_missing), rule_(std::move(rule)), budget_(std::move(budget)), task_(task),
      track_norm_(needs_of(rule_).norm), intercept_(outputs), row_(width), keys_(sum_.coordinates().size()) {
    const bool known = std::holds_alternative<Unbounded>(budget_) || std::holds_alternative<Window>(budget_) ||
                       std::holds_alternative<DropOldest>(budget_) || std::holds_alternative<DropSmallest>(budget_) ||
                       std::holds_alternative<DropRandom>(budget_);
    if (!known)
        throw std::invalid_argument("the trees of an additive kernel work with the budgets Unbounded, Window, DropOldest, "
                                    "DropSmallest and DropRandom");
    if (needs_of(rule_).projection || needs_of(rule_).tangent || std::holds_alternative<Adatron>(rule_))
        throw std::invalid_argument("the trees of an additive kernel take one term at a time, and this rule changes old ones");
    mutables_.random.seed = seed;
}

void AdditiveLearner::check(const Batch& batch) const {
    Scratch scratch(*this);
    char text[400];
    for (std::size_t i = 0; i < batch_count(batch); ++i) {
        scratch.load(*this, batch, i);
        for (std::size_t j = 0; j < width(); ++j) {
            const double x = scratch.input[j];
            if (std::isfinite(x) || (skip_missing_ && std::isnan(x))) continue;
            std::snprintf(text, sizeof text, "Input X contains %s: row %zu, column %zu is %g; %s",
                          std::isnan(x) ? "NaN" : "infinity", i, j, x,
                          std::isnan(x) ? "impute it, or let it contribute nothing with Additive(..., missing=\"skip\")"
                                        : "drop or clip such rows first");
            throw RowError(i, text);
        }
        for (std::size_t c = 0; c < scratch.keys.size(); ++c) {
            const double key = scratch.keys[c];
            const char* why = std::isinf(key) ? "is not finite" : sum_.refusal(c, key);
            if (!why) continue;
            // "Negative values in data" are the words that scikit-learn's users, and its checks, look for.
            std::snprintf(text, sizeof text, "%srow %zu: %s is %g, which %s",
                          key < 0 && std::isfinite(key) ? "Negative values in data: " : "", i,
                          described(sum_.coordinates()[c]).c_str(), key, why);
            throw RowError(i, text);
        }
    }
}

void AdditiveLearner::learn(const Batch& batch, std::span<const double> labels, std::span<const double> weights,
                            double* scores) {
    const std::size_t rows = batch_count(batch);
    Scratch scratch(*this);
    auto learn_row = [&](std::size_t i) {
        event(scratch, batch, i, labels.empty() ? 1.0 : labels[i], weights.empty() ? 1.0 : weights[i],
              scores ? scores + i * outputs() : nullptr);
    };
    if (rows == 1) return learn_row(0);  // an event by itself is planned, then committed: nothing to roll back
    const auto rule = rule_;
    const auto mutables = mutables_;
    const auto intercept = intercept_;
    const double numbers[] = {scale_, norm2_, doubt_, floor_};
    const bool long_chunk = 2 * rows > terms_.size();
    sum_.begin(long_chunk);
    terms_.begin(long_chunk);
    try {
        for (std::size_t i = 0; i < rows; ++i) {
            learn_row(i);
            if (poll && i % 256 == 255) poll();
        }
    } catch (...) {
        sum_.rollback();
        terms_.rollback();
        rule_ = rule;
        mutables_ = mutables;
        intercept_ = intercept;
        scale_ = numbers[0], norm2_ = numbers[1], doubt_ = numbers[2], floor_ = numbers[3];
        throw;
    }
    sum_.commit();
    terms_.commit();
}

// What is decided about an event before anything changes.
struct AdditiveLearner::Plan {
    Rule rule;
    Random random;
    Step step{};
    Entry entry{Entry::Kind::refuse};
    std::size_t own = 0, rival = 0;
};

void AdditiveLearner::event(Scratch& s, const Batch& batch, std::size_t at, double label, double weight, double* out) {
    s.load(*this, batch, at);
    for (std::size_t o = 0; o < outputs(); ++o) {
        s.scores[o] = scale_ * sum_.score(o, s.keys.data()) + intercept_[o];
        if (!std::isfinite(s.scores[o]))
            fail(at, "the score is not finite (kernel values too large, or learning diverged):", s.scores[o]);
        if (out) out[o] = s.scores[o] - (task_ == Task::novelty ? novelty_margin(rule_) : 0.0);
    }
    if (weight != 0) {
        Plan plan{rule_, mutables_.random};
        decide(s, at, label, weight, plan);
        commit(s, plan);  // nothing from here on can fail
        ++mutables_.steps;
    }
    ++mutables_.seen;
    expire();
}

void AdditiveLearner::decide(Scratch& s, std::size_t at, double label, double weight, Plan& plan) {
    s.self = sum_.self(s.keys.data());
    Trial trial{.score = s.scores[0], .label = label, .self = s.self, .step = mutables_.steps + 1, .weight = weight};
    const bool multiclass = task_ == Task::multiclass;
    if (multiclass) {
        plan.own = static_cast<std::size_t>(label);
        plan.rival = plan.own == 0 ? 1 : 0;
        for (std::size_t o = plan.rival + 1; o < outputs(); ++o)
            if (o != plan.own && s.scores[o] > s.scores[plan.rival]) plan.rival = o;
        trial.score = s.scores[plan.own] - s.scores[plan.rival];
        trial.label = 1;
        trial.self *= 2;
    }
    if (track_norm_) {
        repair_norm();
        trial.norm2 = norm2_;
    }
    const Step step = plan.step = std::visit([&](auto& r) { return r(trial); }, plan.rule);
    if (!std::isfinite(step.coefficient) || !std::isfinite(step.shrink) || !std::isfinite(step.intercept))
        fail(at, "the rule proposed a step that is not finite (learning diverged; a smaller rate may help):", step.coefficient);
    if (step.coefficient == 0) return;
    std::fill(s.coefs.begin(), s.coefs.end(), 0.0);
    s.coefs[plan.own] = step.coefficient;
    if (multiclass) s.coefs[plan.rival] = -step.coefficient;
    plan.entry = step.shrink != 0 ? choose(s.coefs, step.shrink, plan.random) : Entry{};  // after clearing there is room
    const std::size_t touched[] = {plan.own, plan.rival};
    make_room({touched, multiclass ? 2u : 1u}, plan.entry.kind == Entry::Kind::append ? 1 : 0);
}

void AdditiveLearner::make_room(std::span<const std::size_t> outputs, std::size_t more) {
    sum_.reserve_event(outputs);
    terms_.reserve(terms_.size() + more);
    const std::size_t limit = limit_of(budget_);
    if (filled_ || terms_.size() + 1 < limit) return;
    // From here on memory stays as it is: half-full nodes, a window's extra term, an event's needs are all in it.
    sum_.reserve_terms(limit + 1);
    terms_.reserve(limit + 1);
    filled_ = true;
}

void AdditiveLearner::commit(Scratch& s, Plan& plan) {
    rule_ = std::move(plan.rule);
    mutables_.random = plan.random;
    shrink(plan.step.shrink);
    if (plan.entry.kind == Entry::Kind::replace) remove(plan.entry.slot);
    if (plan.entry.kind != Entry::Kind::refuse) add(s, s.coefs);
    if (std::isfinite(plan.step.radius) && track_norm_) stay_inside(plan.step.radius);
    intercept_[plan.own] += plan.step.intercept;
    if (task_ == Task::multiclass) intercept_[plan.rival] -= plan.step.intercept;
}

// The budgets of budgets.hpp over terms instead of an expansion; the smallest term comes from a heap.
Entry AdditiveLearner::choose(std::span<const double> coefs, double shrink, Random& random) const {
    const std::size_t limit = limit_of(budget_);
    if (std::holds_alternative<Window>(budget_) || terms_.size() < limit) return {};
    if (std::holds_alternative<DropRandom>(budget_)) return Entry::into(random.below(terms_.size()));
    if (std::holds_alternative<DropOldest>(budget_)) return Entry::into(terms_.oldest());
    const std::size_t victim = terms_.smallest();
    const double least = std::abs(scale_) * terms_.magnitude(victim);
    const Newcomer newcomer{static_cast<std::int64_t>(mutables_.seen), coefs, shrink, nullptr, 0};
    if (newcomer.magnitude() < least * std::abs(shrink)) return {Entry::Kind::refuse};
    return Entry::into(victim);
}

void AdditiveLearner::shrink(double factor) {
    if (factor == 1) return;
    if (factor == 0) {
        sum_.clear();
        terms_.clear();
        scale_ = 1;
        norm2_ = doubt_ = floor_ = 0;
        return;
    }
    scale_ *= factor;
    norm2_ *= factor * factor, doubt_ *= factor * factor, floor_ *= factor * factor;
    const double size = std::abs(scale_);
    if (size > 1e-100 && size < 1e100) return;
    // By a power of two, which rounds nothing: trees, terms and heap go on describing the same numbers.
    int exponent = 0;
    scale_ = std::frexp(scale_, &exponent);
    const double power = std::ldexp(1.0, exponent);
    sum_.rescale(power);
    terms_.rescale(power);
}

void AdditiveLearner::add(Scratch& s, std::span<const double> coefs) {
    if (track_norm_) {
        for (std::size_t o = 0; o < outputs(); ++o) {
            if (coefs[o] == 0) continue;
            const double c = coefs[o], value = scale_ * sum_.score(o, s.keys.data());
            norm2_ += 2 * c * value + c * c * s.self;
            doubt_ += kRounding * (std::abs(2 * c * value) + c * c * std::abs(s.self));
        }
        norm2_ = std::max(norm2_, 0.0);
    }
    for (std::size_t o = 0; o < outputs(); ++o) {
        s.scores[o] = coefs[o] / scale_;
        if (s.scores[o] != 0) sum_.add(o, s.keys.data(), s.scores[o]);
    }
    terms_.append(static_cast<std::int64_t>(mutables_.seen), s.input, s.scores);
}

void AdditiveLearner::remove(std::size_t slot) {
    terms_.row(slot, row_.data());
    sum_.keys(row_.data(), keys_.data());
    const double self = track_norm_ ? sum_.self(keys_.data()) : 0.0;
    for (std::size_t o = 0; o < outputs(); ++o) {
        const double stored = terms_.coefs(slot)[o], c = scale_ * stored;
        if (stored == 0) continue;
        if (track_norm_) {
            const double value = scale_ * sum_.score(o, keys_.data());
            norm2_ += c * c * self - 2 * c * value;
            doubt_ += kRounding * (c * c * std::abs(self) + std::abs(2 * c * value));
        }
        sum_.remove(o, keys_.data(), stored);
    }
    norm2_ = std::max(norm2_, 0.0);
    terms_.remove(slot);
}

void AdditiveLearner::stay_inside(double radius) {
    const double square = radius * radius;
    if (!(norm2_ > square)) return;
    shrink(radius / std::sqrt(norm2_));
    norm2_ = square;
}

void AdditiveLearner::expire() {
    const auto* window = std::get_if<Window>(&budget_);
    if (!window) return;
    const std::int64_t horizon = window->horizon(static_cast<std::int64_t>(mutables_.seen));
    while (terms_.size() > 0 && terms_.id(terms_.oldest()) < horizon) remove(terms_.oldest());
}

// ---- the norm -----------------------------------------------------------------------------------------------------

double AdditiveLearner::exact_norm2(double* absolute) const {
    std::vector<double> row(width()), keys(keys_.size());
    double total = 0;
    for (std::size_t slot = 0; slot < terms_.size(); ++slot) {
        terms_.row(slot, row.data());
        sum_.keys(row.data(), keys.data());
        for (std::size_t o = 0; o < outputs(); ++o) {
            if (terms_.coefs(slot)[o] == 0) continue;
            const double term = coef(slot, o) * scale_ * sum_.score(o, keys.data());
            total += term;
            if (absolute) *absolute += std::abs(term);
        }
    }
    return total;
}

double AdditiveLearner::norm2() const { return track_norm_ ? norm2_ : exact_norm2(nullptr); }

void AdditiveLearner::repair_norm() {
    if (!(doubt_ > std::max(1e-10 * norm2_, 1e3 * floor_))) return;
    double absolute = 0;
    norm2_ = std::max(exact_norm2(&absolute), 0.0);
    doubt_ = floor_ = kRounding * absolute;
}

// ---- scores -------------------------------------------------------------------------------------------------------

void AdditiveLearner::score(const Batch& batch, double* scores) const {
    const std::size_t rows = batch_count(batch), coordinates = keys_.size(), block = 4096;
    const double margin = task_ == Task::novelty ? novelty_margin(rule_) : 0.0;
    Scratch scratch(*this);
    std::vector<double> keys(std::min(rows, block) * coordinates), out(std::min(rows, block));
    for (std::size_t first = 0; first < rows; first += block) {
        const std::size_t count = std::min(block, rows - first);
        for (std::size_t r = 0; r < count; ++r)
            sum_.keys(dense_row(batch, first + r, scratch.row), keys.data() + r * coordinates);
        for (std::size_t o = 0; o < outputs(); ++o) {
            if (sum_.compiled())
                sum_.serve(o, keys.data(), count, out.data());
            else
                for (std::size_t r = 0; r < count; ++r) out[r] = sum_.score(o, keys.data() + r * coordinates);
            for (std::size_t r = 0; r < count; ++r) {
                const double score = scale_ * out[r] + intercept_[o];
                if (!std::isfinite(score)) fail(first + r, "the score is not finite (kernel values too large):", score);
                scores[(first + r) * outputs() + o] = score - margin;
            }
        }
    }
}

void AdditiveLearner::components(const Batch& batch, double* out) const {
    Scratch scratch(*this);
    const std::size_t coordinates = keys_.size();
    for (std::size_t i = 0; i < batch_count(batch); ++i) {
        scratch.load(*this, batch, i);
        for (std::size_t o = 0; o < outputs(); ++o, out += coordinates) {
            sum_.parts(o, scratch.keys.data(), out);
            for (std::size_t c = 0; c < coordinates; ++c) out[c] *= scale_;
        }
    }
}

}  // namespace gristmill
