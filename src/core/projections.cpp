#include "core/projections.hpp"

#include <algorithm>
#include <cmath>

namespace gristmill {

void Projections::load(Window& window, const double* values, std::size_t stride, std::size_t count) const {
    std::size_t largest = 0;
    for (const Span& span : spans_) largest = std::max(largest, span.size());
    window.count_ = count;
    window.stride_ = Span::padded_size(largest + count);
    window.z_.resize(spans_.size());
    std::vector<const double*> from(count);
    std::vector<double*> to(count);
    for (std::size_t o = 0; o < spans_.size(); ++o) {
        const auto members = spans_[o].members();
        window.z_[o].assign(count * window.stride_, 0.0);
        window.values_.assign(count * window.stride_, 0.0);
        for (std::size_t r = 0; r < count; ++r) {
            double* gathered = window.values_.data() + r * window.stride_;
            for (std::size_t s = 0; s < members.size(); ++s) gathered[s] = values[r * stride + members[s]];
            from[r] = gathered;
            to[r] = window.row(o, r);
        }
        spans_[o].solve(from.data(), count, to.data());
    }
}

double Projections::score(Window& window, std::size_t i, std::size_t output) const {
    return spans_[output].score(window.row(output, i));
}

double Projections::average_score(Window& window, std::size_t i, std::size_t output, std::uint64_t ticks) const {
    return spans_[output].average_score(window.row(output, i), ticks);
}

double Projections::norm2() const {
    double total = 0;
    for (const Span& span : spans_) total += span.norm2();
    return total;
}

Projections::Fit Projections::fit(Window& window, std::size_t i, std::span<const double> coefs, double self) const {
    double residual2 = 0, projected2 = 0;
    for (std::size_t o = 0; o < spans_.size(); ++o) {
        if (coefs[o] == 0) continue;
        residual2 += spans_[o].residual2(window.row(o, i), self);
        projected2 += spans_[o].projected2(window.row(o, i));
    }
    return {std::sqrt(residual2), projected2};
}

void Projections::scale(double factor) {
    for (Span& span : spans_) span.scale(factor);
}

void Projections::tick() {
    for (Span& span : spans_) span.tick();
}

void Projections::fold(Window& window, std::size_t i, std::span<const double> coefs) {
    for (std::size_t o = 0; o < spans_.size(); ++o)
        if (coefs[o] != 0) spans_[o].fold(coefs[o], window.row(o, i));
}

void Projections::add(Window& window, std::size_t i, std::span<const double> coefs, double self, std::size_t slot,
                      const double* column) {
    const std::size_t left = window.count_ - i - 1;
    std::vector<const double*> rows(left);
    std::vector<double> next(left);
    for (std::size_t o = 0; o < spans_.size(); ++o) {
        if (coefs[o] == 0) continue;
        Span& span = spans_[o];
        const double residual2 = span.residual2(window.row(o, i), self);
        if (residual2 == 0) {
            span.fold(coefs[o], window.row(o, i));
            continue;
        }
        span.add(coefs[o], window.row(o, i), std::sqrt(residual2), slot);
        if (left == 0) continue;
        for (std::size_t r = 0; r < left; ++r) rows[r] = window.row(o, i + 1 + r);
        span.extend(rows.data(), left, column + i + 1, next.data());
        for (std::size_t r = 0; r < left; ++r) window.row(o, i + 1 + r)[span.size() - 1] = next[r];
    }
}

void Projections::stay_inside(double radius) {
    const double now = norm2();
    if (now > radius * radius) scale(radius / std::sqrt(now));
}

void Projections::split_output(double factor) {
    spans_.push_back(spans_[0]);
    spans_[0].scale_all(-factor);
    spans_[1].scale_all(factor);
}

void Projections::refresh(Expansion& expansion, bool mean, std::uint64_t ticks) const {
    std::vector<double> coefs(expansion.size());
    for (std::size_t o = 0; o < spans_.size(); ++o) {
        const Span& span = spans_[o];
        auto of_members = span.coefficients(mean ? span.coordinate_sum().data() : span.coordinates().data());
        std::fill(coefs.begin(), coefs.end(), 0.0);
        for (std::size_t s = 0; s < of_members.size(); ++s)
            coefs[span.members()[s]] = mean && ticks > 0 ? of_members[s] / static_cast<double>(ticks) : of_members[s];
        expansion.assign(o, coefs);
    }
}

std::size_t Projections::bytes() const {
    std::size_t total = 0;
    for (const Span& span : spans_) total += span.bytes();
    return total;
}

void Projections::restore(const Expansion& expansion, const std::vector<std::vector<std::size_t>>& members,
                          const std::vector<std::vector<double>>& g, const std::vector<std::vector<double>>& sum) {
    Lines<double> row(padded(expansion.size()));
    for (std::size_t o = 0; o < spans_.size(); ++o) {
        for (const std::size_t slot : members[o]) {
            Span& span = spans_[o];
            expansion.points().stored_row(expansion.kernel(), slot, row.data());
            Lines<double> values(Span::padded_size(span.size() + 1)), z(values.size());
            for (std::size_t s = 0; s < span.size(); ++s) values[s] = row[span.members()[s]];
            const double* from = values.data();
            double* to = z.data();
            span.solve(&from, 1, &to);
            const double self = expansion.points().stored_self(expansion.kernel(), slot);
            const double residual2 = span.residual2(z.data(), self);
            if (!(residual2 > 0)) throw std::invalid_argument("the saved points are not independent");
            span.add(0.0, z.data(), std::sqrt(residual2), slot);
        }
        spans_[o].restore(g[o], sum[o]);
    }
}

void Projections::begin() {
    marks_.clear();
    for (const Span& span : spans_) marks_.push_back(span.mark());
}

void Projections::rollback() {
    for (std::size_t o = 0; o < spans_.size(); ++o) spans_[o].rollback(std::move(marks_[o]));
    marks_.clear();
}

}  // namespace gristmill
