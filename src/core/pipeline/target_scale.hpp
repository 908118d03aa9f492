// Targets of a regression as learners want them: about 0, about 1 wide; centre and spread are renewed only at positions that
// double. Before the spread is known, which takes two different targets, learners that need it learn nothing.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>

#include "core/base/archive.hpp"

namespace gristmill {

class TargetScale {
  public:
    // Old targets times factor plus shift are those of the new scale.
    struct Move {
        double factor, shift;
    };

    bool is_known() const { return spread > 0; }
    double mean() const { return count ? first + sum / static_cast<double>(count) : 0.0; }
    // Events until it may move.
    std::uint64_t due() const { return next - count; }

    double inside(double target) const { return (target - centre) / spread; }
    // What a learner says, in the units of the targets; the mean while learners have learned nothing.
    double outside(double said) const { return is_known() ? centre + spread * said : mean(); }

    // The mean of all targets before each of these; 0 before the first.
    void means(std::span<const double> targets, double* out) const {
        const double from = count == 0 ? targets[0] : first;
        double total = sum;
        for (std::size_t i = 0; i < targets.size(); ++i) {
            const std::uint64_t known = count + i;
            out[i] = known > 0 ? from + total / static_cast<double>(known) : 0.0;
            total += targets[i] - from;
        }
    }

    // Takes in targets up to the next position at most; there, if the scale moves, how.
    std::optional<Move> learn(std::span<const double> targets) {
        for (const double target : targets) take(target);
        if (count < next) return std::nullopt;
        next *= 2;
        return move();
    }

    // Renewed now, wherever that is. requires: nothing was learned by it yet.
    void settle() {
        if (count > 0) move(true);
    }
    // The move that turns targets by this scale into those by another. requires: both are known.
    Move to(const TargetScale& other) const { return {spread / other.spread, (centre - other.centre) / other.spread}; }
    void take(double target) {
        if (count == 0) first = target;
        const double off = target - first;
        sum += off;
        squares += off * off;
        ++count;
    }
    void visit(Archive& archive) {
        archive.count("count", count);
        archive.number("first", first);
        archive.number("sum", sum);
        archive.number("squares", squares);
        archive.number("centre", centre);
        archive.number("spread", spread);
        if (!archive.loads) return;
        if (spread < 0) archive.refuse("spread", "is below 0");
        for (next = kFirst; next <= count;) next *= 2;
    }

    double first = 0;  // sums are of differences from it: a large offset would drown a small spread
    std::uint64_t count = 0;
    double sum = 0, squares = 0;
    double centre = 0, spread = 0;  // 0: not known yet
    std::uint64_t next = kFirst;  // the position at which it may move

    static constexpr std::uint64_t kFirst = 2;  // events before the spread is looked at

  private:
    static constexpr double kShift = 0.1;  // spreads: a mean that moved less is left where it was
    static constexpr double kRatio = 1.25;  // a spread that grew or shrank less is left as it was

    std::optional<Move> move(bool always = false) {
        const double n = static_cast<double>(count), middle = sum / n;
        const double square = squares / n - middle * middle, wide = std::sqrt(square > 0 ? square : 0.0),
                     now = first + middle;
        const double before = spread, old = centre;
        if (!(wide > 0 && std::isfinite(wide))) return std::nullopt;
        if (!always && before > 0 && std::abs(now - old) <= kShift * before && before / kRatio <= wide &&
            wide <= before * kRatio)
            return std::nullopt;
        centre = now, spread = wide;
        if (!(before > 0)) return std::nullopt;
        return Move{before / wide, (old - now) / wide};
    }
};

}  // namespace gristmill
