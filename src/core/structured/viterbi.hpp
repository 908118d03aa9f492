// Viterbi's search over sequences of symbols, and the loop that learns sequences with it.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/structured/joint.hpp"

namespace gristmill {

// Scores of the labels of one input: of each symbol at each row, and of each symbol after another.
struct SequenceScores {
    std::size_t rows = 0, symbols = 0;
    std::vector<double> at_rows, transitions;  // rows x symbols, symbols x symbols

    double operator()(Label label) const;
};

// The label with the highest score other than `barred`, which is empty or has one symbol per row; the first one on ties.
// requires: scores.rows > 0, at least two symbols, finite scores.
std::vector<std::int32_t> viterbi(const SequenceScores& scores, Label barred);

// Learns sequences in order: sample i has the rows, and the symbols of `labels`, [start[i], start[i + 1]). cost: of a rival
// of sample i, for the rule implicit; 1 if there is no function. best: null, or the best symbols before each sample.
// poll: called before each sample.
void learn_sequences(JointExpansion& f, const Batch& batch, std::span<const std::int64_t> start, Label labels,
                     std::span<const double> weights, std::size_t symbols,
                     const std::function<double(std::size_t, Label)>& cost, std::int32_t* best,
                     const std::function<void()>& poll);

// The best symbols of each sequence, one after the other.
std::vector<std::int32_t> best_sequences(JointExpansion& f, const Batch& batch, std::span<const std::int64_t> start,
                                         std::size_t symbols, bool average);

}  // namespace gristmill
