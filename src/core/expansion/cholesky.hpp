// The span of stored points in the RKHS, and a hypothesis in it.
//
// K = L L^T is the Gram matrix of the members. Row s of L is (z, delta): the coordinates of member s in the orthonormal
// basis of the members before it, and its distance from their span. So the row of a new member is known when it is
// added, existing rows never change, and no drift accumulates: L always is the Cholesky factor of K.
//
// The hypothesis is stored as its coordinates g in that basis: f(x) = <g, z(x)> with L z = k; the projection of k(x,.)
// is z(x) itself, ||f||^2 = <g, g>, and adding c P k(x,.) to f is g += c z. Coefficients of points (L^T a = g) are
// computed on demand. The substitution runs member by member in order, so that one row and a block of rows agree bit
// for bit, and a block of rows runs at the speed of a matrix product.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/base/batch.hpp"

namespace gristmill {

class CholeskySpan {
  public:
    // A squared residual below this share of k(x,x) is rounding error: the point is in the span.
    static constexpr double kDependent = 1e-10;

    std::size_t size() const { return members_.size(); }
    std::span<const std::size_t> members() const { return members_; }
    // Coordinates are padded to a multiple of both the stairs and the partial sums.
    static std::size_t padded_size(std::size_t n) { return (n + 2 * kStair - 1) / (2 * kStair) * (2 * kStair); }

    // z[r] <- coordinates of the point with kernel values values[r] at the members; both padded with zeros.
    void solve(const double* const* values, std::size_t count, double* const* z) const;

    double score(const double* z) const;
    double average_score(const double* z, std::uint64_t ticks) const;
    double projected2(const double* z) const;  // ||P k(x,.)||^2
    double residual2(const double* z, double self) const;  // squared distance of k(x,.) from the span; 0 if dependent
    double norm2() const;

    void fold(double coefficient, const double* z);  // f += c P k(x,.)
    // f += c k(x,.), and x becomes a member. requires: residual > 0.
    void add(double coefficient, const double* z, double residual, std::size_t slot);
    void scale(double factor);
    void scale_all(double factor);  // including past hypotheses
    void tick();  // adds the present f to the average
    // The coordinate on the newest member of rows with the other coordinates z[r] and the kernel value values[r].
    void extend(const double* const* z, std::size_t count, const double* values, double* out) const;

    // Coefficients of the members from coordinates: L^T a = g.
    std::vector<double> coefficients(const double* g) const;
    const Lines<double>& coordinates() const { return g_; }
    const Lines<double>& coordinate_sum() const { return sum_; }
    void restore(std::span<const double> g, std::span<const double> sum);
    // Row `member` of L with 1 / delta in place of its last number: member + 1 numbers, then zeros up to size().
    void copy_member(std::size_t member, double* out) const;
    // Adds a member from such a row; the hypothesis does not change.
    void restore_member(const double* row, std::size_t slot);

    std::size_t bytes() const;

    struct Snapshot {  // the state that a rollback restores
        std::size_t size;
        Lines<double> g, sum;
    };
    Snapshot snapshot() const { return {members_.size(), g_, sum_}; }
    void rollback(Snapshot snapshot);

  private:
    struct Stair {
        Lines<double> blocks;  // rows of L left of the triangle: block, column, lane
        Lines<double> triangle;  // by columns; 0 on and above the diagonal
        Lines<double> inverse;  // 1 / delta; 0 if there is no member yet
    };
    void grow(const double* z, double inverse, std::size_t slot);
    double& entry(std::size_t row, std::size_t column);
    double entry(std::size_t row, std::size_t column) const {
        return const_cast<CholeskySpan*>(this)->entry(row, column);
    }

    std::vector<std::size_t> members_;  // slots
    std::vector<Stair> stairs_;
    Lines<double> newest_;  // row of L of the newest member
    Lines<double> g_, sum_;
};

}  // namespace gristmill
