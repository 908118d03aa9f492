// A counter-based generator: the n-th number is a hash of (seed, n). Its state is two integers, which are saved with
// the model and give the same run on every machine.
#pragma once

#include <cstdint>

namespace gristmill {

struct Random {
    std::uint64_t seed = 0, counter = 0;

    std::uint64_t next() {  // splitmix64
        std::uint64_t z = seed + 0x9e3779b97f4a7c15u * ++counter;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    std::uint64_t below(std::uint64_t n) {  // uniform on 0..n-1, unbiased
        const std::uint64_t limit = ~std::uint64_t{0} - ~std::uint64_t{0} % n;
        for (;;)
            if (const std::uint64_t x = next(); x < limit) return x % n;
    }
    double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // in [0, 1)
};

}  // namespace gristmill
