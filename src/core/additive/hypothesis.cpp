#include "core/additive/hypothesis.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/threads.hpp"
#include "core/kernels/check.hpp"

namespace gristmill {

namespace {

constexpr double kRounding = 4e-16;  // one or two ulp of each term that was added or removed

// One row as dense doubles, whatever its type.
const double* dense_row(const Batch& batch, std::size_t i, std::vector<double>& buffer) {
    if (const auto* rows = std::get_if<DenseRows<double>>(&batch)) return rows->row(i);
    if (const auto* rows = std::get_if<DenseRows<float>>(&batch)) {
        std::copy(rows->row(i), rows->row(i) + rows->width, buffer.begin());
        return buffer.data();
    }
    auto scatter = [&](const auto& rows) {
        std::fill(buffer.begin(), buffer.end(), 0.0);
        for (std::size_t k = 0; k < rows.nonzeros(i); ++k)
            buffer[static_cast<std::size_t>(rows.columns(i)[k])] = static_cast<double>(rows.values(i)[k]);
    };
    if (const auto* rows = std::get_if<SparseRows<double>>(&batch)) scatter(*rows);
    else if (const auto* rows = std::get_if<SparseRows<float>>(&batch)) scatter(*rows);
    else throw std::invalid_argument("an additive kernel compares rows of numbers");
    return buffer.data();
}

std::string described(const Coordinate& coordinate) {
    std::string text = "column " + std::to_string(coordinate.column);
    if (coordinate.other != Coordinate::kNone)
        text = "the product of " + text + " and column " + std::to_string(coordinate.other);
    return text;
}

}  // namespace

Trees::Trees(std::vector<Coordinate> coordinates, std::size_t width, bool single, bool skip_missing,
             const Composition& composition)
    : sum_(std::move(coordinates), 1),
      terms_(width, 1, single, std::holds_alternative<DropSmallest>(composition.budget)), skip_missing_(skip_missing),
      track_norm_(composition.needs.norm), limit_(limit_of(composition.budget)), row_(width),
      keys_(sum_.coordinates().size()) {}

void Trees::check(const Batch& batch) const {
    check_width(batch, width());
    Lookahead lookahead = make_lookahead(batch);
    char text[400];
    for (std::size_t i = 0; i < batch_count(batch); ++i) {
        keys(lookahead, i);
        for (std::size_t j = 0; j < width(); ++j) {
            const double x = lookahead.input[j];
            if (std::isfinite(x) || (skip_missing_ && std::isnan(x))) continue;
            std::snprintf(text, sizeof text, "Input X contains %s: row %zu, column %zu is %g; %s",
                          std::isnan(x) ? "NaN" : "infinity", i, j, x,
                          std::isnan(x) ? "impute it, or let it contribute nothing with Additive(..., missing=\"skip\")"
                                        : "drop or clip such rows first");
            throw RowError(i, text);
        }
        for (std::size_t c = 0; c < lookahead.keys.size(); ++c) {
            const double key = lookahead.keys[c];
            const char* why = std::isinf(key) ? "is not finite" : sum_.refusal(c, key);
            if (!why) continue;
            // The tests and users of scikit-learn search for "Negative values in data".
            std::snprintf(text, sizeof text, "%srow %zu: %s is %g, which %s",
                          key < 0 && std::isfinite(key) ? "Negative values in data: " : "", i,
                          described(sum_.coordinates()[c]).c_str(), key, why);
            throw RowError(i, text);
        }
    }
}

Trees::Lookahead Trees::make_lookahead(const Batch& batch) const {
    Lookahead lookahead;
    lookahead.batch = &batch;
    lookahead.row.resize(width());
    lookahead.keys.resize(sum_.coordinates().size());
    return lookahead;
}

const double* Trees::keys(Lookahead& lookahead, std::size_t i) const {
    const std::size_t at = lookahead.first + i;
    if (lookahead.at != at) {
        lookahead.at = at;
        lookahead.input = dense_row(*lookahead.batch, at, lookahead.row);
        sum_.keys(lookahead.input, lookahead.keys.data());
    }
    return lookahead.keys.data();
}

void Trees::measure(Lookahead&, std::size_t, std::span<const double>, Trial& trial) {
    if (!track_norm_) return;
    repair_norm();
    trial.norm2 = norm2_;
}

Trees::Plan Trees::plan(Lookahead&, std::size_t, Term& term, Budget& budget, Random& random) {
    Plan plan;
    if (term.step.coefficient == 0) return plan;
    plan.entry = {};  // appends: after clearing the store is not full
    const Newcomer newcomer{term.id, term.coefs, term.step.shrink, nullptr, term.self};
    if (term.step.shrink != 0) plan.entry = choose(budget, *this, newcomer, random);
    reserve_for(term.coefs, plan.entry.kind == Entry::Kind::append ? 1 : 0);
    return plan;
}

void Trees::reserve_for(std::span<const double> coefs, std::size_t more) {
    std::vector<std::size_t> touched;
    for (std::size_t o = 0; o < coefs.size(); ++o)
        if (coefs[o] != 0) touched.push_back(o);
    sum_.reserve_event(touched);
    terms_.reserve(terms_.size() + more);
    if (filled_ || terms_.size() + 1 < limit_) return;
    // From here on memory is constant: half-full nodes, a window's extra term and an event's needs are included.
    sum_.reserve_terms(limit_ + 1);
    terms_.reserve(limit_ + 1);
    filled_ = true;
}

void Trees::commit(Lookahead& lookahead, std::size_t i, const Plan& plan, const Term& term) {
    keys(lookahead, i);
    shrink(term.step.shrink);
    if (plan.entry.kind == Entry::Kind::replace) remove(plan.entry.slot);
    if (plan.entry.kind != Entry::Kind::refuse) add(lookahead, term);
    if (std::isfinite(term.step.radius) && track_norm_) stay_inside(term.step.radius);
}

void Trees::expire(Lookahead&, std::size_t, std::int64_t horizon) {
    while (terms_.size() > 0 && terms_.id(terms_.oldest()) < horizon) remove(terms_.oldest());
}

void Trees::shrink(double factor) {
    if (factor == 1) return;
    if (factor == 0) {
        sum_.clear();
        terms_.clear();
        scale_ = 1;
        norm2_ = error_bound_ = error_floor_ = 0;
        return;
    }
    scale_ *= factor;
    norm2_ *= factor * factor;
    error_bound_ *= factor * factor;
    error_floor_ *= factor * factor;
    const double size = std::abs(scale_);
    if (size > 1e-100 && size < 1e100) return;
    // Scaling by a power of two rounds nothing: trees, terms and heap keep describing the same numbers.
    int exponent = 0;
    scale_ = std::frexp(scale_, &exponent);
    const double power = std::ldexp(1.0, exponent);
    sum_.rescale(power);
    terms_.rescale(power);
}

void Trees::add(Lookahead& lookahead, const Term& term) {
    const double* keys = lookahead.keys.data();
    if (track_norm_) {
        for (std::size_t o = 0; o < outputs(); ++o) {
            if (term.coefs[o] == 0) continue;
            const double c = term.coefs[o], value = scale_ * sum_.score(o, keys);
            norm2_ += 2 * c * value + c * c * term.self;
            error_bound_ += kRounding * (std::abs(2 * c * value) + c * c * std::abs(term.self));
        }
        norm2_ = std::max(norm2_, 0.0);
    }
    lookahead.unscaled.resize(outputs());
    for (std::size_t o = 0; o < outputs(); ++o) {
        lookahead.unscaled[o] = term.coefs[o] / scale_;
        if (lookahead.unscaled[o] != 0) sum_.add(o, keys, lookahead.unscaled[o]);
    }
    terms_.append(term.id, lookahead.input, lookahead.unscaled);
}

void Trees::change_points(const RowChange& change) {
    struct Term {
        std::int64_t id;
        std::vector<double> row, coefs;
    };
    std::vector<Term> terms;  // oldest first
    for (std::size_t slot = oldest(); slot != Points::npos; slot = newer(slot)) {
        Term& term = terms.emplace_back(Term{terms_.id(slot), std::vector<double>(width()), {}});
        term.coefs.assign(terms_.coefs(slot).begin(), terms_.coefs(slot).end());
        terms_.row(slot, row_.data());
        term.row = row_;
        change(term.row.data());
        if (terms_.single())
            for (double& x : term.row) x = static_cast<float>(x);
        sum_.keys(term.row.data(), keys_.data());
        for (std::size_t c = 0; c < keys_.size(); ++c)
            if (std::isinf(keys_[c]) || sum_.refusal(c, keys_[c])) term.row = row_;
    }
    sum_.clear();
    terms_.clear();
    sum_.reserve_terms(terms.size());
    for (const Term& term : terms) {
        sum_.keys(term.row.data(), keys_.data());
        for (std::size_t o = 0; o < outputs(); ++o)
            if (term.coefs[o] != 0) sum_.add(o, keys_.data(), term.coefs[o]);
        terms_.append(term.id, term.row.data(), term.coefs);
    }
    if (!track_norm_) return;
    error_bound_ = std::numeric_limits<double>::max();
    repair_norm();
}

void Trees::remove(std::size_t slot) {
    terms_.row(slot, row_.data());
    sum_.keys(row_.data(), keys_.data());
    const double self = track_norm_ ? sum_.self(keys_.data()) : 0.0;
    for (std::size_t o = 0; o < outputs(); ++o) {
        const double stored = terms_.coefs(slot)[o], c = scale_ * stored;
        if (stored == 0) continue;
        if (track_norm_) {
            const double value = scale_ * sum_.score(o, keys_.data());
            norm2_ += c * c * self - 2 * c * value;
            error_bound_ += kRounding * (c * c * std::abs(self) + std::abs(2 * c * value));
        }
        sum_.remove(o, keys_.data(), stored);
    }
    norm2_ = std::max(norm2_, 0.0);
    terms_.remove(slot);
}

void Trees::stay_inside(double radius) {
    const double square = radius * radius;
    if (!(norm2_ > square)) return;
    shrink(radius / std::sqrt(norm2_));
    norm2_ = square;
}

// ---- the norm -----------------------------------------------------------------------------------------------------

double Trees::exact_norm2(double* absolute) const {
    std::vector<double> row(width()), keys(keys_.size());
    double total = 0;
    for (std::size_t slot = 0; slot < terms_.size(); ++slot) {
        terms_.row(slot, row.data());
        sum_.keys(row.data(), keys.data());
        for (std::size_t o = 0; o < outputs(); ++o) {
            if (terms_.coefs(slot)[o] == 0) continue;
            const double term = shown_coef(slot, o) * scale_ * sum_.score(o, keys.data());
            total += term;
            if (absolute) *absolute += std::abs(term);
        }
    }
    return total;
}

void Trees::repair_norm() {
    if (!(error_bound_ > std::max(1e-10 * norm2_, 1e3 * error_floor_))) return;
    double absolute = 0;
    norm2_ = std::max(exact_norm2(&absolute), 0.0);
    error_bound_ = error_floor_ = kRounding * absolute;
}

// ---- scores -------------------------------------------------------------------------------------------------------

void Trees::scores(const Batch& batch, double* scores) const {
    const std::size_t rows = batch_count(batch), coordinates = keys_.size(), block = 4096;
    auto score_rows = [&](std::size_t from, std::size_t to) {
        std::vector<double> row(width()), keys(std::min(to - from, block) * coordinates),
            out(std::min(to - from, block));
        for (std::size_t first = from; first < to; first += block) {
            const std::size_t count = std::min(block, to - first);
            for (std::size_t r = 0; r < count; ++r)
                sum_.keys(dense_row(batch, first + r, row), keys.data() + r * coordinates);
            for (std::size_t o = 0; o < outputs(); ++o) {
                if (sum_.compiled()) sum_.serve(o, keys.data(), count, out.data());
                else
                    for (std::size_t r = 0; r < count; ++r) out[r] = sum_.score(o, keys.data() + r * coordinates);
                for (std::size_t r = 0; r < count; ++r) scores[(first + r) * outputs() + o] = scale_ * out[r];
            }
        }
    };
    constexpr std::size_t kSteps = 64;  // cost of a tree search: a few levels, each a cache miss
    const bool alone = threads_allowed() == 1 || rows * coordinates * outputs() * kSteps < kWorthThreads;
    const std::size_t pieces = alone ? 1 : std::min(rows, 4 * threads_allowed());
    if (pieces <= 1) return score_rows(0, rows);
    parallel(pieces, [&](std::size_t p) { score_rows(rows * p / pieces, rows * (p + 1) / pieces); });
}

void Trees::components(const Batch& batch, double* out) const {
    Lookahead lookahead = make_lookahead(batch);
    const std::size_t coordinates = keys_.size();
    for (std::size_t i = 0; i < batch_count(batch); ++i) {
        keys(lookahead, i);
        for (std::size_t o = 0; o < outputs(); ++o, out += coordinates) {
            sum_.parts(o, lookahead.keys.data(), out);
            for (std::size_t c = 0; c < coordinates; ++c) out[c] *= scale_;
        }
    }
}

void Trees::gradients(const Batch& batch, double* out) const {
    Lookahead lookahead = make_lookahead(batch);
    std::vector<double> slopes(keys_.size());
    std::fill(out, out + batch_count(batch) * outputs() * width(), 0.0);
    for (std::size_t i = 0; i < batch_count(batch); ++i) {
        const double* key = keys(lookahead, i);
        for (std::size_t o = 0; o < outputs(); ++o, out += width()) {
            sum_.slopes(o, key, slopes.data());
            for (std::size_t c = 0; c < slopes.size(); ++c) {
                const Coordinate& at = sum_.coordinates()[c];
                if (std::isnan(key[c])) continue;
                const bool product = at.other != Coordinate::kNone;
                out[at.column] += scale_ * slopes[c] * (product ? lookahead.input[at.other] : 1.0);
                if (product) out[at.other] += scale_ * slopes[c] * lookahead.input[at.column];
            }
        }
    }
}

}  // namespace gristmill
