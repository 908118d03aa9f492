// A quantile of targets from predictions of something else: each expert is shifted by the quantile of its last residuals, and the mixture
// by a correction that keeps the share of targets below it.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/archive.hpp"
#include "core/base/quantile_window.hpp"

namespace gristmill {

// The quantile of an expert's last residuals, target less prediction.
class ResidualQuantile {
  public:
    using Window = BasicQuantileWindow<250>;

    static constexpr std::size_t bytes() { return sizeof(ResidualQuantile) + Window::bytes(); }
    double shift(double quantile) const { return residuals_.size() == 0 ? 0.0 : residuals_.quantile(quantile); }
    void learn(double residual) { residuals_.push(residual); }
    void make_room() { residuals_.make_room(); }
    std::vector<double> values() const { return residuals_.values(); }
    void set(const std::vector<double>& values) {
        residuals_ = {};
        for (const double value : values) residuals_.push(value);
    }
    void visit(Archive& archive, const char* name) {
        std::vector<double> residuals = values();
        archive.numbers(name, residuals);
        if (!archive.loads) return;
        if (residuals.size() > Window::kMost) archive.refuse(name, "has too many entries");
        set(residuals);
    }

  private:
    Window residuals_;
};

// What is added to predictions so that a share `quantile` of the targets lies below them: a step up after a target above, a step down
// after one below, in units of the mean absolute residual (Gibbs, Candes, 2021). Over n events the share is off by the shift in steps
// over n.
class QuantileCorrection {
  public:
    double shift() const { return shift_; }
    void learn(double residual, double quantile) {
        const double size = std::abs(residual);
        count_ += 1;
        unit_ += (size - unit_) / std::min(count_, kMemory);
        shift_ += kStep * unit_ * (residual > 0 ? quantile : quantile - 1);
    }
    void visit(Archive& archive) {
        archive.number("correction", shift_);
        archive.number("correction_unit", unit_);
        archive.number("correction_count", count_);
        if (archive.loads && !(unit_ >= 0 && count_ >= 0)) archive.refuse("correction_unit", "is out of range");
    }
    // The weighted mean of several; the events add up.
    void add(const QuantileCorrection& part, double share) {
        shift_ += share * part.shift_, unit_ += share * part.unit_, count_ += part.count_;
    }

  private:
    static constexpr double kStep = 0.02;  // mean absolute residuals
    static constexpr double kMemory = 128;  // events in the running mean
    double shift_ = 0, unit_ = 0, count_ = 0;
};

}  // namespace gristmill
