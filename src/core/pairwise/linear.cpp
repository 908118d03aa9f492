#include "core/pairwise/linear.hpp"

#include "core/kernels/check.hpp"

namespace gristmill {

void diverged(std::size_t row) {
    throw RowError(
        row, "row " + std::to_string(row) +
                 ": the hypothesis is no longer finite (learning diverged); use a smaller rate (or C), a radius, or "
                 "smaller inputs");
}

void check_dense(const Batch& batch, std::size_t width) {
    check_width(batch, width);
    if (!std::holds_alternative<DenseRows<double>>(batch))
        throw std::invalid_argument("rows must be a table of float64");
    check_rows(batch, Kernel({Node{Op::linear}}));
}

double margin_value(const MarginLoss& loss, double u) {
    const double gap = loss.margin - u;
    switch (loss.kind) {
        case MarginKind::hinge: return std::max(gap, 0.0);
        case MarginKind::squared_hinge: return gap > 0 ? gap * gap : 0.0;
        case MarginKind::logistic: return std::max(-u, 0.0) + elementary::log1p(elementary::exp(-std::abs(u)));
        case MarginKind::exponential: return elementary::exp(-u);
    }
    return 0;
}

// ---- AUC, linear ----------------------------------------------------------------------------------------------------

LinearRanker::LinearRanker(const Settings& settings, Buffer buffer, std::size_t width, std::uint64_t seed)
    : settings_(settings), stream_(std::move(buffer), 0, seed), rows_(stream_.buffer.size(), width), w_(padded(width)),
      sum_(settings.average ? padded(width) : 0), x_(padded(width)), next_(padded(width)),
      scores_(padded(stream_.buffer.size())), slopes_(padded(stream_.buffer.size())), pull_(padded(width)) {}

LinearRanker LinearRanker::separate() const {
    LinearRanker copy = *this;
    copy.stream_.buffer = stream_.buffer.separate();
    return copy;
}

double LinearRanker::shown(const double* x) const {
    if (!settings_.average) return isa_score().dot(w_.data(), x, w_.size());
    return steps_ == 0 ? 0.0 : isa_score().dot(sum_.data(), x, sum_.size()) / static_cast<double>(steps_);
}

void LinearRanker::event(const double* row, double label, std::size_t at, double* shown_score) {
    const std::size_t width = rows_.width(), filled = stream_.filled();
    const auto& isa = isa_score();
    std::copy(row, row + width, x_.begin());
    const double score = isa.dot(w_.data(), x_.data(), w_.size());
    if (!std::isfinite(score)) diverged(at);
    if (shown_score) *shown_score = shown(x_.data());
    // Only pairs of opposite labels have a slope.
    const BufferRows& others = rows_.side(label < 0);
    const std::size_t count = rows_.count(label < 0);
    Order order;
    double slope_sum = 0;
    if (count > 0) {
        others.dots(w_.data(), count, scores_.data());
        for (std::size_t j = 0; j < count; ++j) order.pair(slopes_[j] = label * (score - scores_[j]));
        slope_sum = settings_.loss.slopes(slopes_.data(), count);
        std::fill(slopes_.begin() + static_cast<std::ptrdiff_t>(count),
                  slopes_.begin() + static_cast<std::ptrdiff_t>(padded(count)), 0.0);
    }
    const std::uint64_t t = stream_.seen + 1;
    const double keep = settings_.pace.keep(t);
    std::copy(w_.begin(), w_.end(), next_.begin());
    if (keep != 1) isa.scale(keep, next_.data(), next_.size());
    if (slope_sum != 0) {
        // gradient = mean of slope_j y (x - x_j)
        const double step =
            settings_.pace.step(t) * label / static_cast<double>(settings_.opposite_only ? count : filled);
        others.sums(slopes_.data(), count, pull_.data());
        isa.axpy(step, pull_.data(), next_.data(), next_.size());
        isa.axpy(-step * slope_sum, x_.data(), next_.data(), next_.size());
    }
    if (const double norm = norm_of(next_); !std::isfinite(norm)) diverged(at);
    else if (settings_.ball.kind == BallKind::l2 && norm > settings_.ball.radius)
        isa.scale(settings_.ball.radius / norm, next_.data(), next_.size());
    if (settings_.ball.kind == BallKind::l1) project_l1(next_.data(), width, settings_.ball.radius);
    stream_.offer(x_.data(), label, width);
    // Nothing from here on can fail. The average is over the hypotheses with a non-empty buffer: h_1 .. h_{n-1}.
    rows_.apply(stream_.change, x_.data(), label);
    order.commit(stream_, label);
    if (filled > 0 && settings_.average) {
        isa.axpy(1, w_.data(), sum_.data(), sum_.size());
        ++steps_;
    }
    w_.swap(next_);
}

void LinearRanker::learn(const DenseRows<double>& x, std::span<const double> labels, double* scores, const Poll& poll) {
    transact(*this, x.count, poll,
             [&](std::size_t i) { event(x.row(i), labels[i], i, scores ? scores + i : nullptr); });
}

void LinearRanker::score(const DenseRows<double>& x, double* scores) const {
    Lines<double> row(w_.size());
    for (std::size_t i = 0; i < x.count; ++i) {
        std::copy(x.row(i), x.row(i) + x.width, row.begin());
        scores[i] = shown(row.data());
    }
}

void LinearRanker::weights(double* out) const {
    for (std::size_t j = 0; j < rows_.width(); ++j)
        out[j] = !settings_.average ? w_[j] : steps_ == 0 ? 0.0 : sum_[j] / static_cast<double>(steps_);
}

std::size_t LinearRanker::bytes() const {
    std::size_t total = sizeof *this + stream_.rows.bytes() + rows_.bytes();
    for (const auto* v : {&w_, &sum_, &x_, &next_, &scores_, &slopes_, &pull_}) total += v->capacity() * sizeof(double);
    return total;
}

// ---- AUC, two reservoirs --------------------------------------------------------------------------------------------

TwoReservoirRanker::TwoReservoirRanker(const Settings& settings, std::size_t size, std::size_t width,
                                       std::uint64_t seed)
    : settings_(settings), width_(width), w_(padded(width)), x_(padded(width)), next_(padded(width)),
      scores_(padded(size / 2)), slopes_(padded(size / 2)), pull_(padded(width)) {
    for (int side = 0; side < 2; ++side) sides_.emplace_back(Buffer(Policy::reservoir, size / 2), width, seed);
    random_.seed = seed;
}

void TwoReservoirRanker::event(const double* row, double label, std::size_t at, double* shown_score) {
    const auto& isa = isa_score();
    PairStream& own = sides_[label > 0];
    PairStream& other = sides_[label < 0];
    const std::size_t filled = other.filled();
    std::copy(row, row + width_, x_.begin());
    const double score = isa.dot(w_.data(), x_.data(), w_.size());
    if (!std::isfinite(score)) diverged(at);
    if (shown_score) *shown_score = score;
    // A pair of the reservoir represents this many pairs of the stream. 1/2 comes from the objective |w|^2/2 + C sum /
    // 2.
    const double weight = 0.5 * settings_.aggressiveness *
                          std::max(1.0, static_cast<double>(other.seen) / static_cast<double>(other.buffer.size()));
    std::copy(w_.begin(), w_.end(), next_.begin());
    std::fill(slopes_.begin(), slopes_.end(), 0.0);
    Order order;
    if (filled > 0) other.rows.dots(w_.data(), filled, scores_.data());
    double active = 0;
    for (std::size_t j = 0; j < filled; ++j) {
        const double margin = label * (score - scores_[j]);
        order.pair(margin);
        if (settings_.sequential) {
            other.rows.copy_out(j, pull_.data());
            for (std::size_t k = 0; k < width_; ++k) pull_[k] = x_[k] - pull_[k];
            const double loss = 1 - label * isa.dot(next_.data(), pull_.data(), pull_.size());
            const double square = isa.dot(pull_.data(), pull_.data(), pull_.size());
            if (loss > 0 && square > 0)
                isa.axpy(label * std::min(weight, loss / square), pull_.data(), next_.data(), next_.size());
        } else if (margin <= 1) {
            slopes_[j] = 1;
            ++active;
        }
    }
    if (active > 0) {
        other.rows.sums(slopes_.data(), filled, pull_.data());
        isa.axpy(-label * weight, pull_.data(), next_.data(), next_.size());
        isa.axpy(label * weight * active, x_.data(), next_.data(), next_.size());
    }
    if (!std::isfinite(norm_of(next_))) diverged(at);
    order.commit(sides_[0], label);
    own.random = random_;  // one generator for both reservoirs, so that exchanging the classes changes nothing
    own.offer(x_.data(), label);
    random_ = own.random;
    ++seen_;
    w_.swap(next_);
}

void TwoReservoirRanker::learn(const DenseRows<double>& x, std::span<const double> labels, double* scores,
                               const Poll& poll) {
    transact(*this, x.count, poll,
             [&](std::size_t i) { event(x.row(i), labels[i], i, scores ? scores + i : nullptr); });
}

void TwoReservoirRanker::score(const DenseRows<double>& x, double* scores) const {
    Lines<double> row(w_.size());
    for (std::size_t i = 0; i < x.count; ++i) {
        std::copy(x.row(i), x.row(i) + x.width, row.begin());
        scores[i] = isa_score().dot(w_.data(), row.data(), w_.size());
    }
}

std::size_t TwoReservoirRanker::bytes() const {
    std::size_t total = sizeof *this + sides_[0].rows.bytes() + sides_[1].rows.bytes() + 2 * sizeof(PairStream);
    for (const auto* v : {&w_, &x_, &next_, &scores_, &slopes_, &pull_}) total += v->capacity() * sizeof(double);
    return total;
}

}  // namespace gristmill
