// Budgets: how a new term enters and what leaves. Nobody else removes points.
//
// To add one: a struct with `Entry choose(...)` and `limit()`; a line in Budget; a line in src/bind/parts.cpp; a value in
// budgets.py.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>

#include "core/elementary.hpp"
#include "core/expansion.hpp"
#include "core/random.hpp"
#include "core/victims.hpp"

namespace gristmill {

// The term that asks to come in. Coefficients of stored points are about to be multiplied by `shrink`.
struct Newcomer {
    std::int64_t id;
    std::span<const double> coefs;  // one an output
    double shrink;
    const double* row;  // its kernel values at the stored points
    double self;        // k(x, x)
    VictimRows* victims = nullptr;  // rows of those that leave, for budgets that look at them

    double magnitude() const {
        double largest = 0;
        for (const double c : coefs) largest = std::max(largest, std::abs(c));
        return largest;
    }
};

struct Entry {
    enum class Kind { append, replace, refuse } kind = Kind::append;
    std::size_t slot = 0;  // whose place is taken
    double factor = 1;     // on everything, the newcomer included

    static Entry into(std::size_t slot) { return {Kind::replace, slot}; }
};

struct BudgetBase {
    template <class F>
    void state(F&&) {}  // calls its argument with each number that changes while learning
};

inline constexpr std::size_t kNoLimit = Points::npos;

struct Unbounded : BudgetBase {
    Entry choose(const Expansion&, const Newcomer&, Random&) { return {}; }
    std::size_t limit() const { return kNoLimit; }
};

struct Window : BudgetBase {
    std::int64_t steps = 0;  // tau; 0: it grows
    double growth = 0;

    Entry choose(const Expansion&, const Newcomer&, Random&) { return {}; }
    std::size_t limit() const { return steps > 0 ? static_cast<std::size_t>(steps) : kNoLimit; }
    // The oldest position that the score of event `next` may use.
    std::int64_t horizon(std::int64_t next) const {
        if (steps > 0) return next - steps;
        const double age = std::ceil(elementary::pow(static_cast<double>(next + 1), 0.5 + growth));
        return age > static_cast<double>(next) ? 0 : next - static_cast<std::int64_t>(age);
    }
};

struct DropOldest : BudgetBase {
    std::size_t size = 1;
    Entry choose(const Expansion& f, const Newcomer&, Random&) {
        return f.size() < size ? Entry{} : Entry::into(f.points().oldest());
    }
    std::size_t limit() const { return size; }
};

struct DropSmallest : BudgetBase {
    std::size_t size = 1;
    Entry choose(const Expansion& f, const Newcomer& newcomer, Random&) {
        if (f.size() < size) return {};
        // Ties go to the oldest, so the scan runs by age and asks for strictly less.
        std::size_t victim = f.points().oldest();
        double least = f.magnitude(victim);
        for (std::size_t slot = f.points().newer(victim); slot != Points::npos; slot = f.points().newer(slot))
            if (const double magnitude = f.magnitude(slot); magnitude < least) victim = slot, least = magnitude;
        if (newcomer.magnitude() < least * std::abs(newcomer.shrink)) return {Entry::Kind::refuse};
        return Entry::into(victim);
    }
    std::size_t limit() const { return size; }
};

struct DropRandom : BudgetBase {
    std::size_t size = 1;
    Entry choose(const Expansion& f, const Newcomer&, Random& random) {
        return f.size() < size ? Entry{} : Entry::into(random.below(f.size()));
    }
    std::size_t limit() const { return size; }
};

// The Forgetron: shrinks so that dropping the oldest point does bounded damage. Coefficients are sigma y, sigma <= 1.
struct Forget : BudgetBase {
    std::size_t size = 1;  // B
    bool basic = false;
    double mistakes = 0, damage = 0;  // M, Q

    Entry choose(const Expansion& f, const Newcomer& newcomer, Random&) {
        mistakes += 1;
        if (f.size() < size) return {};
        Entry entry = Entry::into(f.points().oldest());
        const double* row = newcomer.victims->row(f, entry.slot);
        const double oldest = f.coef(entry.slot, 0), sigma = std::abs(oldest);
        // mu = y_r f'(x_r), f' with the newcomer already in it
        const double mu =
            std::copysign(1.0, oldest) * (f.score(0, row) + newcomer.coefs[0] * newcomer.row[entry.slot]);
        entry.factor = basic ? basic_factor(f, newcomer) : tuned_factor(sigma, mu);
        const double phi = entry.factor;
        damage += phi * sigma * (phi * sigma + 2 - 2 * phi * mu);
        return entry;
    }
    std::size_t limit() const { return size; }
    template <class F>
    void state(F&& f) { f(mistakes), f(damage); }

  private:
    // The largest phi <= 1 with damage + phi^2 a + phi b <= 15/32 mistakes.
    double tuned_factor(double sigma, double mu) const {
        const double slack = 15.0 / 32 * mistakes - damage;
        const double a = sigma * sigma - 2 * sigma * mu, b = 2 * sigma;
        if (a + b <= slack) return 1;
        return 2 * slack / (b + std::sqrt(std::max(0.0, b * b + 4 * a * slack)));
    }
    double basic_factor(const Expansion& f, const Newcomer& newcomer) const {
        const double b = static_cast<double>(size) + 1, radius = std::sqrt(b / elementary::log(b)) / 4;  // U
        const double c = newcomer.coefs[0];
        const double norm2 = f.norm2() + 2 * c * f.score(0, newcomer.row) + c * c * newcomer.self;
        return std::min(elementary::pow(b, -1 / (2 * b)), radius / std::sqrt(norm2));
    }
};

// A new point within `tolerance` of the span of the stored ones is folded into them, any other is stored. The learner keeps
// the hypothesis in a Span (span.hpp) and asks this budget for nothing but the tolerance.
struct Project : BudgetBase {
    double tolerance = 0;  // eta
    Entry choose(const Expansion&, const Newcomer&, Random&) { return {}; }
    std::size_t limit() const { return kNoLimit; }
};

// A budget from outside the core.
struct ForeignBudget {
    virtual ~ForeignBudget() = default;
    virtual Entry choose(const Expansion& f, const Newcomer& newcomer) = 0;
};
struct ForeignBudgetPart : BudgetBase {
    std::shared_ptr<ForeignBudget> budget;
    Entry choose(const Expansion& f, const Newcomer& newcomer, Random&) { return budget->choose(f, newcomer); }
    std::size_t limit() const { return kNoLimit; }
};

using Budget = std::variant<Unbounded, Window, DropOldest, DropSmallest, DropRandom, Forget, Project, ForeignBudgetPart>;

// Whether the budget itself needs ||f||^2.
inline bool needs_norm(const Budget& budget) {
    const auto* forget = std::get_if<Forget>(&budget);
    return forget && forget->basic;
}

}  // namespace gristmill
