#include "core/race/wide_linear.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/elementary.hpp"
#include "core/parts/losses.hpp"

namespace gristmill {

WideLinear::WideLinear(Kind kind, std::size_t places, std::size_t most)
    : kind(kind), places_(places), most_(std::max(most, places)), table_(places, fresh()), offsets_(1, fresh()) {}

std::size_t WideLinear::bytes_with(std::size_t outputs) const {
    return (size_with(outputs) + outputs) * sizeof(Weight);
}

// A third class gives each class weights of its own; of two each gets half.
void WideLinear::grow(std::size_t classes) {
    const std::size_t wanted = outputs_of(classes), before = outputs_;
    if (kind == Kind::squares || wanted <= before) return;
    std::vector<Weight> table(size_with(wanted), Weight{0, 0});
    std::vector<std::uint32_t> shared(table.size());
    auto put = [&](std::size_t output, std::uint32_t place, const Weight& weight, double sign) {
        const std::size_t to = (output * places_ + place) % table.size();
        table[to].value += static_cast<float>(sign) * weight.value;
        table[to].scale += weight.scale;
        ++shared[to];
    };
    if (table.size() == table_.size() && before > 1) {
        table = table_;  // it is full: later classes share its places
    } else {
        for (std::uint32_t place = 0; place < places_; ++place) {
            if (before == 1) put(0, place, table_[at(0, place)], -0.5), put(1, place, table_[at(0, place)], 0.5);
            else
                for (std::size_t output = 0; output < before; ++output)
                    put(output, place, table_[at(output, place)], 1);
        }
        for (std::size_t i = 0; i < table.size(); ++i) {
            if (shared[i] == 0) table[i] = fresh();
            else if (!is_gradient()) table[i].scale /= static_cast<float>(shared[i]);
        }
    }
    std::vector<Weight> offsets = offsets_;
    if (before == 1)
        offsets = {{-0.5f * offsets_[0].value, offsets_[0].scale}, {0.5f * offsets_[0].value, offsets_[0].scale}};
    offsets.resize(wanted, fresh());
    table_ = std::move(table), offsets_ = std::move(offsets), outputs_ = wanted;
}

WideLinear::Sums WideLinear::sums(const WideRow& row, std::size_t output) const {
    Sums found{offsets_[output].value, rate_of(offsets_[output])};
    for (std::size_t k = 0; k < row.count; ++k) {
        const Weight& weight = table_[at(output, row.places[k])];
        const double x = row.values[k];
        found.score += static_cast<double>(weight.value) * x;
        found.length += rate_of(weight) * x * x;
    }
    return found;
}

double WideLinear::score_of(const WideRow& row, std::size_t output) const {
    double score = offsets_[output].value;
    for (std::size_t k = 0; k < row.count; ++k)
        score += static_cast<double>(table_[at(output, row.places[k])].value) * static_cast<double>(row.values[k]);
    return score;
}

void WideLinear::change(const WideRow& row, std::size_t output, double change, double squared) {
    auto step = [&](Weight& weight, double x) {
        const double rate = rate_of(weight);
        if (is_gradient()) {
            weight.scale += static_cast<float>(squared * x * x);
            weight.value += static_cast<float>(change * rate * x);
        } else {
            weight.value += static_cast<float>(change * rate * x);
            weight.scale = static_cast<float>(std::max(rate - squared * (rate * x) * (rate * x), 0.0));
        }
    };
    for (std::size_t k = 0; k < row.count; ++k) step(table_[at(output, row.places[k])], row.values[k]);
    step(offsets_[output], 1);
}

// share: the probability of the output; gradient: that less 1 or 0.
void WideLinear::step_gradient(const WideRow& row, std::size_t output, double gradient, double share, double length) {
    const double bend = std::max(share * (1 - share), 0.25 * std::abs(gradient));
    change(row, output, -kRate * gradient / (1 + kRate * length * bend), gradient * gradient);
}

void WideLinear::learn_row(const WideRow& row, double label, double weight, double* out) {
    const double noise = kNoise / weight;
    if (kind == Kind::squares) {
        if (!begun_) base_ = label, begun_ = true;
        const Sums found = sums(row, 0);
        *out = base_ + found.score;
        const double beta = 1 / (found.length + noise);
        return change(row, 0, (label - *out) * beta, beta);
    }
    if (outputs_ == 1) {
        const Sums found = sums(row, 0);
        *out = found.score;
        if (is_gradient()) {
            const double share = Loss::sigmoid(found.score);
            return step_gradient(row, 0, weight * (share - label), share, found.length);
        }
        const double sign = label > 0 ? 1.0 : -1.0, loss = 1 - sign * found.score;
        if (!(loss > 0)) return;
        const double beta = 1 / (found.length + noise);
        return change(row, 0, loss * beta * sign, beta);
    }
    const auto own = static_cast<std::size_t>(label);
    if (is_gradient()) {
        double sum = 0;
        shares_.resize(outputs_);
        for (std::size_t c = 0; c < outputs_; ++c) out[c] = score_of(row, c);
        const double most = *std::max_element(out, out + outputs_);
        for (std::size_t c = 0; c < outputs_; ++c) sum += shares_[c] = elementary::exp(out[c] - most);
        for (std::size_t c = 0; c < outputs_; ++c) {
            const double share = shares_[c] / sum, gradient = share - (c == own ? 1.0 : 0.0);
            if (std::abs(gradient) > kLittle) step_gradient(row, c, weight * gradient, share, sums(row, c).length);
        }
        return;
    }
    std::size_t other = own == 0 ? 1 : 0;
    for (std::size_t c = 0; c < outputs_; ++c) {
        out[c] = score_of(row, c);
        if (c != own && out[c] > out[other]) other = c;
    }
    const double loss = 1 - (out[own] - out[other]);
    if (!(loss > 0)) return;
    const double beta = 1 / (sums(row, own).length + sums(row, other).length + noise);
    change(row, own, loss * beta, beta);
    change(row, other, -loss * beta, beta);
}

void WideLinear::learn(const ScaledRows& rows, std::span<const double> labels, std::size_t classes, double* out) {
    grow(classes);
    const std::size_t outputs = kind == Kind::squares ? 1 : outputs_of(classes);
    for (std::size_t r = 0; r < rows.count; ++r) learn_row(rows.wide(r), labels[r], rows.weight(r), out + r * outputs);
}

bool WideLinear::plan(const ScaledRows& row, double label, std::size_t classes, double* out) {
    if (outputs_of(classes) != outputs_ || (kind == Kind::squares && !begun_)) return false;
    planned_ = row.wide(0), label_ = label, weight_ = row.weight(0);
    scores_.resize(outputs_);
    shares_.resize(outputs_);
    scores_of(planned_, classes, out);
    return true;
}

void WideLinear::commit() { learn_row(planned_, label_, weight_, scores_.data()); }

void WideLinear::scores_of(const WideRow& row, std::size_t classes, double* out) const {
    if (kind == Kind::squares) {
        *out = begun_ ? base_ + score_of(row, 0) : 0.0;
        return;
    }
    const std::size_t wanted = outputs_of(classes);
    if (wanted != outputs_) {
        std::vector<double> own(outputs_);
        for (std::size_t c = 0; c < outputs_; ++c) own[c] = score_of(row, c);
        return spread_outputs(own.data(), 1, outputs_, wanted, out);
    }
    for (std::size_t c = 0; c < wanted; ++c) out[c] = score_of(row, c);
}

void WideLinear::score(const ScaledRows& rows, std::size_t classes, double* out) const {
    const std::size_t outputs = kind == Kind::squares ? 1 : outputs_of(classes);
    for (std::size_t r = 0; r < rows.count; ++r) scores_of(rows.wide(r), classes, out + r * outputs);
}

void WideLinear::visit(Archive& archive, std::size_t width, std::size_t classes) {
    Expert::visit(archive, width, classes);
    if (archive.loads) grow(classes);
    auto weights = [&](const char* values, const char* scales, std::vector<Weight>& list) {
        std::vector<float> value, scale;
        for (const Weight& weight : list) value.push_back(weight.value), scale.push_back(weight.scale);
        archive.numbers(values, value, list.size());
        archive.numbers(scales, scale, list.size());
        if (!archive.loads) return;
        if (!std::all_of(scale.begin(), scale.end(), [](float s) { return s >= 0; }))
            archive.refuse(scales, "holds a number out of range");
        for (std::size_t i = 0; i < list.size(); ++i) list[i] = {value[i], scale[i]};
    };
    weights("weights", "scales", table_);
    weights("offsets", "offset_scales", offsets_);
    std::uint8_t begun = begun_;
    archive.number("begun", begun);
    archive.number("base", base_);
    begun_ = begun != 0;
}

}  // namespace gristmill
