// A matrix learned from pairs: a Mahalanobis metric or a bilinear similarity, within a cone and a ball.
#pragma once

#include "core/pairwise/linear.hpp"

namespace gristmill {

// A learned matrix W: a metric (x-x')^T W (x-x') or a similarity x^T W x'.
class MatrixLearner {
  public:
    enum class Form { metric, alignment, goodness };
    struct Settings {
        Form form = Form::metric;
        MarginLoss loss;
        Pace pace;
        Ball ball;
        bool psd = true;       // W = W^T, no negative eigenvalue
        bool average = false;
        bool identity = false; // start at the identity instead of 0
    };
    MatrixLearner(const Settings& settings, Buffer buffer, std::size_t width, std::uint64_t seed);

    // scores: receives the mean loss over the buffer before each event is learned.
    void learn(const DenseRows<double>& x, std::span<const double> labels, double* scores, const Poll& poll);
    void matrix(double* out) const;  // width x width, of the hypothesis in use
    std::size_t width() const { return stream_.rows.width(); }
    void check(const Batch& batch) const { check_dense(batch, width()); }
    const PairStream& stream() const { return stream_; }
    std::uint64_t projections() const { return projections_; }  // number of projections onto the cone or the ball
    std::size_t bytes() const;
    MatrixLearner separate() const;
    void visit(Archive& archive) {
        stream_.visit(archive);
        archive.numbers("matrix", w_, w_.size());
        archive.numbers("matrix_sum", sum_, sum_.size());
        archive.count("steps", steps_);
        archive.count("projections", projections_);
        archive.count("interior", interior_);
    }

  private:
    void event(const double* x, double label, std::size_t row, double* score);
    double metric_step(double step, double label);
    double similarity_step(double step, double label);
    bool project(bool lowered);

    Settings settings_;
    PairStream stream_;
    std::size_t stride_;             // padded(width)
    Lines<double> w_, sum_;
    std::uint64_t steps_ = 0, projections_ = 0;
    std::uint64_t interior_ = 0;     // the last W was positive definite
    Lines<double> x_, next_, difference_, products_, values_, slopes_, pull_;  // scratch
    Spectrum spectrum_;
};

}  // namespace gristmill
