// Isolation trees over a coded sample: an event that random splits separate from the sample after few steps is strange (Liu, Ting, Zhou,
// Isolation Forest, ICDM 2008). Path lengths are whole numbers, so that their sum has the same bits in every order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/archive.hpp"
#include "core/base/random.hpp"
#include "core/novelty/coded_sample.hpp"

namespace gristmill::novelty {

class IsolationTrees {
  public:
    static constexpr std::size_t kEvents = 128,
                                 kDepth = 7;  // of the sample that a tree is grown from, and its largest depth
    static constexpr std::size_t kInner = (1u << kDepth) - 1, kNodes = 2 * kInner + 1;

    IsolationTrees() = default;
    explicit IsolationTrees(std::size_t trees)
        : trees_(trees), column_(trees * kInner, -1), split_(trees * kInner), path_(trees * kNodes) {
        double harmonic = 0;
        for (std::size_t n = 2; n <= kEvents; ++n) {  // mean depth of an unsuccessful search among n
            harmonic += 1 / static_cast<double>(n - 1);
            const auto count = static_cast<double>(n);
            length_[n] = static_cast<std::int32_t>(kUnit * (2 * harmonic - 2 * (count - 1) / count));
        }
    }

    std::size_t size() const { return trees_; }
    static constexpr std::size_t bytes_per_tree() { return kInner * 8 + kNodes * 4; }
    std::size_t bytes() const { return sizeof *this + trees_ * bytes_per_tree(); }

    // Grows the oldest trees anew.
    void relearn(std::size_t count, const CodedSample& sample, Random& random) {
        for (std::size_t i = 0; i < count; ++i) grow(oldest_, sample, random), oldest_ = (oldest_ + 1) % trees_;
    }
    // Mean path length of an event, 1 for what is like the sample.
    double length(const std::int32_t* codes) const {
        std::int64_t sum = 0;
        for (std::size_t tree = 0; tree < trees_; ++tree) {
            const std::int32_t *column = column_.data() + tree * kInner, *split = split_.data() + tree * kInner;
            std::size_t node = 0;
            while (node < kInner && column[node] >= 0) node = 2 * node + (codes[column[node]] > split[node] ? 2 : 1);
            sum += path_[tree * kNodes + node];
        }
        return static_cast<double>(sum) / (static_cast<double>(trees_) * length_[kEvents]);
    }
    // A column of the sample is measured anew: `moved` turns its numbers into the present ones.
    template <class F>
    void recode(std::size_t column, F moved) {
        for (std::size_t node = 0; node < column_.size(); ++node)
            if (column_[node] == static_cast<std::int32_t>(column)) split_[node] = moved(split_[node]);
    }

    void visit(Archive& archive, std::size_t width) {
        std::vector<std::int64_t> columns(column_.begin(), column_.end()), splits(split_.begin(), split_.end()),
            paths(path_.begin(), path_.end());
        archive.numbers("tree_columns", columns, column_.size());
        archive.numbers("tree_splits", splits, split_.size());
        archive.numbers("tree_paths", paths, path_.size());
        auto within = [](const std::vector<std::int64_t>& list, std::int64_t low, std::int64_t high) {
            return std::all_of(list.begin(), list.end(), [&](std::int64_t x) { return x >= low && x <= high; });
        };
        if (!within(columns, -1, static_cast<std::int64_t>(width) - 1))
            archive.refuse("tree_columns", "names a column that is not there");
        if (!within(splits, -(1 << 22), 1 << 22) || !within(paths, 0, 1 << 20))
            archive.refuse("tree_splits", "holds a number that is out of range");
        column_.assign(columns.begin(), columns.end());
        split_.assign(splits.begin(), splits.end());
        path_.assign(paths.begin(), paths.end());
        std::uint64_t oldest = oldest_;
        archive.count("oldest_tree", oldest);
        if (oldest >= std::max<std::size_t>(trees_, 1)) archive.refuse("oldest_tree", "is no tree");
        oldest_ = oldest;
    }

  private:
    static constexpr std::int32_t kUnit = 1 << 12;  // of one step
    static constexpr std::size_t kTries = 16;  // columns looked at for one in which the events of a node differ

    void grow(std::size_t tree, const CodedSample& sample, Random& random) {
        std::uint32_t slots[kEvents];
        const std::size_t n = std::min(kEvents, sample.size());
        if (n == sample.size()) {
            for (std::size_t i = 0; i < n; ++i) slots[i] = static_cast<std::uint32_t>(i);
        } else {  // Floyd's sample without repetition
            for (std::size_t i = 0; i < n; ++i) {
                const auto top = static_cast<std::uint32_t>(sample.size() - n + i);
                const auto drawn = static_cast<std::uint32_t>(random.below(top + 1));
                slots[i] = std::find(slots, slots + i, drawn) == slots + i ? drawn : top;
            }
        }
        grow(tree, 0, 0, slots, n, sample, random);
    }
    void grow(std::size_t tree, std::size_t node, std::size_t depth, std::uint32_t* slots, std::size_t n,
              const CodedSample& sample, Random& random) {
        path_[tree * kNodes + node] = static_cast<std::int32_t>(depth) * kUnit + length_[n];
        if (depth == kDepth) return;
        std::int32_t& column = column_[tree * kInner + node];
        column = -1;
        if (n < 2) return;
        for (std::size_t tried = 0; tried < kTries; ++tried) {
            const auto c = static_cast<std::size_t>(random.below(sample.width()));
            std::int32_t low = sample.code(slots[0], c), high = low;
            for (std::size_t i = 1; i < n; ++i) {
                const std::int32_t code = sample.code(slots[i], c);
                low = std::min(low, code), high = std::max(high, code);
            }
            if (low == high) continue;
            const std::int32_t split =
                low + static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(high - low)));
            column = static_cast<std::int32_t>(c);
            split_[tree * kInner + node] = split;
            std::uint32_t* middle =
                std::partition(slots, slots + n, [&](std::uint32_t slot) { return sample.code(slot, c) <= split; });
            const auto left = static_cast<std::size_t>(middle - slots);
            grow(tree, 2 * node + 1, depth + 1, slots, left, sample, random);
            grow(tree, 2 * node + 2, depth + 1, middle, n - left, sample, random);
            return;
        }
    }

    std::size_t trees_ = 0, oldest_ = 0;
    std::vector<std::int32_t> column_, split_, path_;  // children of node i: 2 i + 1 and 2 i + 2; no column: a leaf
    std::int32_t length_[kEvents + 1] = {};
};

}  // namespace gristmill::novelty
