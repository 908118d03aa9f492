// Projections onto the convex sets of pairwise learners, and the symmetric eigenvalue decomposition they need.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/base/batch.hpp"

namespace gristmill {

// Eigenvalues and eigenvectors of a symmetric matrix: Householder reduction to tridiagonal form, then implicit QL. One
// object reuses its memory between calls.
class Spectrum {
  public:
    // a: n rows of `stride` numbers, stride = padded(n), zeros beyond n. Not changed.
    void decompose(const double* a, std::size_t n);
    std::span<const double> values() const { return {values_.data(), n_}; }
    const double* vector(std::size_t i) const { return vectors_.data() + i * stride_; }
    // out = sum_i weight_i v_i v_i^T over the i with weight_i != 0, added to what is there
    void add_outer(std::span<const double> weights, double* out) const;

  private:
    void reduce();
    void iterate();

    std::size_t n_ = 0, stride_ = 0;
    Lines<double> work_, vectors_, p_;
    std::vector<double> values_, off_, tau_;
};

// Whether a symmetric matrix is positive definite, by Cholesky; work: n rows of stride padded(n).
bool positive_definite(const double* a, std::size_t n, double* work);

enum class BallKind { none, l2, l1, simplex, group, trace };

// A convex set by its kind and radius. For a matrix l2 is the (2,2), l1 the (1,1), group the (2,1) norm over columns.
struct Ball {
    BallKind kind = BallKind::none;
    double radius = 0;
};

// Replaces v (n numbers) by the nearest point of |v|_1 <= radius, or of the simplex {v >= 0, sum v = radius}.
void project_l1(double* v, std::size_t n, double radius);
void project_simplex(double* v, std::size_t n, double radius);
// Replaces the matrix `a` (n rows of stride padded(n), zeros beyond n) by the nearest point of the ball, or of the ball
// within the positive semidefinite cone (then `a` must be symmetric).
void project_ball(double* a, std::size_t n, const Ball& ball, Spectrum& spectrum);
void project_psd(double* a, std::size_t n, const Ball& ball, Spectrum& spectrum);

}  // namespace gristmill
