// CHECK of the core's tests: counts conditions and prints those that are false, with file and line.
#pragma once

#include <cstdio>

inline int failures = 0, checks = 0;

#define CHECK(condition)                                                       \
    do {                                                                       \
        ++checks;                                                              \
        if (!(condition)) {                                                    \
            ++failures;                                                        \
            std::printf("%s:%d: false: %s\n", __FILE__, __LINE__, #condition); \
        }                                                                      \
    } while (false)

// Prints the counts; returns the exit code of the test program.
inline int summary(const char* name) {
    std::printf("%s: %d checks, %d failed\n", name, checks, failures);
    return failures == 0 ? 0 : 1;
}
