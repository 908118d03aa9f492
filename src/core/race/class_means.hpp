// The class whose mean is nearest, in units of the deviations within classes: a cheap expert for many classes.
//
// Means and deviations follow the stream; the deviations are those of all classes together. A race of its own experts adds it once
// that many classes have come that stored points, with a coefficient for each class, take much memory.
#pragma once

#include "core/race/expert.hpp"

namespace gristmill {

class ClassMeans final : public Expert {
  public:
    static constexpr std::size_t kClasses = 16;  // from which on a race adds it
    static constexpr double kShare = 0.25;  // of the memory of a race that it may take

    // most: bytes above which it leaves the race.
    ClassMeans(std::size_t width, std::size_t scaling, std::size_t most)
        : width_(width), scaling_(scaling), most_(most), spreads_(width, 1.0f) {}

    std::unique_ptr<Expert> clone() const override { return std::make_unique<ClassMeans>(*this); }
    void learn(const ScaledRows& rows, std::span<const double> labels, std::size_t classes, double* out) override;
    bool plan(const ScaledRows& row, double label, std::size_t classes, double* out) override;
    void commit() override;
    void score(const ScaledRows& rows, std::size_t classes, double* out) const override;
    void widen(std::size_t width) override;
    std::size_t bytes() const override { return runs() ? bytes_with(counts_.size()) : 0; }
    std::size_t most_bytes(std::size_t classes) const override { return fits(classes) ? bytes_with(classes) : 0; }
    // Whether so many classes leave enough memory to the others.
    bool fits(std::size_t classes) const { return runs() && bytes_with(classes) <= most_; }
    void leave(std::string why) {
        note = std::move(why);
        counts_.clear(), means_.clear();
    }
    void visit(Archive& archive, std::size_t width, std::size_t classes) override;

  private:
    static constexpr double kSlow = 0.005;  // least step of a mean, which follows drift
    static constexpr double kSlowSpread = 0.0005;
    static constexpr double kLeastSpread = 1e-6;  // of a variance
    static constexpr double kUnknown = 20.0;  // a class without samples scores this much below the lowest

    std::size_t bytes_with(std::size_t classes) const {
        return classes * (width_ * sizeof(float) + sizeof(double)) + width_ * sizeof(float);
    }
    void grow(std::size_t classes) {
        counts_.resize(classes);
        means_.resize(classes * width_);
    }
    void scores_of(const double* row, std::size_t classes, double* out) const;
    void take(const double* row, double label, double weight = 1);

    std::size_t width_, scaling_, most_;
    std::vector<double> counts_;  // by class
    std::vector<float> means_;  // a row per class
    std::vector<float> spreads_;  // variances within classes
    double repeats_ = 0;  // samples of classes that had come before
    const double* planned_ = nullptr;
    double label_ = 0, weight_ = 1;
};

}  // namespace gristmill
