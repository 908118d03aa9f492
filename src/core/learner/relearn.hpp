// Relearning: new column factors are applied to the stored points, which are then learned again from their labels.
#pragma once

#include "core/learner/learner.hpp"

namespace gristmill {

// The stored points as events, oldest first, with their kernel values, for several passes.
template <Hypothesis H>
struct Learner<H>::Replay {
    explicit Replay(const H& hypothesis) : chunk{batch, {}, {}, nullptr, hypothesis.make_stored_lookahead()} {
        for (std::size_t slot = hypothesis.oldest(); slot != kNoLimit; slot = hypothesis.newer(slot)) {
            for (std::size_t t = 0; t < hypothesis.targets(); ++t) labels.push_back(hypothesis.label(slot, t));
            weights.push_back(std::isnan(labels.back()) ? 0.0 : 1.0);
        }
        chunk.labels = labels;
        chunk.weights = weights;
        chunk.start = 0;
    }
    // f at each point, all outputs of a point together.
    std::vector<double> scores(const H& hypothesis) {
        std::vector<double> scores;
        for (std::size_t i = 0; i < weights.size(); ++i)
            for (std::size_t o = 0; o < hypothesis.outputs(); ++o)
                scores.push_back(hypothesis.score(chunk.lookahead, i, o));
        return scores;
    }
    Batch batch;
    std::vector<double> labels, weights;
    Chunk chunk;
};

// 0 or 1 for a class, the absolute error for numbers.
template <Hypothesis H>
double Learner<H>::error_of(std::span<const double> scores, std::span<const double> labels) const {
    const double label = labels[0];
    if (task_ == Task::regression) {
        double sum = 0;
        for (std::size_t o = 0; o < labels.size(); ++o) sum += std::abs(scores[o] - labels[o]);
        return sum;
    }
    if (scores.size() == 1) return (scores[0] > 0) == (label > 0) ? 0.0 : 1.0;
    return std::max_element(scores.begin(), scores.end()) - scores.begin() == static_cast<std::ptrdiff_t>(label) ? 0.0
                                                                                                                 : 1.0;
}

// (1 - share) a + share b
inline std::vector<std::vector<double>> interpolate(std::vector<std::vector<double>> a,
                                                    const std::vector<std::vector<double>>& b, double share) {
    for (std::size_t o = 0; o < a.size(); ++o)
        for (std::size_t s = 0; s < a[o].size(); ++s) a[o][s] += share * (b[o][s] - a[o][s]);
    return a;
}

// Relative change of the scores in the Euclidean norm.
inline double relative_change(std::span<const double> before, std::span<const double> after) {
    double way = 0, size = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
        way += (after[i] - before[i]) * (after[i] - before[i]);
        size += before[i] * before[i];
    }
    return size > 0 ? std::sqrt(way / size) : 1.0;
}

// Learns the points from scratch; returns the mean error before each update in the first pass.
template <Hypothesis H>
double Learner<H>::replay(Replay& points, std::size_t passes) {
    Chunk& chunk = points.chunk;
    const std::size_t n = points.weights.size();
    std::vector<double> predicted(n * outputs());
    rule_ = first_rule_;
    std::fill(other_rules_.begin(), other_rules_.end(), first_rule_);
    counts_.steps = 0;
    std::fill(intercept_.begin(), intercept_.end(), 0.0);
    hypothesis_.clear_coefs();
    resize(chunk);
    for (std::size_t pass = 0; pass < passes; ++pass) {
        chunk.out = pass == 0 ? &predicted : nullptr;
        for (std::size_t i = 0; i < n; ++i) event(chunk, i);
        if (poll) poll();
    }
    double total = 0, known = 0;
    for (std::size_t i = 0; i < n; ++i)
        if (points.weights[i] != 0) {
            total += error_of({predicted.data() + i * outputs(), outputs()}, chunk.labels_of(i));
            known += 1;
        }
    return known > 0 ? total / known : 0.0;
}

// Blends the new f with the one that keeps the old scores. The less the factors change the scores, the smaller the
// share of the new f, down to 0: wrong or outdated labels and merged points make it less reliable. The steps of a
// regressor follow the noise of the targets; a ridge removes some of it.
template <Hypothesis H>
void Learner<H>::blend(Replay& stored, std::span<const double> scores, const std::vector<std::vector<double>>& present,
                       std::span<const double> intercept)
    requires(H::kSupports.present)
{
    const auto learned = hypothesis_.coefs();
    hypothesis_.set_coefs(present);
    const double share = std::min(0.5, 2 * relative_change(scores, stored.scores(hypothesis_)));
    hypothesis_.fit_scores(stored.chunk.lookahead, scores, task_ == Task::regression ? 0.0 : 1.0);
    hypothesis_.set_coefs(interpolate(hypothesis_.coefs(), learned, share));
    for (std::size_t o = 0; o < outputs(); ++o) intercept_[o] = intercept[o] + share * (intercept_[o] - intercept[o]);
}

template <Hypothesis H>
RelearnResult Learner<H>::relearn(std::span<const double> factors, std::size_t passes, double slack)
    requires(H::kSupports.present)
{
    RelearnResult found;
    const Snapshot before = snapshot();
    hypothesis_.begin(0, false);
    try {
        Replay stored(hypothesis_);
        const std::vector<double> scores = stored.scores(hypothesis_);
        const auto present = hypothesis_.coefs();
        found.before = replay(stored, 1);
        hypothesis_.rescale(factors);
        hypothesis_.refresh_lookahead(stored.chunk.lookahead);
        found.after = replay(stored, passes);
        found.accepted = found.after <= (1 + slack) * found.before;
        if (found.accepted) {
            blend(stored, scores, present, before.intercept);
            counts_ = before.counts;
            hypothesis_.refresh_partners(stored.chunk.lookahead);
        }
    } catch (...) {
        rollback(before);
        throw;
    }
    if (found.accepted) hypothesis_.keep();
    else rollback(before);
    return found;
}

}  // namespace gristmill
