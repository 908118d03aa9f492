#include "core/features/weights.hpp"

#include <algorithm>
#include <cmath>

#include "core/kernels/check.hpp"

namespace gristmill {

Weights::Weights(std::size_t width, const Composition& composition)
    : track_norm_(composition.needs.norm), average_(composition.average) {
    now_.width = width;
    now_.values.assign(1, Lines<double>(padded(width)));
    if (average_) now_.sum = now_.values;
}

double Weights::exact_norm2() const {
    double total = 0;
    for (const auto& w : now_.values) total += isa_score().dot(w.data(), w.data(), w.size());
    return total * now_.scale * now_.scale;
}

double Weights::norm2() const { return exact_norm2(); }

double Weights::shown_coef(std::size_t output, std::size_t i) const {
    if (!average_) return now_.scale * now_.values[output][i];
    return now_.ticks == 0 ? 0.0 : now_.sum[output][i] / static_cast<double>(now_.ticks);
}

// a feature that is not finite makes the score not finite
void Weights::check(const Batch& batch) const { check_width(batch, width()); }

const double* Weights::row(Lookahead& lookahead, std::size_t i) const {
    const std::size_t at = lookahead.first + i;
    if (lookahead.at != at) {
        lookahead.at = at;
        std::visit(
            [&](const auto& rows) {
                if constexpr (requires { rows.row(at); })
                    std::copy(rows.row(at), rows.row(at) + rows.width, lookahead.z.begin());
                else throw std::invalid_argument("mapped rows must be a table of numbers");
            },
            *lookahead.batch);
    }
    return lookahead.z.data();
}

double Weights::score(Lookahead& lookahead, std::size_t i, std::size_t output) const {
    return now_.scale * isa_score().dot(now_.values[output].data(), row(lookahead, i), padded(width()));
}

double Weights::average_score(Lookahead& lookahead, std::size_t i, std::size_t output) const {
    if (now_.ticks == 0) return 0.0;
    return isa_score().dot(now_.sum[output].data(), row(lookahead, i), padded(width())) /
           static_cast<double>(now_.ticks);
}

double Weights::self(Lookahead& lookahead, std::size_t i) const {
    const double* z = row(lookahead, i);
    return isa_score().dot(z, z, padded(width()));
}

void Weights::tick() {
    for (std::size_t o = 0; o < outputs(); ++o)
        isa_score().axpy(now_.scale, now_.values[o].data(), now_.sum[o].data(), padded(width()));
    ++now_.ticks;
}

void Weights::commit(Lookahead& lookahead, std::size_t i, const Plan&, const Term& term) {
    const Step& step = term.step;
    const bool moves = std::any_of(term.coefs.begin(), term.coefs.end(), [](double c) { return c != 0; });
    if (step.shrink == 1 && !moves && !std::isfinite(step.radius)) return;
    rescale(step.shrink);
    if (moves)
        for (std::size_t o = 0; o < outputs(); ++o)
            if (term.coefs[o] != 0)
                isa_score().axpy(term.coefs[o] / now_.scale, row(lookahead, i), now_.values[o].data(), padded(width()));
    if (!track_norm_) return;
    now_.norm2 = exact_norm2();
    if (now_.norm2 > step.radius * step.radius) {
        rescale(step.radius / std::sqrt(now_.norm2));
        now_.norm2 = exact_norm2();
    }
}

void Weights::rescale(double factor) {
    now_.scale *= factor;
    // A scale far from 1 costs digits, and 0 costs all: it is multiplied into the weights.
    if (std::abs(now_.scale) > 1e-9 && std::abs(now_.scale) < 1e9) return;
    for (auto& w : now_.values) isa_score().scale(now_.scale, w.data(), w.size());
    now_.scale = 1;
}

void Weights::scale_outputs(std::span<const double> factors) {
    for (auto* lines : {&now_.values, &now_.sum})
        for (std::size_t o = 0; o < lines->size(); ++o)
            isa_score().scale(factors[o], (*lines)[o].data(), (*lines)[o].size());
    if (track_norm_) now_.norm2 = exact_norm2();
}

void Weights::add_output() {
    now_.values.emplace_back(padded(width()));
    if (average_) now_.sum.emplace_back(padded(width()));
}

void Weights::split_output() {
    for (auto* lines : {&now_.values, &now_.sum}) {
        if (lines->empty()) continue;
        auto negative = (*lines)[0];
        isa_score().scale(-0.5, negative.data(), negative.size());
        isa_score().scale(0.5, (*lines)[0].data(), (*lines)[0].size());
        lines->insert(lines->begin(), std::move(negative));
    }
    now_.norm2 = exact_norm2();
}

void Weights::scores(const Batch& batch, double* out) const {
    Lookahead lookahead = make_lookahead(batch);
    for (std::size_t i = 0; i < batch_count(batch); ++i)
        for (std::size_t o = 0; o < outputs(); ++o)
            *out++ = average_ ? average_score(lookahead, i, o) : score(lookahead, i, o);
}

void Weights::visit(Archive& archive, std::uint64_t) {
    archive.table("weights", now_.values, outputs(), width());
    archive.table("sum", now_.sum, now_.sum.size(), width());
    archive.number("scale", now_.scale);
    archive.count("ticks", now_.ticks);
    if (!archive.loads) return;
    if (now_.scale == 0) archive.refuse("scale", "is 0");
    now_.norm2 = exact_norm2();  // computed from the same weights, so with the same bits as when it was saved
}

}  // namespace gristmill
