// The stored point most like each stored point, and what folding one onto the other would cost: what `Merge` goes by.
//
// Folding v onto u, a_u += a_v k(v,u)/k(u,u), changes f by |a_v|^2 (k(v,v) - k(v,u)^2/k(u,u)), so the partner of v is the u
// with the largest likeness k(v,u)^2/k(u,u). A newcomer's row tells every stored point whether it has a better partner now.
// A point whose partner has left keeps its old likeness, which no other can exceed: its cost is then a lower bound, and only
// when that is the least of all is a row of its own worked out.
#pragma once

#include <span>
#include <vector>

#include "core/archive.hpp"
#include "core/points.hpp"

namespace gristmill {

class Partners {
  public:
    static constexpr std::size_t kNone = Points::npos;

    struct Fold {
        std::size_t slot = kNone;     // who is folded; kNone: the newcomer
        std::size_t partner = kNone;  // onto whom; kNone: nobody is like it, and it is dropped
        double share = 0;             // of its coefficients that the partner takes: k(v,u)/k(u,u)
    };
    // The newcomer or the stored point whose folding changes f least; ties to the oldest, and the newcomer is the youngest.
    // weights2: squared coefficients by slot, and the newcomer's own; row: its kernel values.
    Fold choose(const Points& points, const Kernel& kernel, std::span<const double> weights2, double newcomer2,
                const double* row, double self);
    // The same among stored points alone; may_go: those that may leave. requires: there is one.
    Fold choose(const Points& points, const Kernel& kernel, std::span<const double> weights2,
                std::span<const std::uint8_t> may_go);
    // A point with these kernel values has gone into `slot`, in the place of whoever was there.
    void stored(const Points& points, std::size_t slot, const double* row, double self);
    // The last slot has moved into `slot`, whose point is gone.
    void removed(std::size_t slot, std::size_t last);
    void clear();
    // All points have other kernel values now: first every k(v,v), then a row each.
    void meet_again(const Points& points, std::span<const double> selves);
    void meet_again(const Points& points, std::size_t slot, const double* row) { set(slot, best(points, row, slot)); }

    std::uint64_t rows() const { return rows_; }  // worked out beyond those of newcomers
    void reserve(std::size_t slots);
    void shrink(std::size_t slots);  // gives back room beyond so many
    static std::size_t bytes_for(std::size_t slots) { return slots * (sizeof(std::size_t) + 4 * sizeof(double) + 1); }
    std::size_t bytes() const { return bytes_for(partner_.capacity()); }
    void visit(Archive& archive, std::size_t size);

  private:
    struct Best {
        std::size_t slot = kNone;
        double likeness = 0, share = 0;
    };
    static double inverse_of(double self) { return self > 0 ? 1 / self : 0.0; }
    // The stored point most like one with these kernel values, other than `self`; ties to the oldest.
    Best best(const Points& points, const double* row, std::size_t self);
    // The oldest slot with the least number; requires: there is one.
    std::size_t least(const Points& points, const double* numbers) const;
    // The stored point that it costs least to fold, if that is no more than `most`; kNone: none is.
    std::size_t cheapest(const Points& points, const Kernel& kernel, std::span<const double> weights2,
                         std::span<const std::uint8_t> may_go, double most);
    void set(std::size_t slot, const Best& best);
    void refresh(const Points& points, const Kernel& kernel, std::size_t slot);
    void forget(std::size_t slot);  // nobody's partner any more

    std::vector<std::size_t> partner_;             // by slot; kNone: nobody is like it
    std::vector<double> likeness_, share_, self_;  // k(v,u)^2/k(u,u) and k(v,u)/k(u,u) of the partner, or 0; k(v,v)
    std::vector<std::uint8_t> stale_;              // the partner has left: the likeness is an upper bound
    std::uint64_t rows_ = 0;
    Best newcomer_;                                // of the choice made last
    std::vector<double> inverse_;                  // 1/k(u,u), or 0
    Lines<double> row_, numbers_;                  // scratch
};

}  // namespace gristmill
