#include "core/structured/joint.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace gristmill {

JointExpansion::JointExpansion(const JointSettings& settings, Kernel kernel, std::unique_ptr<Points> points,
                               std::uint64_t seed)
    : settings_(settings), kernel_(std::move(kernel)), points_(std::move(points)) {
    random_.seed = seed;
}

std::vector<double> JointExpansion::weights(bool average) const {
    if (!average) return coef_;
    std::vector<double> mean(total_);
    for (double& w : mean) w /= static_cast<double>(std::max<std::uint64_t>(ticks_, 1));
    return mean;
}

std::size_t JointExpansion::bytes() const {
    const std::size_t numbers = ids_.size() + slots_.size() + first_row_.size() + of_.size() + first_symbol_.size() +
                                coef_.size() + total_.size();
    std::size_t points = 0;
    if (points_) {
        points = points_->bytes_for(points_->size());
        if (points == 0) points = points_->bytes();
    }
    return points + 8 * numbers + 4 * symbols_.size() + (settings_.projects ? span_.bytes() : 0);
}

void JointExpansion::row_scores(std::span<const double> weights, const double* values, std::size_t stride,
                                std::size_t rows, std::size_t symbols, double* out) const {
    std::fill_n(out, rows * symbols, 0.0);
    for (std::size_t t = 0; t < rows; ++t, out += symbols, values += stride)
        for (std::size_t i = 0; i < functions(); ++i) {
            const std::size_t* slot = slots_.data() + first_row_[of_[i]];
            const double w = weights[i];
            for (const std::int32_t symbol : label(i)) out[symbol] += w * values[*slot++];
        }
}

void JointExpansion::transition_scores(std::span<const double> weights, std::size_t symbols, double* out) const {
    std::fill_n(out, symbols * symbols, 0.0);
    for (std::size_t i = 0; i < functions(); ++i) {
        const Label y = label(i);
        for (std::size_t t = 1; t < y.size(); ++t)
            out[static_cast<std::size_t>(y[t - 1]) * symbols + static_cast<std::size_t>(y[t])] +=
                settings_.transitions * weights[i];
    }
}

namespace {

// How many transitions two labels share.
double shared_transitions(Label a, Label b) {
    std::size_t count = 0;
    for (std::size_t s = 1; s < a.size(); ++s)
        for (std::size_t t = 1; t < b.size(); ++t) count += a[s] == b[t] && a[s - 1] == b[t - 1];
    return static_cast<double>(count);
}

}  // namespace

void JointExpansion::row(Label label, const double* values, std::size_t stride, double* out) const {
    for (std::size_t i = 0; i < functions(); ++i) {
        const Label other = this->label(i);
        const std::size_t* slots = slots_.data() + first_row_[of_[i]];
        double sum = 0;
        for (std::size_t t = 0; t < label.size(); ++t)
            for (std::size_t s = 0; s < other.size(); ++s)
                if (label[t] == other[s]) sum += values[t * stride + slots[s]];
        if (label.size() > 1 && settings_.transitions > 0)
            sum += settings_.transitions * shared_transitions(label, other);
        out[i] = sum;
    }
}

void JointExpansion::tick() {
    for (std::size_t i = 0; i < coef_.size(); ++i) total_[i] += coef_[i];
    ++ticks_;
}

void JointExpansion::learn(JointSample& x, Label y, Label rival, double margin, double cost, double weight) {
    if (settings_.average) tick();
    if (settings_.rule == JointSettings::Rule::implicit) implicit(x, y, rival, margin, cost, weight);
    else if (settings_.projects) project(x, y, rival, margin, weight);
    else if (!(margin > 0)) add(x, std::array{Term{y, weight}, Term{rival, -weight}});
    ++seen_;
}

// ILK: the step that makes the margin the cost, as far as the limit lets it.
void JointExpansion::implicit(JointSample& x, Label y, Label rival, double margin, double cost, double weight) {
    const double keep = 1 / (1 + settings_.rate * settings_.reg);  // 1 - tau in the paper
    const double limit = keep * settings_.rate * settings_.C * weight;
    const double extent = x.cross(y, y) + x.cross(rival, rival) - 2 * x.cross(y, rival);
    const double step = extent > 0 ? std::min(std::max((cost - keep * margin) / extent, 0.0), limit) : 0.0;
    if (keep != 1)
        for (double& c : coef_) c *= keep;
    if (step != 0) add(x, std::array{Term{y, step}, Term{rival, -step}});
}

// Projectron and Projectron++ on K((x, y), .) - K((x, r), .).
void JointExpansion::project(JointSample& x, Label y, Label rival, double margin, double weight) {
    const bool aggressive = settings_.rule == JointSettings::Rule::margin_projection;
    if (margin > (aggressive ? 1 : 0)) return;
    const std::size_t size = CholeskySpan::padded_size(functions() + 2);  // two functions may be added
    Lines<double> rows(2 * size), z(2 * size), difference(size);
    double *own = z.data(), *other = own + size;
    const std::array<const double*, 2> values{rows.data(), rows.data() + size};
    const std::array<double*, 2> coordinates{own, other};
    x.row(y, rows.data());
    x.row(rival, rows.data() + size);
    span_.solve(values.data(), 2, coordinates.data());
    const double own_self = x.cross(y, y), rival_self = x.cross(rival, rival), between = x.cross(y, rival);
    for (std::size_t j = 0; j < size; ++j) difference[j] = own[j] - other[j];
    const double self = own_self + rival_self - 2 * between;
    const double residual = std::sqrt(span_.residual2(difference.data(), self));
    auto fold = [&](double step) {
        span_.fold(step, difference.data());
        refresh();
    };
    if (margin > 0) {
        const double loss = 1 - margin, length2 = span_.projected2(difference.data());
        double ratio = residual > 0 ? residual / settings_.tolerance : 0.0;  // delta / eta; infinite if eta is 0
        if (settings_.squared) ratio *= ratio;
        if (loss < ratio || !(length2 > 0)) return;
        return fold(std::min({loss / length2, 2 * (loss - ratio) / length2, weight}));
    }
    if (residual <= settings_.tolerance) return fold(weight);
    // Both functions are added, (x, y) first; one that is in the span already is folded.
    const double own_rest = span_.residual2(own, own_self);
    if (own_rest > 0) {
        span_.add(weight, own, std::sqrt(own_rest), functions());
        append_function(y, 0.0);
        const double* known = other;
        span_.extend(&known, 1, &between, other + functions() - 1);
    } else {
        span_.fold(weight, own);
    }
    const double other_rest = span_.residual2(other, rival_self);
    if (other_rest > 0) {
        span_.add(-weight, other, std::sqrt(other_rest), functions());
        append_function(rival, 0.0);
    } else {
        span_.fold(-weight, other);
    }
    if (own_rest > 0 || other_rest > 0) append(x, {});
    refresh();
}

void JointExpansion::add(JointSample& x, std::span<const Term> terms) {
    using Drop = JointSettings::Drop;
    if (settings_.drop == Drop::random && size() >= settings_.size) {
        // uniform: every input so far has the same chance to be stored
        ++draws_;
        const std::uint64_t newcomers = settings_.uniform ? draws_ : 0;
        const std::uint64_t victim = random_.below(size() + newcomers);
        if (victim >= size()) return;
        remove(x, victim);
    }
    append(x, terms);
    if (size() <= settings_.size) return;
    if (settings_.drop == Drop::oldest) remove(x, 0);
    if (settings_.drop == Drop::smallest) {
        std::vector<double> largest(size());
        for (std::size_t i = 0; i < functions(); ++i) largest[of_[i]] = std::max(largest[of_[i]], std::abs(coef_[i]));
        remove(x, static_cast<std::size_t>(std::min_element(largest.begin(), largest.end()) - largest.begin()));
    }
}

// The input enters, with its functions; those without a term here have been appended before.
void JointExpansion::append(JointSample& x, std::span<const Term> terms) {
    for (const Term& term : terms) append_function(term.label, term.coef);
    for (const std::size_t slot : x.store()) slots_.push_back(slot);
    first_row_.push_back(slots_.size());
    ids_.push_back(static_cast<std::int64_t>(seen_));
}

void JointExpansion::append_function(Label label, double coef) {
    of_.push_back(size());
    symbols_.insert(symbols_.end(), label.begin(), label.end());
    first_symbol_.push_back(symbols_.size());
    coef_.push_back(coef);
    total_.push_back(0.0);
}

void JointExpansion::remove(JointSample& x, std::size_t input) {
    if (points_) {
        for (std::size_t r = first_row_[input]; r < first_row_[input + 1]; ++r) {
            const std::size_t slot = slots_[r], last = points_->size() - 1;
            points_->remove(slot);
            x.removed(slot);
            std::replace(slots_.begin(), slots_.end(), last, slot);
        }
    }
    const std::size_t rows = first_row_[input + 1] - first_row_[input];
    slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(first_row_[input]),
                 slots_.begin() + static_cast<std::ptrdiff_t>(first_row_[input + 1]));
    first_row_.erase(first_row_.begin() + static_cast<std::ptrdiff_t>(input));
    for (std::size_t j = input; j < first_row_.size(); ++j) first_row_[j] -= rows;
    ids_.erase(ids_.begin() + static_cast<std::ptrdiff_t>(input));
    // The functions of one input follow each other.
    const auto from = std::lower_bound(of_.begin(), of_.end(), input), to = std::upper_bound(from, of_.end(), input);
    const std::ptrdiff_t a = from - of_.begin(), b = to - of_.begin();
    const std::size_t first = first_symbol_[static_cast<std::size_t>(a)],
                      end = first_symbol_[static_cast<std::size_t>(b)];
    of_.erase(from, to);
    for (std::size_t i = static_cast<std::size_t>(a); i < of_.size(); ++i) --of_[i];
    symbols_.erase(symbols_.begin() + static_cast<std::ptrdiff_t>(first),
                   symbols_.begin() + static_cast<std::ptrdiff_t>(end));
    first_symbol_.erase(first_symbol_.begin() + a, first_symbol_.begin() + b);
    for (std::size_t i = static_cast<std::size_t>(a); i < first_symbol_.size(); ++i) first_symbol_[i] -= end - first;
    coef_.erase(coef_.begin() + a, coef_.begin() + b);
    total_.erase(total_.begin() + a, total_.begin() + b);
}

std::vector<std::int32_t> JointExpansion::compact() {
    std::vector<std::int32_t> used(symbols_);
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    for (std::int32_t& symbol : symbols_)
        symbol = static_cast<std::int32_t>(std::lower_bound(used.begin(), used.end(), symbol) - used.begin());
    return used;
}

JointExpansion::State JointExpansion::state() const {
    State s{ids_, first_row_, of_, first_symbol_, symbols_, coef_, total_, {}, seen_, ticks_, draws_, random_};
    if (settings_.projects) {
        s.coef.assign(span_.coordinates().begin(),
                      span_.coordinates().begin() + static_cast<std::ptrdiff_t>(functions()));
        s.factor.resize(functions() * functions());
        for (std::size_t i = 0; i < functions(); ++i) span_.copy_member(i, s.factor.data() + i * functions());
    }
    return s;
}

void JointExpansion::restore(const State& s) {
    ids_ = s.ids;
    first_row_ = s.first_row;
    of_ = s.of;
    first_symbol_ = s.first_symbol;
    symbols_ = s.symbols;
    coef_ = s.coef;
    total_ = s.total;
    seen_ = s.seen;
    ticks_ = s.ticks;
    draws_ = s.draws;
    random_ = s.random;
    slots_.resize(first_row_.back());
    for (std::size_t r = 0; r < slots_.size(); ++r) slots_[r] = r;
    if (!settings_.projects) return;
    for (std::size_t i = 0; i < functions(); ++i) span_.restore_member(s.factor.data() + i * functions(), i);
    span_.restore(s.coef, {});
    refresh();
}

// ---- samples of a chunk -----------------------------------------------------------------------------------------------

void JointLookahead::load(std::size_t i) {
    const std::size_t total = start_.size() - 1, left = static_cast<std::size_t>(start_[total] - start_[i]);
    const std::size_t wanted = Lookahead::length(f_.points().size(), left);
    end_ = i + 1;
    while (end_ < total && static_cast<std::size_t>(start_[end_ + 1] - start_[i]) <= wanted) ++end_;
    const std::size_t rows = static_cast<std::size_t>(start_[end_] - start_[i]);
    lookahead_.load(f_.points(), static_cast<std::size_t>(start_[i]), rows, f_.points().size() + rows);
}

void JointLookahead::at(std::size_t i) {
    if (i >= end_) load(i);
    i_ = i;
    first_ = static_cast<std::size_t>(start_[i]) - lookahead_.first;
    const std::size_t stored = f_.points().size();
    for (std::size_t t = 0; t < rows(); ++t) {
        const double* row = lookahead_.row(first_ + t);
        bool finite = std::isfinite(lookahead_.self(first_ + t));
        for (std::size_t s = 0; s < stored; ++s) finite &= std::isfinite(row[s]);
        if (!finite) throw RowError(i, "row " + std::to_string(i) + ": a kernel value is not finite; scale the inputs");
    }
}

double JointLookahead::cross(Label a, Label b) {
    if (a.size() == 1) return a[0] == b[0] ? lookahead_.self(first_) : 0.0;
    among_.resize(padded(lookahead_.count));
    double sum = 0;
    for (std::size_t s = 0; s < a.size(); ++s) {
        lookahead_.kernel_rows->among(first_ + s, among_.data());
        for (std::size_t t = 0; t < b.size(); ++t)
            if (a[s] == b[t]) sum += among_[first_ + t];
    }
    return sum + f_.settings().transitions * shared_transitions(a, b);
}

std::vector<std::size_t> JointLookahead::store() {
    std::vector<std::size_t> slots;
    for (std::size_t t = 0; t < rows(); ++t) {
        const std::size_t slot = f_.points().size();
        f_.points().put(slot, static_cast<std::int64_t>(f_.seen()), *lookahead_.batch,
                        static_cast<std::size_t>(start_[i_]) + t);
        lookahead_.stored(first_ + t, slot);
        slots.push_back(slot);
    }
    return slots;
}

void JointLookahead::removed(std::size_t slot) { lookahead_.moved(first_ + rows(), f_.points().size(), slot); }

void learn_classes(JointExpansion& f, const Batch& batch, std::span<const std::int32_t> labels,
                   std::span<const double> weights, std::span<const double> costs, std::size_t classes, double* scores,
                   const std::function<void()>& poll) {
    std::vector<std::int64_t> start(labels.size() + 1);
    std::iota(start.begin(), start.end(), std::int64_t{0});
    JointLookahead samples(f, batch, start);
    std::vector<double> table(classes);
    const bool average = f.settings().average;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        poll();
        samples.at(i);
        const double weight = weights.empty() ? 1.0 : weights[i];
        auto score = [&](bool mean, double* out) {
            std::vector<double> means;
            if (mean) means = f.weights(true);
            f.row_scores(mean ? std::span<const double>(means) : f.coefs(), samples.values(), samples.stride(), 1,
                         classes, out);
            if (!std::all_of(out, out + classes, [](double s) { return std::isfinite(s); }))
                throw RowError(i, "row " + std::to_string(i) + ": a score is not finite; scale the inputs");
        };
        if (scores && average) score(true, scores + i * classes);
        if (weight == 0 && (average || !scores)) {
            f.pass();
            continue;
        }
        score(false, table.data());
        if (scores && !average) std::copy(table.begin(), table.end(), scores + i * classes);
        if (weight == 0) {
            f.pass();
            continue;
        }
        const std::size_t y = static_cast<std::size_t>(labels[i]);
        const double* cost = costs.empty() ? nullptr : costs.data() + y * classes;
        std::size_t rival = y == 0 ? 1 : 0;
        auto value = [&](std::size_t c) { return table[c] + (cost ? cost[c] : 0.0); };
        for (std::size_t c = rival + 1; c < classes; ++c)
            if (c != y && value(c) > value(rival)) rival = c;
        const std::int32_t best = static_cast<std::int32_t>(rival);
        f.learn(samples, labels.subspan(i, 1), Label(&best, 1), table[y] - table[rival], cost ? cost[rival] : 0.0,
                weight);
    }
}

}  // namespace gristmill
