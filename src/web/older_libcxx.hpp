// What C++20 has and the C++ library of Debian 12's Emscripten (3.1.6) has not yet; compiled in before every file for browsers.
#pragma once

#include <bit>
#include <version>

#ifndef __cpp_lib_bit_cast
namespace std {
template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
    return __builtin_bit_cast(To, from);
}
}  // namespace std
#endif
