// Classes that come in mid-stream: each enters at the event that brings it.
#pragma once

#include "core/learner/learner.hpp"

namespace gristmill {

template <Hypothesis H>
bool Learner<H>::brings_output(std::span<const double> labels, std::size_t classes) const {
    if (task_ != Task::classification) return false;
    const auto most = static_cast<double>(std::max<std::size_t>(counts_.classes, 2));
    return classes > std::max<std::size_t>(counts_.classes, 2) ||
           std::any_of(labels.begin(), labels.end(), [&](double code) { return code >= most; });
}

template <Hypothesis H>
void Learner<H>::add_classes(Chunk& chunk, std::size_t classes, std::size_t at) {
    const std::size_t before = outputs();
    while (counts_.classes < classes) add_class();
    const std::size_t now = outputs();
    if (now == before) return;
    resize(chunk);
    if (!chunk.out) return;
    std::vector<double> wider(batch_count(chunk.batch) * now);
    for (std::size_t r = 0; r < at; ++r) {
        const double* old = chunk.out->data() + r * before;
        double* fresh = wider.data() + r * now;
        if (before == 1) fresh[0] = -0.5 * old[0], fresh[1] = 0.5 * old[0];
        else std::copy(old, old + before, fresh);
    }
    chunk.out->swap(wider);
}

template <Hypothesis H>
void Learner<H>::add_class() {
    if (++counts_.classes <= 2) return;
    if (outputs() == 1) {
        hypothesis_.split_output();
        for (auto* b : {&intercept_, &intercept_sum_}) *b = {-0.5 * (*b)[0], 0.5 * (*b)[0]};
        calibration_.split();
    }
    hypothesis_.add_output();
    calibration_.add();
    intercept_.push_back(0);
    intercept_sum_.push_back(0);
    fit_memory();
}

}  // namespace gristmill
