// Recursive least squares with forgetting, for one target.
//
// w minimises the sum of forget^age (y - w z)^2 + |w|^2 forget^events; P is the inverse of the weighted sum of z z'
// (and the ridge), updated by the Sherman-Morrison formula. Sums run in order, so that the numbers do not depend on the
// chunks.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/archive.hpp"

namespace gristmill {

class LeastSquares {
  public:
    LeastSquares(std::size_t width, double forget)
        : width_(width), forget_(forget), weights_(width), inverse_(width * width), gain_(width) {
        for (std::size_t i = 0; i < width; ++i) inverse_[i * width + i] = 1;
    }

    std::size_t width() const { return width_; }
    std::size_t bytes() const { return sizeof *this + (inverse_.size() + 2 * width_) * sizeof(double); }

    double score(const double* z) const {
        double sum = 0;
        for (std::size_t i = 0; i < width_; ++i) sum += weights_[i] * z[i];
        return sum;
    }

    // Predicts an event, then learns it. Updates that would produce non-finite numbers are skipped.
    double learn(const double* z, double target) {
        const double prediction = score(z);
        double spread = forget_;
        for (std::size_t i = 0; i < width_; ++i) {
            double sum = 0;
            for (std::size_t j = 0; j < width_; ++j) sum += inverse_[i * width_ + j] * z[j];
            gain_[i] = sum;
            spread += z[i] * sum;
        }
        const double off = target - prediction;
        if (!std::isfinite(spread) || !(spread > 0) || !std::isfinite(off)) return prediction;
        for (std::size_t i = 0; i < width_; ++i) weights_[i] += gain_[i] / spread * off;
        // Without new data in a direction, forgetting would make P infinite: its trace is bounded by the initial one.
        double trace = 0;
        for (std::size_t i = 0; i < width_; ++i) trace += inverse_[i * width_ + i] - gain_[i] * (gain_[i] / spread);
        const double keep = trace <= forget_ * static_cast<double>(width_) ? 1 / forget_ : 1.0;
        for (std::size_t i = 0; i < width_; ++i)
            for (std::size_t j = 0; j <= i; ++j) {
                const double value = keep * (inverse_[i * width_ + j] - gain_[i] * (gain_[j] / spread));
                inverse_[i * width_ + j] = inverse_[j * width_ + i] = value;
            }
        return prediction;
    }

    std::span<const double> weights() const { return weights_; }
    std::span<const double> inverse() const { return inverse_; }
    // requires: width() weights, and a symmetric matrix of that size.
    void set(std::vector<double> weights, std::vector<double> inverse) {
        weights_ = std::move(weights);
        inverse_ = std::move(inverse);
    }

    void visit(Archive& archive) {
        archive.numbers("weights", weights_, width_);
        archive.numbers("inverse", inverse_, width_ * width_);
    }

  private:
    std::size_t width_;
    double forget_;
    std::vector<double> weights_, inverse_;
    std::vector<double> gain_;  // scratch
};

}  // namespace gristmill
