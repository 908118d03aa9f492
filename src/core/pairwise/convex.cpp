#include "core/pairwise/convex.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace gristmill {

// ---- eigenvalues ----------------------------------------------------------------------------------------------------

void Spectrum::decompose(const double* a, std::size_t n) {
    n_ = n;
    stride_ = padded(n);
    work_.assign(a, a + n * stride_);
    vectors_.assign(n * stride_, 0.0);
    p_.assign(stride_, 0.0);
    values_.assign(n, 0.0);
    off_.assign(n, 0.0);
    tau_.assign(n, 0.0);
    for (std::size_t i = 0; i < n; ++i) vectors_[i * stride_ + i] = 1;
    reduce();
    iterate();
}

// Reflections from the last row up: row i keeps its entries left of the diagonal only in column i - 1. The vector of a
// reflection is stored in the emptied part of the row.
void Spectrum::reduce() {
    const auto& isa = isa_score();
    auto row = [&](std::size_t i) { return work_.data() + i * stride_; };
    for (std::size_t i = n_; i-- > 1;) {
        double* u = row(i);
        values_[i] = u[i];
        std::fill(u + i, u + stride_, 0.0);
        const double last = u[i - 1];
        const double rest = i > 1 ? isa.dot(u, u, padded(i)) - last * last : 0.0;
        if (!(rest > 0)) {  // already done
            off_[i] = last;
            tau_[i] = 0;
            continue;
        }
        const double norm = std::copysign(std::sqrt(rest + last * last), last);
        u[i - 1] = last + norm;
        off_[i] = -norm;
        const double square = rest + u[i - 1] * u[i - 1], tau = 2 / square;
        tau_[i] = tau;
        // p = tau A u, then A -= u q^T + q u^T with q = p - (tau u.p / 2) u, over the leading i x i part
        const std::size_t m = padded(i);
        for (std::size_t k = 0; k < i; ++k) p_[k] = tau * isa.dot(row(k), u, m);
        std::fill(p_.begin() + static_cast<std::ptrdiff_t>(i), p_.begin() + static_cast<std::ptrdiff_t>(m), 0.0);
        isa.axpy(-0.5 * tau * isa.dot(u, p_.data(), m), u, p_.data(), m);
        for (std::size_t k = 0; k < i; ++k) {
            isa.axpy(-u[k], p_.data(), row(k), m);
            isa.axpy(-p_[k], u, row(k), m);
        }
    }
    if (n_ > 0) values_[0] = row(0)[0];
    // Row k of vectors_ holds row k of Q^T: apply the reflections in reverse order.
    for (std::size_t i = 1; i < n_; ++i) {
        if (tau_[i] == 0) continue;
        const double* u = row(i);
        for (std::size_t k = 0; k < i; ++k) {
            double* v = vectors_.data() + k * stride_;
            isa.axpy(-tau_[i] * isa.dot(v, u, padded(i)), u, v, padded(i));
        }
    }
}

// Implicit QL on the tridiagonal matrix; each plane rotation combines two rows of vectors_.
void Spectrum::iterate() {
    constexpr double tiny = std::numeric_limits<double>::epsilon();
    auto& d = values_;
    auto& e = off_;  // e[i] couples i-1 and i
    const std::size_t n = n_;
    for (std::size_t l = 0; l < n; ++l) {
        for (int sweep = 0; sweep < 60; ++sweep) {
            std::size_t m = l;
            while (m + 1 < n && std::abs(e[m + 1]) > tiny * (std::abs(d[m]) + std::abs(d[m + 1]))) ++m;
            if (m == l) break;
            double g = (d[l + 1] - d[l]) / (2 * e[l + 1]);
            double r = std::sqrt(g * g + 1);
            g = d[m] - d[l] + e[l + 1] / (g + std::copysign(r, g));
            double s = 1, c = 1, p = 0;
            bool early = false;
            for (std::size_t i = m; i-- > l;) {
                const double f = s * e[i + 1], b = c * e[i + 1];
                r = std::sqrt(f * f + g * g);
                if (i + 2 <= m) e[i + 2] = r;
                if (r == 0) {
                    d[i + 1] -= p;
                    early = true;
                    break;
                }
                s = f / r;
                c = g / r;
                g = d[i + 1] - p;
                const double t = (d[i] - g) * s + 2 * c * b;
                p = s * t;
                d[i + 1] = g + p;
                g = c * t - b;
                double* lower = vectors_.data() + i * stride_;
                double* upper = vectors_.data() + (i + 1) * stride_;
                for (std::size_t k = 0; k < n; ++k) {
                    const double x = upper[k], y = lower[k];
                    upper[k] = s * y + c * x;
                    lower[k] = c * y - s * x;
                }
            }
            if (!early) {
                d[l] -= p;
                e[l + 1] = g;
            }
            if (m + 1 < n) e[m + 1] = 0;
        }
    }
}

void Spectrum::add_outer(std::span<const double> weights, double* out) const {
    for (std::size_t i = 0; i < n_; ++i) {
        if (weights[i] == 0) continue;
        const double* v = vector(i);
        for (std::size_t r = 0; r < n_; ++r) isa_score().axpy(weights[i] * v[r], v, out + r * stride_, stride_);
    }
}

bool positive_definite(const double* a, std::size_t n, double* work) {
    const std::size_t stride = padded(n);
    std::fill(work, work + n * stride, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
        double* row = work + i * stride;  // row of the factor; zero from j on while entry j is computed
        for (std::size_t j = 0; j < i; ++j) {
            const double* other = work + j * stride;
            row[j] = (a[i * stride + j] - isa_score().dot(row, other, padded(j + 1))) / other[j];
        }
        const double pivot = a[i * stride + i] - isa_score().dot(row, row, padded(i + 1));
        if (!(pivot > 0)) return false;
        row[i] = std::sqrt(pivot);
    }
    return true;
}

// ---- balls ----------------------------------------------------------------------------------------------------------

namespace {

// The theta with sum max(v - theta, 0) = radius.
double threshold(std::vector<double> v, double radius) {
    std::sort(v.begin(), v.end(), std::greater<>());
    double sum = 0, theta = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
        sum += v[i];
        const double candidate = (sum - radius) / static_cast<double>(i + 1);
        if (v[i] > candidate) theta = candidate;
    }
    return theta;
}

double largest_theta(const std::vector<double>& sizes, double radius) {
    const double total = std::accumulate(sizes.begin(), sizes.end(), 0.0);
    return total > radius ? std::max(0.0, threshold(sizes, radius)) : 0.0;
}

double entry_norm(const double* a, std::size_t count) { return std::sqrt(isa_score().dot(a, a, count)); }

void project_group(double* a, std::size_t n, double radius) {
    const std::size_t stride = padded(n);
    std::vector<double> norms(n, 0.0);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) norms[j] += a[i * stride + j] * a[i * stride + j];
    for (double& x : norms) x = std::sqrt(x);
    const double theta = largest_theta(norms, radius);
    if (theta == 0) return;
    for (std::size_t j = 0; j < n; ++j) {
        const double factor = norms[j] > theta ? 1 - theta / norms[j] : 0.0;
        for (std::size_t i = 0; i < n; ++i) a[i * stride + j] *= factor;
    }
}

// The singular values of A are the positive eigenvalues of [[0, A], [A^T, 0]], and an odd function of the one matrix is
// the same function of the other's singular values.
void project_trace(double* a, std::size_t n, double radius, Spectrum& spectrum) {
    const std::size_t stride = padded(n), twice = padded(2 * n);
    Lines<double> both(2 * n * twice);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) {
            both[i * twice + n + j] = a[i * stride + j];
            both[(n + j) * twice + i] = a[i * stride + j];
        }
    spectrum.decompose(both.data(), 2 * n);
    std::vector<double> sizes;
    for (const double x : spectrum.values())
        if (x > 0) sizes.push_back(x);
    const double theta = largest_theta(sizes, radius);
    if (theta == 0) return;
    std::vector<double> weights;
    for (const double x : spectrum.values()) weights.push_back(std::copysign(std::max(std::abs(x) - theta, 0.0), x));
    std::fill(both.begin(), both.end(), 0.0);
    spectrum.add_outer(weights, both.data());
    for (std::size_t i = 0; i < n; ++i)
        std::copy(both.begin() + static_cast<std::ptrdiff_t>(i * twice + n),
                  both.begin() + static_cast<std::ptrdiff_t>(i * twice + 2 * n), a + i * stride);
}

double ball_norm(const double* a, std::size_t n, BallKind kind) {
    const std::size_t stride = padded(n);
    double total = 0;
    if (kind == BallKind::l1)
        for (std::size_t k = 0; k < n * stride; ++k) total += std::abs(a[k]);
    if (kind == BallKind::group)
        for (std::size_t j = 0; j < n; ++j) {
            double square = 0;
            for (std::size_t i = 0; i < n; ++i) square += a[i * stride + j] * a[i * stride + j];
            total += std::sqrt(square);
        }
    return total;
}

void symmetrize(double* a, std::size_t n) {
    const std::size_t stride = padded(n);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < i; ++j)
            a[i * stride + j] = a[j * stride + i] = 0.5 * (a[i * stride + j] + a[j * stride + i]);
}

// Changes only eigenvalues: projects onto the cone, and within it onto the ball of a norm of the eigenvalues.
void project_spectrum(double* a, std::size_t n, const Ball& ball, Spectrum& spectrum) {
    const std::size_t stride = padded(n);
    spectrum.decompose(a, n);
    const auto values = spectrum.values();
    std::vector<double> kept(values.begin(), values.end()), change(n);
    for (double& x : kept) x = std::max(x, 0.0);
    if (ball.kind == BallKind::trace && std::accumulate(kept.begin(), kept.end(), 0.0) > ball.radius)
        project_simplex(kept.data(), n, ball.radius);
    std::size_t moved = 0, left = 0;
    for (std::size_t i = 0; i < n; ++i) {
        change[i] = kept[i] - values[i];
        moved += change[i] != 0;
        left += kept[i] != 0;
    }
    if (left < moved) {  // rebuilding needs fewer vectors than removing, and leaves no rounding of the old matrix
        std::fill(a, a + n * stride, 0.0);
        spectrum.add_outer(kept, a);
    } else {
        spectrum.add_outer(change, a);
    }
    symmetrize(a, n);
    if (ball.kind == BallKind::l2)
        if (const double norm = entry_norm(a, n * stride); norm > ball.radius)
            isa_score().scale(ball.radius / norm, a, n * stride);
}

}  // namespace

void project_l1(double* v, std::size_t n, double radius) {
    std::vector<double> sizes(n);
    for (std::size_t i = 0; i < n; ++i) sizes[i] = std::abs(v[i]);
    const double theta = largest_theta(sizes, radius);
    if (theta == 0) return;
    for (std::size_t i = 0; i < n; ++i) v[i] = sizes[i] > theta ? std::copysign(sizes[i] - theta, v[i]) : 0.0;
}

void project_simplex(double* v, std::size_t n, double radius) {
    const double theta = threshold({v, v + n}, radius);
    for (std::size_t i = 0; i < n; ++i) v[i] = std::max(v[i] - theta, 0.0);
}

void project_ball(double* a, std::size_t n, const Ball& ball, Spectrum& spectrum) {
    const std::size_t count = n * padded(n);
    switch (ball.kind) {
        case BallKind::none:
        case BallKind::simplex: return;
        case BallKind::l2:
            if (const double norm = entry_norm(a, count); norm > ball.radius)
                isa_score().scale(ball.radius / norm, a, count);
            return;
        case BallKind::l1: return project_l1(a, count, ball.radius);
        case BallKind::group: return project_group(a, n, ball.radius);
        case BallKind::trace: return project_trace(a, n, ball.radius, spectrum);
    }
}

// Norms of the entries have no closed form: Dykstra's alternating projections converge to the nearest point of the
// intersection. The last projection is onto the cone; a factor then removes rounding beyond the ball.
void project_psd(double* a, std::size_t n, const Ball& ball, Spectrum& spectrum) {
    const bool entries = ball.kind == BallKind::l1 || ball.kind == BallKind::group;
    if (!entries) return project_spectrum(a, n, ball, spectrum);
    const std::size_t count = n * padded(n);
    const Lines<double> start(a, a + count);
    project_spectrum(a, n, {}, spectrum);
    if (ball_norm(a, n, ball.kind) <= ball.radius) return;  // nearest in the cone and inside the ball: nearest in both
    std::copy(start.begin(), start.end(), a);
    Lines<double> cone(count), box(count), before(count);
    for (int round = 0; round < 1000; ++round) {
        std::copy(a, a + count, before.begin());
        for (std::size_t k = 0; k < count; ++k) a[k] += box[k];
        std::copy(a, a + count, box.begin());
        project_ball(a, n, ball, spectrum);
        for (std::size_t k = 0; k < count; ++k) box[k] -= a[k];
        for (std::size_t k = 0; k < count; ++k) a[k] += cone[k];
        std::copy(a, a + count, cone.begin());
        symmetrize(a, n);
        project_spectrum(a, n, {}, spectrum);
        double moved = 0, size = 0;
        for (std::size_t k = 0; k < count; ++k) {
            cone[k] -= a[k];
            moved += (a[k] - before[k]) * (a[k] - before[k]);
            size += a[k] * a[k];
        }
        if (moved <= 1e-20 * (1 + size)) break;
    }
    if (const double norm = ball_norm(a, n, ball.kind); norm > ball.radius)
        isa_score().scale(ball.radius / norm, a, count);
}

}  // namespace gristmill
