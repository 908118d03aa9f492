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

#include "core/expansion.hpp"
#include "core/random.hpp"

namespace gristmill {

// The term that asks to come in. Coefficients of stored points are about to be multiplied by `shrink`.
struct Newcomer {
    std::int64_t id;
    std::span<const double> coefs;  // one an output
    double shrink;

    double magnitude() const {
        double largest = 0;
        for (const double c : coefs) largest = std::max(largest, std::abs(c));
        return largest;
    }
};

struct Entry {
    enum class Kind { append, replace, refuse } kind = Kind::append;
    std::size_t slot = 0;  // whose place is taken

    static Entry into(std::size_t slot) { return {Kind::replace, slot}; }
};

inline constexpr std::size_t kNoLimit = Points::npos;

struct Unbounded {
    Entry choose(const Expansion&, const Newcomer&, Random&) { return {}; }
    std::size_t limit() const { return kNoLimit; }
};

struct Window {
    std::int64_t steps = 0;  // tau; 0: it grows
    double growth = 0;

    Entry choose(const Expansion&, const Newcomer&, Random&) { return {}; }
    std::size_t limit() const { return steps > 0 ? static_cast<std::size_t>(steps) : kNoLimit; }
    // The oldest position that the score of event `next` may use.
    std::int64_t horizon(std::int64_t next) const {
        if (steps > 0) return next - steps;
        const double age = std::ceil(std::pow(static_cast<double>(next + 1), 0.5 + growth));
        return age > static_cast<double>(next) ? 0 : next - static_cast<std::int64_t>(age);
    }
};

struct DropOldest {
    std::size_t size = 1;
    Entry choose(const Expansion& f, const Newcomer&, Random&) {
        return f.size() < size ? Entry{} : Entry::into(f.points().oldest());
    }
    std::size_t limit() const { return size; }
};

struct DropSmallest {
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

struct DropRandom {
    std::size_t size = 1;
    Entry choose(const Expansion& f, const Newcomer&, Random& random) {
        return f.size() < size ? Entry{} : Entry::into(random.below(f.size()));
    }
    std::size_t limit() const { return size; }
};

// A budget from outside the core.
struct ForeignBudget {
    virtual ~ForeignBudget() = default;
    virtual Entry choose(const Expansion& f, const Newcomer& newcomer) = 0;
};
struct ForeignBudgetPart {
    std::shared_ptr<ForeignBudget> budget;
    Entry choose(const Expansion& f, const Newcomer& newcomer, Random&) { return budget->choose(f, newcomer); }
    std::size_t limit() const { return kNoLimit; }
};

using Budget = std::variant<Unbounded, Window, DropOldest, DropSmallest, DropRandom, ForeignBudgetPart>;

}  // namespace gristmill
