// Linear experts with explicit weights over sparse rows of very many columns, with a step size of its own for each weight.
//
// logistic: gradient steps on the logarithmic loss, by the squares of earlier gradients (AdaGrad, Duchi, Hazan, Singer, 2011),
// shortened so that a step does not overshoot. aggressive: Passive-Aggressive steps weighed by the confidence in each weight (AROW,
// Crammer, Kulesza, Dredze, 2009). squares: the same for numbers, of which a step is linear in the target, so that units do not
// matter. Weights of (class, place) share one table of bounded size; of more than two classes only those are changed whose
// probability, or margin, is wrong.
#pragma once

#include "core/race/expert.hpp"

namespace gristmill {

class WideLinear final : public Expert {
  public:
    enum class Kind { logistic, aggressive, squares };

    // most: weights that fit into the memory of this expert.
    WideLinear(Kind kind, std::size_t places, std::size_t most);

    std::unique_ptr<Expert> clone() const override { return std::make_unique<WideLinear>(*this); }
    void learn(const ScaledRows& rows, std::span<const double> labels, std::size_t classes, double* out) override;
    bool plan(const ScaledRows& row, double label, std::size_t classes, double* out) override;
    void commit() override;
    void score(const ScaledRows& rows, std::size_t classes, double* out) const override;
    std::size_t bytes() const override { return bytes_with(outputs_); }
    std::size_t most_bytes(std::size_t classes) const override { return bytes_with(outputs_of(classes)); }
    bool is_wide() const override { return true; }
    void visit(Archive& archive, std::size_t width, std::size_t classes) override;

    static constexpr std::size_t kWeightBytes = 2 * sizeof(float);

    Kind kind;

  private:
    struct Weight {
        float value = 0;
        float scale;  // sum of squared gradients, or variance
    };
    static constexpr double kRate = 0.5;  // of gradient steps
    static constexpr double kFirst = 1.0;  // added to sums of squared gradients
    static constexpr double kNoise = 1.0;  // r of AROW
    static constexpr double kLittle = 0.01;  // probabilities of other classes up to this are left as they are

    // A sum over the weights of one output: its score, and the sum of squares times step sizes.
    struct Sums {
        double score, length;
    };
    bool is_gradient() const { return kind == Kind::logistic; }
    Weight fresh() const { return {0, is_gradient() ? 0.0f : 1.0f}; }
    std::size_t bytes_with(std::size_t outputs) const;
    std::size_t size_with(std::size_t outputs) const { return std::min(places_ * outputs, most_); }
    std::size_t at(std::size_t output, std::uint32_t place) const { return (output * places_ + place) % table_.size(); }
    double rate_of(const Weight& weight) const {
        return is_gradient() ? 1 / std::sqrt(kFirst + static_cast<double>(weight.scale))
                             : static_cast<double>(weight.scale);
    }
    void grow(std::size_t classes);
    Sums sums(const WideRow& row, std::size_t output) const;
    double score_of(const WideRow& row, std::size_t output) const;
    // Adds change * step size * x to the weights of an output; `squared`: what the squares of x add to, or take from, their scales.
    void change(const WideRow& row, std::size_t output, double change, double squared);
    void step_gradient(const WideRow& row, std::size_t output, double gradient, double share, double length);
    void learn_row(const WideRow& row, double label, double weight, double* out);
    void scores_of(const WideRow& row, std::size_t classes, double* out) const;

    std::size_t places_, most_, outputs_ = 1;
    std::vector<Weight> table_, offsets_;  // offsets: one per output
    double base_ = 0;  // the first target
    bool begun_ = false;
    WideRow planned_{};
    double label_ = 0, weight_ = 1;
    std::vector<double> scores_, shares_;
    std::vector<Sums> sums_;
};

}  // namespace gristmill
