// A size in bytes: how many points it holds, of as many outputs as there are by now.
#pragma once

#include "core/learner/learner.hpp"

namespace gristmill {

template <Hypothesis H>
std::size_t Learner<H>::points_within(std::size_t memory, std::size_t outputs) const {
    if constexpr (requires { hypothesis_.points_within(memory, outputs); }) {
        const std::size_t fixed = fixed_bytes();
        const std::size_t points = memory <= fixed ? 0 : hypothesis_.points_within(memory - fixed, outputs ? outputs : this->outputs());
        if (points > 0 || memory <= fixed + 4096) return points;
    }
    throw std::invalid_argument("a size in bytes needs stored points of a fixed width; give a number of points");
}

template <Hypothesis H>
std::size_t Learner<H>::least_memory(std::size_t points) const {
    std::size_t memory = 1024;
    while (points_within(memory) < points) memory += 256;
    return memory;
}

template <Hypothesis H>
void Learner<H>::fit_memory() {
    const std::size_t memory = bytes_of(budget_);
    if (memory == 0) return;
    const std::size_t points = points_within(memory);
    constexpr std::size_t kFewest = 10;
    if (points < kFewest)
        throw std::invalid_argument("a size of " + std::to_string(memory) + " bytes is too small for " +
                                    std::to_string(outputs()) + " output(s) of this width: it takes at least " +
                                    std::to_string(least_memory(kFewest)) + " bytes");
    set_size(budget_, points);
    if constexpr (requires { hypothesis_.resize(points, budget_, counts_.random); })
        hypothesis_.resize(points, budget_, counts_.random);
}

template <Hypothesis H>
void Learner<H>::resize(std::size_t memory) {
    const Budget before = budget_;
    set_bytes(budget_, memory);
    try {
        fit_memory();
    } catch (...) {
        budget_ = before;
        throw;
    }
}

}  // namespace gristmill
