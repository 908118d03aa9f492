#include "core/structured/viterbi.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/base/batch.hpp"

namespace gristmill {

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// Scores of sample i of `samples`, by the present coefficients or by their mean.
void score(const JointExpansion& f, JointLookahead& samples, std::size_t i, bool average, SequenceScores& out) {
    out.rows = samples.rows();
    out.at_rows.resize(out.rows * out.symbols);
    out.transitions.resize(out.symbols * out.symbols);
    std::vector<double> means;
    if (average) means = f.weights(true);
    const std::span<const double> weights = average ? std::span<const double>(means) : f.coefs();
    f.row_scores(weights, samples.values(), samples.stride(), out.rows, out.symbols, out.at_rows.data());
    f.transition_scores(weights, out.symbols, out.transitions.data());
    const auto finite = [](double s) { return std::isfinite(s); };
    if (!std::all_of(out.at_rows.begin(), out.at_rows.end(), finite) ||
        !std::all_of(out.transitions.begin(), out.transitions.end(), finite))
        throw RowError(i, "row " + std::to_string(i) + ": a score is not finite; scale the inputs");
}

}  // namespace

double SequenceScores::operator()(Label label) const {
    double found = 0, moves = 0;
    for (std::size_t t = 0; t < rows; ++t) found += at_rows[t * symbols + static_cast<std::size_t>(label[t])];
    for (std::size_t t = 1; t < rows; ++t)
        moves += transitions[static_cast<std::size_t>(label[t - 1]) * symbols + static_cast<std::size_t>(label[t])];
    return found + moves;
}

std::vector<std::int32_t> viterbi(const SequenceScores& scores, Label barred) {
    const std::size_t count = scores.symbols, length = scores.rows;
    const bool bars = !barred.empty();
    const auto symbol = [&](std::size_t t) { return static_cast<std::size_t>(barred[t]); };
    const double* rows = scores.at_rows.data();
    const double* moves = scores.transitions.data();
    // best[c]: of the beginnings that end with symbol c, and of those that differ from the barred one if there is one.
    std::vector<double> best(rows, rows + count), next(count);
    std::vector<std::size_t> back(length * count);
    double along = 0;  // the score of the barred beginning
    if (bars) {
        along = best[symbol(0)];
        best[symbol(0)] = kNever;
    }
    for (std::size_t t = 1; t < length; ++t) {
        for (std::size_t c = 0; c < count; ++c) {
            std::size_t from = 0;
            double top = best[0] + moves[c];
            for (std::size_t b = 1; b < count; ++b)
                if (const double through = best[b] + moves[b * count + c]; through > top) {
                    top = through;
                    from = b;
                }
            if (bars && c != symbol(t))
                if (const double leaving = along + moves[symbol(t - 1) * count + c]; leaving > top) {
                    top = leaving;
                    from = count;  // the beginning was the barred one up to here
                }
            back[t * count + c] = from;
            next[c] = top + rows[t * count + c];
        }
        if (bars) along += moves[symbol(t - 1) * count + symbol(t)] + rows[t * count + symbol(t)];
        best.swap(next);
    }
    std::vector<std::int32_t> found(length);
    auto c = static_cast<std::size_t>(std::max_element(best.begin(), best.end()) - best.begin());
    for (std::size_t t = length; t-- > 0;) {
        found[t] = static_cast<std::int32_t>(c);
        if (t == 0) break;
        c = back[t * count + c];
        if (c == count) {
            std::copy(barred.begin(), barred.begin() + static_cast<std::ptrdiff_t>(t), found.begin());
            break;
        }
    }
    return found;
}

void learn_sequences(JointExpansion& f, const Batch& batch, std::span<const std::int64_t> start, Label labels,
                     std::span<const double> weights, std::size_t symbols,
                     const std::function<double(std::size_t, Label)>& cost, std::int32_t* best,
                     const std::function<void()>& poll) {
    JointLookahead samples(f, batch, start);
    SequenceScores scores;
    scores.symbols = symbols;
    const bool average = f.settings().average, implicit = f.settings().rule == JointSettings::Rule::implicit;
    for (std::size_t i = 0; i + 1 < start.size(); ++i) {
        poll();
        samples.at(i);
        const double weight = weights.empty() ? 1.0 : weights[i];
        const auto first = static_cast<std::size_t>(start[i]);
        if (best) {
            score(f, samples, i, average, scores);
            const auto found = viterbi(scores, {});
            std::copy(found.begin(), found.end(), best + first);
        }
        if (weight == 0) {
            f.pass();
            continue;
        }
        if (!best || average) score(f, samples, i, false, scores);
        const Label y = labels.subspan(first, samples.rows());
        const auto rival = viterbi(scores, y);
        const double price = !implicit ? 0.0 : cost ? cost(i, rival) : 1.0;
        f.learn(samples, y, rival, scores(y) - scores(rival), price, weight);
    }
}

std::vector<std::int32_t> best_sequences(JointExpansion& f, const Batch& batch, std::span<const std::int64_t> start,
                                         std::size_t symbols, bool average) {
    JointLookahead samples(f, batch, start);
    SequenceScores scores;
    scores.symbols = symbols;
    std::vector<std::int32_t> out;
    for (std::size_t i = 0; i + 1 < start.size(); ++i) {
        samples.at(i);
        score(f, samples, i, average, scores);
        const auto found = viterbi(scores, {});
        out.insert(out.end(), found.begin(), found.end());
    }
    return out;
}

}  // namespace gristmill
