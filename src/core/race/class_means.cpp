#include "core/race/class_means.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/elementary.hpp"

namespace gristmill {

// The logarithm of the density of a normal distribution around each mean, which is itself uncertain, times how often the class came.
void ClassMeans::scores_of(const double* row, std::size_t classes, double* out) const {
    double lowest = 0;
    bool any = false;
    std::vector<float> precisions(width_), x(width_);
    for (std::size_t c = 0; c < width_; ++c) {
        precisions[c] = 1 / std::max(spreads_[c], static_cast<float>(kLeastSpread));
        x[c] = static_cast<float>(row[c]);
    }
    constexpr std::size_t kLanes = 8;
    for (std::size_t k = 0; k < classes; ++k) {
        if (k >= counts_.size() || counts_[k] == 0) continue;
        const float* mean = means_.data() + k * width_;
        float lanes[kLanes] = {};
        std::size_t c = 0;
        for (; c + kLanes <= width_; c += kLanes)
            for (std::size_t l = 0; l < kLanes; ++l) {
                const float off = x[c + l] - mean[c + l];
                lanes[l] += off * off * precisions[c + l];
            }
        double distance = 0;
        for (; c < width_; ++c) {
            const float off = x[c] - mean[c];
            distance += static_cast<double>(off * off * precisions[c]);
        }
        for (const float lane : lanes) distance += static_cast<double>(lane);
        const double sure = counts_[k] / (counts_[k] + 1);
        out[k] = elementary::log(counts_[k]) - 0.5 * sure * distance +
                 0.5 * static_cast<double>(width_) * elementary::log(sure);
        lowest = any ? std::min(lowest, out[k]) : out[k];
        any = true;
    }
    for (std::size_t k = 0; k < classes; ++k)
        if (k >= counts_.size() || counts_[k] == 0) out[k] = lowest - kUnknown;
}

void ClassMeans::take(const double* row, double label, double weight) {
    const auto own = static_cast<std::size_t>(label);
    float* mean = means_.data() + own * width_;
    const double before = counts_[own];
    counts_[own] += weight;
    if (before == 0) {
        for (std::size_t c = 0; c < width_; ++c) mean[c] = static_cast<float>(row[c]);
        return;
    }
    repeats_ += weight;
    const double step = std::min(1.0, std::max(weight / counts_[own], kSlow * weight)),
                 slow = std::min(1.0, std::max(weight / (repeats_ + 1), kSlowSpread * weight));
    const double sure = before / (before + 1);
    for (std::size_t c = 0; c < width_; ++c) {
        const double off = row[c] - static_cast<double>(mean[c]), spread = spreads_[c];
        spreads_[c] = static_cast<float>(spread + slow * (sure * off * off - spread));
        mean[c] = static_cast<float>(static_cast<double>(mean[c]) + step * off);
    }
}

void ClassMeans::learn(const ScaledRows& rows, std::span<const double> labels, std::size_t classes, double* out) {
    grow(classes);
    const std::size_t outputs = outputs_of(classes);
    for (std::size_t r = 0; r < rows.count; ++r) {
        const double* row = rows.scaled[scaling_] + r * width_;
        scores_of(row, classes, out + r * outputs);
        take(row, labels[r], rows.weight(r));
    }
}

bool ClassMeans::plan(const ScaledRows& row, double label, std::size_t classes, double* out) {
    if (counts_.size() != classes) return false;
    planned_ = row.scaled[scaling_], label_ = label, weight_ = row.weight(0);
    scores_of(planned_, classes, out);
    return true;
}

void ClassMeans::commit() { take(planned_, label_, weight_); }

void ClassMeans::score(const ScaledRows& rows, std::size_t classes, double* out) const {
    for (std::size_t r = 0; r < rows.count; ++r)
        scores_of(rows.scaled[scaling_] + r * width_, classes, out + r * outputs_of(classes));
}

void ClassMeans::widen(std::size_t width) {
    const std::size_t before = width_;
    std::vector<float> wider(counts_.size() * width);
    for (std::size_t k = 0; k < counts_.size(); ++k)
        std::copy_n(means_.data() + k * before, before, wider.data() + k * width);
    means_ = std::move(wider), width_ = width;
    spreads_.resize(width, 1.0f);
}

void ClassMeans::visit(Archive& archive, std::size_t width, std::size_t classes) {
    Expert::visit(archive, width, classes);
    if (archive.loads) {
        if (width_ < width) widen(width);
        if (runs()) grow(classes);
    }
    archive.numbers("counts", counts_, counts_.size());
    archive.numbers("means", means_, counts_.size() * width_);
    archive.numbers("spreads", spreads_, width_);
    archive.number("repeats", repeats_);
    if (!archive.loads) return;
    auto counts = [](const auto& list) { return std::all_of(list.begin(), list.end(), [](auto n) { return n >= 0; }); };
    if (!counts(counts_) || !counts(spreads_) || !(repeats_ >= 0))
        archive.refuse("counts", "holds a number out of range");
}

}  // namespace gristmill
