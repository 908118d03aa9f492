// Budgets: how a new term enters a store and which one is evicted. No other code removes points.
//
// A budget works on a store: slots with ages and magnitudes. Expansions, trees, rankers and fleets are stores. To add a
// budget: a struct with `Entry choose(...)` and `limit()`, and `needs()` for what it needs beyond a store; its name in
// `Budget` at the end; a line in parts/named.hpp; a class in budgets.py.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>

#include "core/base/elementary.hpp"
#include "core/base/random.hpp"
#include "core/kernels/evicted_rows.hpp"
#include "core/parts/needs.hpp"

namespace gristmill {

class Expansion;

// What every store offers a budget. oldest() of an empty store is npos, and so is newer() of the newest slot.
template <class S>
concept Store = requires(const S& store, std::size_t slot) {
    { store.size() } -> std::convertible_to<std::size_t>;
    { store.oldest() } -> std::convertible_to<std::size_t>;
    { store.smallest() } -> std::convertible_to<std::size_t>;  // the slot of least magnitude; the oldest of equals
    { store.magnitude(slot) } -> std::convertible_to<double>;
};
// A store whose points can be compared by the kernel.
template <class S>
concept ComparableStore = Store<S> && requires(const S& store) { store.points(), store.kernel(); };

// The term to be stored. Coefficients of stored points are about to be multiplied by `shrink`.
struct Newcomer {
    std::int64_t id;
    std::span<const double> coefs;  // one per output
    double shrink;
    const double* row;  // kernel values at the stored points
    double self;  // k(x, x)
    EvictedRows* evicted_rows = nullptr;  // kernel rows of points to be evicted, for budgets that need them

    double magnitude() const {
        double largest = 0;
        for (const double c : coefs) largest = std::max(largest, std::abs(c));
        return largest;
    }
};

struct Entry {
    // fold: the newcomer is added to a stored point
    enum class Kind { append, replace, refuse, fold } kind = Kind::append;
    std::size_t slot = 0;  // the slot that is replaced
    double factor = 1;  // on all coefficients, including the newcomer's
    // The point that takes over a share of the coefficients of the evicted point, or of the newcomer; npos: none.
    std::size_t onto = Points::npos;
    double share = 0;

    static Entry into(std::size_t slot) { return {Kind::replace, slot}; }
};

struct BudgetBase {
    std::size_t bytes = 0;  // if > 0: the size follows from this much memory, the width and the number of outputs

    Needs needs() const { return {}; }
    template <class F>
    void state(F&&) {}  // calls its argument with the name and the value of each number that changes while learning
};

inline constexpr std::size_t kNoLimit = Points::npos;

struct Unbounded : BudgetBase {
    Entry choose(const Store auto&, const Newcomer&, Random&) { return {}; }
    std::size_t limit() const { return kNoLimit; }
};

struct Window : BudgetBase {
    std::int64_t steps = 0;  // tau; 0: the window grows
    double growth = 0;

    Entry choose(const Store auto&, const Newcomer&, Random&) { return {}; }
    std::size_t limit() const { return steps > 0 ? static_cast<std::size_t>(steps) : kNoLimit; }
    // The oldest position used by the score of event `next`.
    std::int64_t horizon(std::int64_t next) const {
        if (steps > 0) return next - steps;
        const double age = std::ceil(elementary::pow(static_cast<double>(next + 1), 0.5 + growth));
        return age > static_cast<double>(next) ? 0 : next - static_cast<std::int64_t>(age);
    }
};

struct DropOldest : BudgetBase {
    std::size_t size = 1;
    Entry choose(const Store auto& store, const Newcomer&, Random& random) {
        return store.size() < size ? Entry{} : leave(store, random);
    }
    Entry leave(const Store auto& store, Random&) const { return Entry::into(store.oldest()); }
    std::size_t limit() const { return size; }
};

struct DropSmallest : BudgetBase {
    std::size_t size = 1;
    Entry choose(const Store auto& store, const Newcomer& newcomer, Random&) {
        if (store.size() < size) return {};
        const std::size_t evicted = store.smallest();
        if (newcomer.magnitude() < store.magnitude(evicted) * std::abs(newcomer.shrink)) return {Entry::Kind::refuse};
        return Entry::into(evicted);
    }
    Entry leave(const Store auto& store, Random&) const { return Entry::into(store.smallest()); }
    std::size_t limit() const { return size; }
};

struct DropRandom : BudgetBase {
    std::size_t size = 1;
    bool uniform = false;  // the stored points are a uniform sample of all candidates
    double candidates = 0;  // candidates so far, if counted
    Entry choose(const Store auto& store, const Newcomer&, Random& random) {
        if (uniform) candidates += 1;
        if (store.size() < size) return {};
        if (!uniform) return leave(store, random);
        // Vitter's Algorithm R: the newcomer is stored with probability size / candidates, in a random slot.
        constexpr double kMost = 1e18;  // a damaged file may hold any number
        const std::uint64_t place = random.below(static_cast<std::uint64_t>(std::clamp(candidates, 1.0, kMost)));
        return place < store.size() ? Entry::into(static_cast<std::size_t>(place)) : Entry{Entry::Kind::refuse};
    }
    template <class F>
    void state(F&& f) {
        if (uniform) f("candidates", candidates);
    }
    Entry leave(const Store auto& store, Random& random) const { return Entry::into(random.below(store.size())); }
    std::size_t limit() const { return size; }
};

// Merges the point whose removal then changes f least into the most similar one, which may be the newcomer; see
// expansion/merge_partners.hpp.
struct Merge : BudgetBase {
    std::size_t size = 1;

    Needs needs() const { return {.rows = true, .partners = true}; }
    template <class S>
        requires requires(const S& store, const Newcomer& newcomer) { store.cheapest_fold(newcomer); }
    Entry choose(const S& store, const Newcomer& newcomer, Random&) {
        return store.size() < size ? Entry{} : store.cheapest_fold(newcomer);
    }
    template <class S>
        requires requires(const S& store, const Newcomer& newcomer) { store.cheapest_fold(newcomer); }
    Entry leave(const S& store, Random&) const {
        const auto fold = store.cheapest_fold(std::span<const std::uint8_t>());
        return {Entry::Kind::replace, fold.slot, 1, fold.partner, fold.share};
    }
    std::size_t limit() const { return size; }
};

// The Forgetron: shrinks f so that evicting the oldest point does bounded damage. Coefficients are sigma y, sigma <= 1.
struct Forget : BudgetBase {
    std::size_t size = 1;  // B
    bool basic = false;
    double mistakes = 0, damage = 0;  // M, Q

    Needs needs() const { return {.norm = basic, .rows = true}; }
    Entry choose(const ComparableStore auto& f, const Newcomer& newcomer, Random&) {
        mistakes += 1;
        if (f.size() < size) return {};
        Entry entry = Entry::into(f.oldest());
        const double* row = newcomer.evicted_rows->row(f.points(), f.kernel(), entry.slot);
        const double oldest = f.coef(entry.slot, 0), sigma = std::abs(oldest);
        // mu = y_r f'(x_r), where f' includes the newcomer
        const double mu = std::copysign(1.0, oldest) * (f.score(0, row) + newcomer.coefs[0] * newcomer.row[entry.slot]);
        entry.factor = basic ? basic_factor(f, newcomer) : tuned_factor(sigma, mu);
        const double phi = entry.factor;
        damage += phi * sigma * (phi * sigma + 2 - 2 * phi * mu);
        return entry;
    }
    std::size_t limit() const { return size; }
    template <class F>
    void state(F&& f) {
        f("mistakes", mistakes);
        f("damage", damage);
    }

  private:
    // The largest phi <= 1 with damage + phi^2 a + phi b <= 15/32 mistakes.
    double tuned_factor(double sigma, double mu) const {
        const double slack = 15.0 / 32 * mistakes - damage;
        const double a = sigma * sigma - 2 * sigma * mu, b = 2 * sigma;
        if (a + b <= slack) return 1;
        return 2 * slack / (b + std::sqrt(std::max(0.0, b * b + 4 * a * slack)));
    }
    double basic_factor(const auto& f, const Newcomer& newcomer) const {
        const double b = static_cast<double>(size) + 1, radius = std::sqrt(b / elementary::log(b)) / 4;  // U
        const double c = newcomer.coefs[0];
        const double norm2 = f.norm2() + 2 * c * f.score(0, newcomer.row) + c * c * newcomer.self;
        return std::min(elementary::pow(b, -1 / (2 * b)), radius / std::sqrt(norm2));
    }
};

// A new point within `tolerance` of the span of the stored ones is projected onto it, any other is stored. The
// hypothesis ProjectedExpansion (expansion/projected.hpp) does that; it reads only the tolerance.
struct Project : BudgetBase {
    double tolerance = 0;  // eta
    std::size_t size = kNoLimit;  // a full store projects every new point
    Needs needs() const { return {.span = true}; }
    Entry choose(const Store auto&, const Newcomer&, Random&) { return {}; }
    std::size_t limit() const { return size; }
};

// A budget written in Python.
struct ForeignBudget {
    virtual ~ForeignBudget() = default;
    virtual Entry choose(const Expansion& f, const Newcomer& newcomer) = 0;
};
struct ForeignBudgetPart : BudgetBase {
    std::shared_ptr<ForeignBudget> budget;
    Needs needs() const { return {.rows = true}; }
    Entry choose(const Expansion& f, const Newcomer& newcomer, Random&) { return budget->choose(f, newcomer); }
    std::size_t limit() const { return kNoLimit; }
};

using Budget =
    std::variant<Unbounded, Window, DropOldest, DropSmallest, DropRandom, Merge, Forget, Project, ForeignBudgetPart>;

inline Needs needs_of(const Budget& budget) {
    return std::visit([](const auto& b) { return b.needs(); }, budget);
}
inline std::size_t limit_of(const Budget& budget) {
    return std::visit([](const auto& b) { return b.limit(); }, budget);
}

inline std::size_t bytes_of(const Budget& budget) {
    return std::visit([](const auto& b) { return b.bytes; }, budget);
}
inline void set_size(Budget& budget, std::size_t size) {
    std::visit(
        [&](auto& b) {
            if constexpr (requires { b.size; }) b.size = size;
        },
        budget);
}
inline void set_bytes(Budget& budget, std::size_t bytes) {
    std::visit([&](auto& b) { b.bytes = bytes; }, budget);
}
// The entry to evict when the size is reduced.
Entry leave(const Budget& budget, const Store auto& store, Random& random) {
    return std::visit(
        [&](const auto& b) -> Entry {
            if constexpr (requires { b.leave(store, random); }) return b.leave(store, random);
            else throw std::logic_error("the budget has no size");
        },
        budget);
}

// requires: the hypothesis supports what the budget needs.
Entry choose(Budget& budget, const Store auto& store, const Newcomer& newcomer, Random& random) {
    return std::visit(
        [&](auto& b) -> Entry {
            if constexpr (requires { b.choose(store, newcomer, random); }) return b.choose(store, newcomer, random);
            else throw std::logic_error("the budget cannot work on this store");
        },
        budget);
}

}  // namespace gristmill
