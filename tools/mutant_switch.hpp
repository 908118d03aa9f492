#pragma once

// Operators that can be changed at run time, so that all changes of the core are compiled once (tools/mutants.py).
// `a < b` becomes `a < mutants::Place<17>{} < b`: the same precedence, and the same value until place 17 is switched on.

#include <type_traits>
#include <utility>

namespace mutants {

inline constexpr int kPlaces = 1 << 16;
inline int active = -1;
inline unsigned char reached[kPlaces] = {};

// Whether this place is switched on; it counts as reached.
template <int N>
constexpr bool is_on() {
    if (std::is_constant_evaluated()) return false;
    reached[N] = 1;
    return active == N;
}

template <int N>
struct Place {};

template <int N, class A>
struct Left {
    A&& value;
};

// old and changed operator; a pair of types that does not have the changed one keeps the old
#define GRISTMILL_SWAP(OLD, NEW)                                                                   \
    template <class A, int N>                                                                      \
    constexpr Left<N, A> operator OLD(A&& a, Place<N>) {                                           \
        return {std::forward<A>(a)};                                                               \
    }                                                                                              \
    template <int N, class A, class B>                                                             \
    constexpr auto operator OLD(Left<N, A>&& a, B&& b) {                                           \
        using Old = decltype(std::forward<A>(a.value) OLD std::forward<B>(b));                     \
        if constexpr (requires { static_cast<Old>(std::forward<A>(a.value) NEW std::forward<B>(b)); }) \
            if (is_on<N>()) return static_cast<Old>(std::forward<A>(a.value) NEW std::forward<B>(b));  \
        return std::forward<A>(a.value) OLD std::forward<B>(b);                                    \
    }

GRISTMILL_SWAP(<, <=)
GRISTMILL_SWAP(>, >=)
GRISTMILL_SWAP(<=, <)
GRISTMILL_SWAP(>=, >)
GRISTMILL_SWAP(==, !=)
GRISTMILL_SWAP(!=, ==)
GRISTMILL_SWAP(+, -)
GRISTMILL_SWAP(-, +)
GRISTMILL_SWAP(*, /)

#undef GRISTMILL_SWAP

// A condition, or its negation.
template <int N, class A>
constexpr bool condition(A&& value) {
    const bool found = static_cast<bool>(std::forward<A>(value));
    return is_on<N>() ? !found : found;
}

}  // namespace mutants

using mutants::operator<, mutants::operator>, mutants::operator<=, mutants::operator>=, mutants::operator==;
using mutants::operator!=, mutants::operator+, mutants::operator-, mutants::operator*;

extern "C" {
__attribute__((visibility("default"), used)) inline unsigned char* mutants_reached() { return mutants::reached; }
__attribute__((visibility("default"), used)) inline void mutants_switch(int place) { mutants::active = place; }
}
