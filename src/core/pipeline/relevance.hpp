// Weights of columns by how much they move the answer: the diagonal of the average gradient outer product of what was learned.
//
// At positions of the stream that double the weights follow the gradient at the stored points, which are rescaled in place and
// learned anew. Between those positions nothing changes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/expansion/expansion.hpp"
#include "core/learner/learner.hpp"

namespace gristmill {

using PointLearner = Learner<Expansion>;

class Relevance {
  public:
    struct RelearnResult {
        std::uint64_t position;
        std::vector<double> shares;  // of the mean square of the gradient by each column; they add up to 1
        bool taken;  // whether the weights followed
    };
    static constexpr std::uint64_t kFirst =
        500;  // events before the first renewal; each later one waits for as many again

    // Events until the next renewal, which comes right after the last of them.
    static std::uint64_t due(std::uint64_t seen) {
        std::uint64_t position = kFirst;
        while (position <= seen) position *= 2;
        return position - seen;
    }
    static bool is_due(std::uint64_t seen) {
        const std::uint64_t times = seen / kFirst;
        return seen % kFirst == 0 && times > 0 && (times & (times - 1)) == 0;
    }

    // rows * weights into `out`.
    template <class T>
    void weigh(const double* rows, std::size_t count, T* out) const {
        const std::size_t n = weights.size();
        for (std::size_t r = 0; r < count; ++r)
            for (std::size_t c = 0; c < n; ++c) out[r * n + c] = static_cast<T>(rows[r * n + c] * weights[c]);
    }

    // New weights from what the learner knows, if they tell its stored points no worse. always: also where they hardly change.
    void relearn(PointLearner& learner, std::uint64_t position, bool always);
    void widen(std::size_t width);
    void visit(Archive& archive, std::size_t width);

    std::vector<double> weights;
    std::vector<RelearnResult> history;
};

// The sum of numbers, rounded once: the order does not matter (Shewchuk 1997).
double exact_sum(std::span<const double> numbers);

}  // namespace gristmill
