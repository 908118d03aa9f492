#include "core/linear.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace gristmill {

namespace {

[[noreturn]] void fail(std::size_t row, const char* what, double value) {
    char text[240];
    std::snprintf(text, sizeof text, "row %zu: %s %g", row, what, value);
    throw RowError(row, text);
}

template <class T>
void widen(const DenseRows<T>& rows, std::size_t i, Lines<double>& z) {
    z.resize(padded(rows.width));
    std::copy(rows.row(i), rows.row(i) + rows.width, z.begin());
}

}  // namespace

// ---- the weights --------------------------------------------------------------------------------------------------

Weights::Weights(std::size_t width, std::size_t outputs, bool track_norm, bool average)
    : width_(width), track_norm_(track_norm), average_(average) {
    values_.assign(outputs, Lines<double>(padded(width)));
    if (average) sum_ = values_;
}

double Weights::exact_norm2() const {
    double total = 0;
    for (const auto& w : values_) total += isa_score().dot(w.data(), w.data(), w.size());
    return total * scale_ * scale_;
}

double Weights::score(std::size_t output, const double* z) const {
    return scale_ * isa_score().dot(values_[output].data(), z, padded(width_));
}

double Weights::average_at(std::size_t output, std::size_t i) const {
    return ticks_ == 0 ? 0.0 : sum_[output][i] / static_cast<double>(ticks_);
}

double Weights::average_score(std::size_t output, const double* z) const {
    if (ticks_ == 0) return 0.0;
    return isa_score().dot(sum_[output].data(), z, padded(width_)) / static_cast<double>(ticks_);
}

void Weights::tick() {
    for (std::size_t o = 0; o < outputs(); ++o)
        isa_score().axpy(scale_, values_[o].data(), sum_[o].data(), padded(width_));
    ++ticks_;
}

void Weights::step(double factor, std::span<const double> coefs, const double* z, double radius) {
    const bool moves = std::any_of(coefs.begin(), coefs.end(), [](double c) { return c != 0; });
    if (factor == 1 && !moves && !std::isfinite(radius)) return;
    rescale(factor);
    if (moves)
        for (std::size_t o = 0; o < outputs(); ++o)
            if (coefs[o] != 0) isa_score().axpy(coefs[o] / scale_, z, values_[o].data(), padded(width_));
    if (!track_norm_) return;
    norm2_ = exact_norm2();
    if (norm2_ > radius * radius) {
        rescale(radius / std::sqrt(norm2_));
        norm2_ = exact_norm2();
    }
}

void Weights::rescale(double factor) {
    scale_ *= factor;
    // Far from 1 the scale would cost digits, and at 0 everything: it is multiplied in, unseen from outside.
    if (std::abs(scale_) > 1e-9 && std::abs(scale_) < 1e9) return;
    for (auto& w : values_) isa_score().scale(scale_, w.data(), w.size());
    scale_ = 1;
}

void Weights::add_output() {
    values_.emplace_back(padded(width_));
    if (average_) sum_.emplace_back(padded(width_));
}

void Weights::split_output(double factor) {
    for (auto* lines : {&values_, &sum_}) {
        if (lines->empty()) continue;
        auto negative = (*lines)[0];
        isa_score().scale(-factor, negative.data(), negative.size());
        isa_score().scale(factor, (*lines)[0].data(), (*lines)[0].size());
        lines->insert(lines->begin(), std::move(negative));
    }
    norm2_ = exact_norm2();
}

void Weights::restore(State state) {
    auto fits = [&](const std::vector<Lines<double>>& lines, std::size_t wanted) {
        return lines.size() == wanted &&
               std::all_of(lines.begin(), lines.end(), [&](const auto& l) { return l.size() == padded(width_); });
    };
    if (!fits(state.values, outputs()) || !fits(state.sum, sum_.size()) || state.scale == 0)
        throw std::invalid_argument("the saved weights do not fit the model");
    values_ = std::move(state.values);
    sum_ = std::move(state.sum);
    scale_ = state.scale;
    ticks_ = state.ticks;
    norm2_ = exact_norm2();  // the same bits as when it was saved: it was computed from the same weights
}

// ---- the loop -----------------------------------------------------------------------------------------------------

LinearLearner::LinearLearner(std::size_t width, Rule rule, Task task, std::size_t outputs, bool average)
    : weights_(width, outputs, needs_of(rule).norm, average), rule_(std::move(rule)), task_(task), scores_(outputs),
      coefs_(outputs) {
    if (needs_of(rule_).projection || needs_of(rule_).tangent)
        throw std::invalid_argument("the rule works on stored points, and explicit weights have none");
    counts_.intercept.resize(outputs);
    counts_.intercept_sum.resize(outputs);
}

template <class T>
void LinearLearner::learn(const DenseRows<T>& rows, std::span<const double> labels, std::span<const double> weights,
                          double* scores) {
    Lines<double> z;
    auto one = [&](std::size_t i) {
        widen(rows, i, z);
        event(i, z.data(), labels.empty() ? 1.0 : labels[i], weights.empty() ? 1.0 : weights[i],
              scores ? scores + i * outputs() : nullptr);
    };
    if (rows.count == 1) return one(0);  // an event by itself is planned, then committed: nothing to roll back
    const auto before = *this;
    try {
        for (std::size_t i = 0; i < rows.count; ++i) {
            one(i);
            if (poll && i % 64 == 63) poll();
        }
    } catch (...) {
        auto keep = std::move(poll);
        *this = before;
        poll = std::move(keep);
        throw;
    }
}

void LinearLearner::report(std::span<const double> scores, const double* z, double* out) const {
    for (std::size_t o = 0; o < outputs(); ++o)
        out[o] = weights_.averages() ? weights_.average_score(o, z) + average_intercept(o) : scores[o];
    out[0] -= margin();
}

void LinearLearner::event(std::size_t row, const double* z, double label, double weight, double* out) {
    for (std::size_t o = 0; o < outputs(); ++o) {
        scores_[o] = weights_.score(o, z) + counts_.intercept[o];
        if (!std::isfinite(scores_[o])) fail(row, "the score is not finite (features too large, or learning diverged):", scores_[o]);
    }
    if (out) report(scores_, z, out);
    if (weight == 0) {
        ++counts_.seen;
        return;
    }
    Trial trial{.score = scores_[0], .label = label, .self = isa_score().dot(z, z, padded(weights_.width())),
                .step = counts_.steps + 1, .weight = weight};
    if (!std::isfinite(trial.self)) fail(row, "the squared norm of the features is not finite:", trial.self);
    std::size_t own = 0, rival = 0;
    if (task_ == Task::multiclass) {  // raise the own class, lower the best rival
        own = static_cast<std::size_t>(label);
        rival = own == 0 ? 1 : 0;
        for (std::size_t o = rival + 1; o < outputs(); ++o)
            if (o != own && scores_[o] > scores_[rival]) rival = o;
        trial.score = scores_[own] - scores_[rival];
        trial.label = 1;
        trial.self *= 2;
    }
    if (weights_.tracks_norm()) trial.norm2 = weights_.norm2();
    Rule rule = rule_;  // kept only when the whole event is
    const Step step = std::visit([&](auto& r) { return r(trial); }, rule);
    if (!std::isfinite(step.coefficient) || !std::isfinite(step.shrink) || !std::isfinite(step.intercept))
        fail(row, "the rule proposed a step that is not finite (learning diverged; a smaller rate may help):", step.coefficient);

    // Nothing from here on can fail.
    if (weights_.averages()) {
        weights_.tick();
        if (task_ == Task::novelty) counts_.margins += novelty_margin(rule_);  // it belongs to the hypothesis
        for (std::size_t o = 0; o < outputs(); ++o) counts_.intercept_sum[o] += counts_.intercept[o];
    }
    rule_ = std::move(rule);
    std::fill(coefs_.begin(), coefs_.end(), 0.0);
    coefs_[own] = step.coefficient;
    counts_.intercept[own] += step.intercept;
    if (task_ == Task::multiclass) {
        coefs_[rival] = -step.coefficient;
        counts_.intercept[rival] -= step.intercept;
    }
    weights_.step(step.shrink, coefs_, z, step.radius);
    ++counts_.seen;
    ++counts_.steps;
}

template <class T>
void LinearLearner::score(const DenseRows<T>& rows, double* scores) const {
    Lines<double> z;
    std::vector<double> now(outputs());
    for (std::size_t i = 0; i < rows.count; ++i) {
        widen(rows, i, z);
        for (std::size_t o = 0; o < outputs(); ++o) {
            now[o] = weights_.score(o, z.data()) + counts_.intercept[o];
            if (!std::isfinite(now[o])) fail(i, "the score is not finite (features too large):", now[o]);
        }
        report(now, z.data(), scores + i * outputs());
    }
}

void LinearLearner::add_class() {
    if (task_ == Task::binary) {
        task_ = Task::multiclass;
        weights_.split_output(0.5);
        for (auto* b : {&counts_.intercept, &counts_.intercept_sum}) *b = {-0.5 * (*b)[0], 0.5 * (*b)[0]};
    }
    weights_.add_output();
    counts_.intercept.push_back(0);
    counts_.intercept_sum.push_back(0);
    scores_.resize(outputs());
    coefs_.resize(outputs());
}

double LinearLearner::margin() const {
    if (task_ != Task::novelty) return 0.0;
    const auto ticks = weights_.ticks();
    return weights_.averages() && ticks > 0 ? counts_.margins / static_cast<double>(ticks) : novelty_margin(rule_);
}

double LinearLearner::average_intercept(std::size_t output) const {
    const auto ticks = weights_.ticks();
    return ticks == 0 ? 0.0 : counts_.intercept_sum[output] / static_cast<double>(ticks);
}

std::vector<double> LinearLearner::rule_state() const {
    std::vector<double> state;
    Rule rule = rule_;
    std::visit([&](auto& r) { r.state([&](double& x) { state.push_back(x); }); }, rule);
    return state;
}

void LinearLearner::restore(Counts counts, std::span<const double> rule_state, Weights::State weights) {
    std::size_t used = 0, wanted = 0;
    Rule rule = rule_;
    std::visit([&](auto& r) {
        r.state([&](double& x) {
            ++wanted;
            if (used < rule_state.size()) x = rule_state[used++];
        });
    }, rule);
    if (wanted != rule_state.size() || counts.intercept.size() != outputs() || counts.intercept_sum.size() != outputs())
        throw std::invalid_argument("the saved state does not fit the rule or the number of outputs");
    weights_.restore(std::move(weights));
    rule_ = std::move(rule);
    counts_ = std::move(counts);
}

template void LinearLearner::learn(const DenseRows<double>&, std::span<const double>, std::span<const double>, double*);
template void LinearLearner::learn(const DenseRows<float>&, std::span<const double>, std::span<const double>, double*);
template void LinearLearner::score(const DenseRows<double>&, double*) const;
template void LinearLearner::score(const DenseRows<float>&, double*) const;

}  // namespace gristmill
