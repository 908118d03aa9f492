#include "core/pairwise/matrix.hpp"

namespace gristmill {

MatrixLearner::MatrixLearner(const Settings& settings, Buffer buffer, std::size_t width, std::uint64_t seed)
    : settings_(settings), stream_(std::move(buffer), width, seed), stride_(padded(width)), w_(width * stride_),
      sum_(settings.average ? width * stride_ : 0), x_(stride_), next_(width * stride_),
      values_(padded(stream_.buffer.size())), slopes_(padded(stream_.buffer.size())), pull_(stride_) {
    if (settings.form == Form::metric) {
        difference_.resize(padded(stream_.buffer.size()) * width);
        products_.resize(padded(stream_.buffer.size()) * width);
    }
    products_.resize(std::max(products_.size(), width * stride_));  // also scratch of Cholesky
    if (settings.identity)
        for (std::size_t i = 0; i < width; ++i) w_[i * stride_ + i] = 1;
    interior_ = settings.identity && settings.psd;
    if (settings.ball.kind != BallKind::none) {
        if (settings.psd) project_psd(w_.data(), width, settings.ball, spectrum_);
        else project_ball(w_.data(), width, settings.ball, spectrum_);
    }
}

MatrixLearner MatrixLearner::separate() const {
    MatrixLearner copy = *this;
    copy.stream_.buffer = stream_.buffer.separate();
    return copy;
}

// next_ -= step * mean over the buffer of slope_j d/dW phi(s_j (1 - M_j)), s_j = +1 for one label, -1 for two.
// Returns the mean loss.
double MatrixLearner::metric_step(double step, double label) {
    constexpr std::size_t lanes = kLanes<double>;
    const auto& isa = isa_score();
    const std::size_t width = stream_.rows.width(), filled = stream_.filled(), slots = padded(filled);
    const std::size_t blocks = BufferRows::blocks(filled);
    for (std::size_t b = 0; b < blocks; ++b)
        for (std::size_t k = 0; k < width; ++k) {
            const double* from = stream_.rows.lanes() + (b * width + k) * lanes;
            double* to = difference_.data() + (b * width + k) * lanes;
            for (std::size_t l = 0; l < lanes; ++l) to[l] = x_[k] - from[l];
        }
    const auto& isa_double = gristmill::isa<double>();
    // M_j = sum_i D_ji (W D_j)_i: rows of W against the differences, a matrix product
    std::vector<const double*> rows(width);
    for (std::size_t i = 0; i < width; ++i) rows[i] = w_.data() + i * stride_;
    isa_double.dots(rows.data(), width, difference_.data(), blocks, width, products_.data(), slots);
    std::fill(values_.begin(), values_.end(), 0.0);
    for (std::size_t b = 0; b < blocks; ++b)
        for (std::size_t i = 0; i < width; ++i) {
            const double* d = difference_.data() + (b * width + i) * lanes;
            const double* p = products_.data() + i * slots + b * lanes;
            for (std::size_t l = 0; l < lanes; ++l) values_[b * lanes + l] += d[l] * p[l];
        }
    std::fill(slopes_.begin(), slopes_.end(), 0.0);
    double loss = 0;
    bool any = false;
    const double share = 1 / static_cast<double>(filled);
    for (std::size_t j = 0; j < filled; ++j) {
        const double same = stream_.rows.label(j) == label ? 1.0 : -1.0, margin = same * (1 - values_[j]);
        loss += share * margin_value(settings_.loss, margin);
        slopes_[j] = step * share * same * settings_.loss.slope(margin);  // -step * (-same) * slope
        any |= slopes_[j] != 0;
    }
    if (!any) return loss;
    // next_ += sum_j slopes_j D_j D_j^T, a row at a time
    Lines<double>& weights = values_;
    for (std::size_t i = 0; i < width; ++i) {
        for (std::size_t b = 0; b < blocks; ++b) {
            const double* d = difference_.data() + (b * width + i) * lanes;
            for (std::size_t l = 0; l < lanes; ++l) weights[b * lanes + l] = slopes_[b * lanes + l] * d[l];
        }
        isa.lane_sums(difference_.data(), blocks, width, weights.data(), pull_.data());
        isa.axpy(1, pull_.data(), next_.data() + i * stride_, stride_);
    }
    for (std::size_t i = 0; i < width; ++i)
        for (std::size_t j = 0; j < i; ++j)
            next_[i * stride_ + j] = next_[j * stride_ + i] = 0.5 * (next_[i * stride_ + j] + next_[j * stride_ + i]);
    return loss;
}

// The same for phi(s_j x^T W x_j), with the mean outside phi (alignment) or inside (goodness): a matrix of rank one.
double MatrixLearner::similarity_step(double step, double label) {
    const auto& isa = isa_score();
    const std::size_t width = stream_.rows.width(), filled = stream_.filled();
    std::fill(pull_.begin(), pull_.end(), 0.0);
    for (std::size_t i = 0; i < width; ++i) isa.axpy(x_[i], w_.data() + i * stride_, pull_.data(), stride_);
    stream_.rows.dots(pull_.data(), filled, values_.data());
    std::fill(slopes_.begin(), slopes_.end(), 0.0);
    const double share = 1 / static_cast<double>(filled);
    double loss = 0, mean = 0;
    for (std::size_t j = 0; j < filled; ++j) {
        const double same = stream_.rows.label(j) == label ? 1.0 : -1.0, margin = same * values_[j];
        mean += share * margin;
        loss += share * margin_value(settings_.loss, margin);
        slopes_[j] = share * same * (settings_.form == Form::goodness ? 1.0 : settings_.loss.slope(margin));
    }
    double factor = -step;
    if (settings_.form == Form::goodness) {
        loss = margin_value(settings_.loss, mean);
        factor *= settings_.loss.slope(mean);
    }
    stream_.rows.sums(slopes_.data(), filled, pull_.data());
    if (settings_.psd) factor *= 0.5;
    for (std::size_t i = 0; i < width; ++i) {
        isa.axpy(factor * x_[i], pull_.data(), next_.data() + i * stride_, stride_);
        if (settings_.psd) isa.axpy(factor * pull_[i], x_.data(), next_.data() + i * stride_, stride_);
    }
    if (settings_.psd)
        for (std::size_t i = 0; i < width; ++i)
            for (std::size_t j = 0; j < i; ++j) next_[i * stride_ + j] = next_[j * stride_ + i];
    return loss;
}

// Projects onto the cone only if the step may have left it: not if the step only added positive terms, and not if a
// Cholesky factorisation succeeds. Returns whether W is known to be positive definite.
bool MatrixLearner::project(bool lowered) {
    const std::size_t width = stream_.rows.width();
    const Ball& ball = settings_.ball;
    const bool of_eigenvalues = ball.kind == BallKind::none || ball.kind == BallKind::l2;
    if (!settings_.psd) {
        project_ball(next_.data(), width, ball, spectrum_);
        return false;
    }
    if (of_eigenvalues) {
        bool inside = !lowered && interior_;
        // Once on the boundary of the cone W tends to stay there, so Cholesky is tried only from the interior.
        if (lowered && interior_) inside = positive_definite(next_.data(), width, products_.data());
        if (!lowered || inside) {
            if (ball.kind == BallKind::l2) project_ball(next_.data(), width, ball, spectrum_);
            return inside;
        }
    }
    ++projections_;
    project_psd(next_.data(), width, ball, spectrum_);
    double least = 1;
    for (const double x : spectrum_.values()) least = std::min(least, x);
    return of_eigenvalues && least > 0;
}

void MatrixLearner::event(const double* row, double label, std::size_t at, double* shown_score) {
    const std::size_t width = stream_.rows.width(), filled = stream_.filled();
    const auto& isa = isa_score();
    std::copy(row, row + width, x_.begin());
    const std::uint64_t t = stream_.seen + 1;
    double loss = 0;
    bool inside = interior_ != 0;
    const std::uint64_t projections = projections_;
    if (filled > 0) {
        std::copy(w_.begin(), w_.end(), next_.begin());
        if (const double keep = settings_.pace.keep(t); keep != 1) isa.scale(keep, next_.data(), next_.size());
        const double step = settings_.pace.step(t);
        loss = settings_.form == Form::metric ? metric_step(step, label) : similarity_step(step, label);
        const bool lowered = settings_.form != Form::metric || settings_.pace.keep(t) < 0 ||
                             *std::min_element(slopes_.begin(), slopes_.end()) < 0;
        if (!std::isfinite(norm_of(next_)) || !std::isfinite(loss)) diverged(at);
        inside = project(lowered);
        if (!std::isfinite(norm_of(next_))) {
            projections_ = projections;
            diverged(at);
        }
    }
    try {
        stream_.offer(x_.data(), label);
    } catch (...) {
        projections_ = projections;
        throw;
    }
    if (shown_score) *shown_score = loss;
    stream_.pairs += filled;
    if (filled == 0) return;
    if (settings_.average) {
        isa.axpy(1, w_.data(), sum_.data(), sum_.size());
        ++steps_;
    }
    interior_ = inside;
    w_.swap(next_);
}

void MatrixLearner::learn(const DenseRows<double>& x, std::span<const double> labels, double* scores,
                          const Poll& poll) {
    transact(*this, x.count, poll,
             [&](std::size_t i) { event(x.row(i), labels[i], i, scores ? scores + i : nullptr); });
}

void MatrixLearner::matrix(double* out) const {
    const std::size_t width = stream_.rows.width();
    const bool mean = settings_.average && steps_ > 0;
    const Lines<double>& from = mean ? sum_ : w_;
    const double factor = mean ? 1 / static_cast<double>(steps_) : 1.0;
    for (std::size_t i = 0; i < width; ++i)
        for (std::size_t j = 0; j < width; ++j) out[i * width + j] = factor * from[i * stride_ + j];
}

std::size_t MatrixLearner::bytes() const {
    std::size_t total = sizeof *this + stream_.rows.bytes();
    for (const auto* v : {&w_, &sum_, &x_, &next_, &difference_, &products_, &values_, &slopes_, &pull_})
        total += v->capacity() * sizeof(double);
    return total;
}

}  // namespace gristmill
