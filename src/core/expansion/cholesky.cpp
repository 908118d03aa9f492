#include "core/expansion/cholesky.hpp"

#include <algorithm>
#include <cmath>

namespace gristmill {

double& CholeskySpan::entry(std::size_t row, std::size_t column) {
    Stair& stair = stairs_[row / kStair];
    const std::size_t width = row / kStair * kStair, within = row % kStair;
    if (column >= width) return stair.triangle[(column - width) * kStair + within];
    constexpr std::size_t lanes = kLanes<double>;
    return stair.blocks[(within / lanes * width + column) * lanes + within % lanes];
}

void CholeskySpan::solve(const double* const* values, std::size_t count, double* const* z) const {
    std::vector<double> sums(count * kStair);
    std::vector<const double*> value_rows(count), known(z, z + count);
    std::vector<double*> z_rows(count);
    for (std::size_t t = 0; t < stairs_.size(); ++t) {
        const std::size_t width = t * kStair;
        isa<double>().dots(known.data(), count, stairs_[t].blocks.data(), kStair / kLanes<double>, width, sums.data(),
                           kStair);
        for (std::size_t r = 0; r < count; ++r) {
            value_rows[r] = values[r] + width;
            z_rows[r] = z[r] + width;
        }
        isa_score().forward(stairs_[t].triangle.data(), stairs_[t].inverse.data(), value_rows.data(), count,
                            sums.data(), z_rows.data());
    }
}

double CholeskySpan::score(const double* z) const { return isa_score().dot(g_.data(), z, g_.size()); }

double CholeskySpan::average_score(const double* z, std::uint64_t ticks) const {
    return ticks == 0 ? 0.0 : isa_score().dot(sum_.data(), z, sum_.size()) / static_cast<double>(ticks);
}

double CholeskySpan::projected2(const double* z) const { return isa_score().dot(z, z, padded_size(size())); }

double CholeskySpan::residual2(const double* z, double self) const {
    const double rest = self - projected2(z);
    return rest > kDependent * self ? rest : 0.0;
}

double CholeskySpan::norm2() const { return isa_score().dot(g_.data(), g_.data(), g_.size()); }

void CholeskySpan::fold(double coefficient, const double* z) { isa_score().axpy(coefficient, z, g_.data(), g_.size()); }

void CholeskySpan::add(double coefficient, const double* z, double residual, std::size_t slot) {
    grow(z, 1 / residual, slot);
    fold(coefficient, z);
    g_[size() - 1] += coefficient * residual;
}

void CholeskySpan::grow(const double* z, double inverse, std::size_t slot) {
    const std::size_t row = size();
    // All memory first: a rollback clears the rows of members only.
    if (row == members_.capacity()) members_.reserve(std::max<std::size_t>(1, 2 * row));
    newest_.assign(z, z + row);
    if (row == stairs_.size() * kStair) {
        const std::size_t width = row;
        g_.resize(padded_size(row + 1));
        sum_.resize(padded_size(row + 1));
        Stair stair;
        stair.blocks.resize(kStair * width);
        stair.triangle.resize(kStair * kStair);
        stair.inverse.resize(kStair);
        stairs_.push_back(std::move(stair));
    }
    for (std::size_t j = 0; j < row; ++j) entry(row, j) = z[j];
    stairs_.back().inverse[row % kStair] = inverse;
    members_.push_back(slot);
}

void CholeskySpan::copy_member(std::size_t member, double* out) const {
    for (std::size_t j = 0; j < member; ++j) out[j] = entry(member, j);
    out[member] = stairs_[member / kStair].inverse[member % kStair];
    std::fill(out + member + 1, out + size(), 0.0);
}

void CholeskySpan::restore_member(const double* row, std::size_t slot) { grow(row, row[size()], slot); }

void CholeskySpan::extend(const double* const* z, std::size_t count, const double* values, double* out) const {
    isa_score().ordered(z, count, newest_.data(), newest_.size(), out);
    const double inverse = stairs_.back().inverse[(size() - 1) % kStair];
    for (std::size_t r = 0; r < count; ++r) out[r] = (values[r] - out[r]) * inverse;
}

void CholeskySpan::scale(double factor) { isa_score().scale(factor, g_.data(), g_.size()); }

void CholeskySpan::scale_all(double factor) {
    scale(factor);
    isa_score().scale(factor, sum_.data(), sum_.size());
}

void CholeskySpan::tick() { isa_score().axpy(1.0, g_.data(), sum_.data(), sum_.size()); }

std::vector<double> CholeskySpan::coefficients(const double* g) const {
    std::vector<double> a(g, g + size());
    for (std::size_t s = size(); s-- > 0;) {
        a[s] *= stairs_[s / kStair].inverse[s % kStair];
        for (std::size_t j = 0; j < s; ++j) a[j] -= entry(s, j) * a[s];
    }
    return a;
}

void CholeskySpan::restore(std::span<const double> g, std::span<const double> sum) {
    std::copy(g.begin(), g.end(), g_.begin());
    std::copy(sum.begin(), sum.end(), sum_.begin());
}

std::size_t CholeskySpan::bytes() const {
    std::size_t doubles = g_.capacity() + sum_.capacity() + newest_.capacity();
    for (const Stair& stair : stairs_) doubles += stair.blocks.size() + stair.triangle.size() + stair.inverse.size();
    return doubles * sizeof(double) + members_.capacity() * sizeof(std::size_t);
}

void CholeskySpan::rollback(Snapshot snapshot) {
    for (std::size_t row = snapshot.size; row < size(); ++row) {
        for (std::size_t j = 0; j < row; ++j) entry(row, j) = 0;
        stairs_[row / kStair].inverse[row % kStair] = 0;
    }
    members_.resize(snapshot.size);
    stairs_.resize((snapshot.size + kStair - 1) / kStair);
    g_ = std::move(snapshot.g);
    sum_ = std::move(snapshot.sum);
}

}  // namespace gristmill
