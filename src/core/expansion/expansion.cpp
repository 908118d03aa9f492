#include "core/expansion/expansion.hpp"

#include <algorithm>
#include <cmath>

namespace gristmill {

Expansion::Expansion(Kernel kernel, std::unique_ptr<Points> points, std::size_t outputs, bool track_norm, bool average)
    : kernel_(std::move(kernel)), points_(std::move(points)), track_norm_(track_norm), average_(average),
      coef_(outputs), lag_(average ? outputs : 0), sum_(average ? outputs : 0),
      inner_(track_norm ? outputs * outputs : 0) {}

Expansion::Expansion(Kernel kernel, std::unique_ptr<Points> points, const Composition& composition)
    : Expansion(std::move(kernel), std::move(points), composition.needs.tangent ? 2 : 1, composition.needs.norm,
                composition.average) {
    windowed_ = std::holds_alternative<Window>(composition.budget);
    needs_mass_ = composition.needs.mass;
    neighbours_ = composition.needs.neighbours;
    hidden_ = composition.needs.tangent ? 1 : 0;
    if (composition.needs.partners) keep_partners();
    const Budget& budget = composition.budget;
    inserts_only_ = !composition.needs.norm && !composition.needs.partners &&
                    (std::holds_alternative<Unbounded>(budget) || std::holds_alternative<DropOldest>(budget) ||
                     std::holds_alternative<DropSmallest>(budget) || std::holds_alternative<DropRandom>(budget));
    set_limit(limit_of(composition.budget));
}

double Expansion::norm2() const {
    const auto fresh = track_norm_ ? std::vector<double>() : exact_inner();
    const auto& inner = track_norm_ ? inner_ : fresh;
    double total = 0;
    for (std::size_t o = 0; o < outputs(); ++o) total += inner[o * coef_.size() + o];
    return total;
}

double Expansion::mass() const {
    constexpr std::size_t kUnroll = 8;  // independent sums in a fixed order on every machine
    double sums[kUnroll] = {};
    for (std::size_t slot = 0; slot < padded(size()); slot += kUnroll)
        for (std::size_t k = 0; k < kUnroll; ++k) sums[k] += coef_[0][slot + k];
    return scale_ * (((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7])));
}

std::size_t Expansion::smallest() const {
    // Ties go to the oldest, so the scan runs by age and looks for strictly smaller values.
    std::size_t slot = points_->oldest(), found = slot;
    for (double least = magnitude(found); (slot = points_->newer(slot)) != Points::npos;)
        if (const double here = magnitude(slot); here < least) {
            found = slot;
            least = here;
        }
    return found;
}

double Expansion::magnitude(std::size_t slot) const {
    double largest = 0;
    for (std::size_t o = 0; o < outputs(); ++o) largest = std::max(largest, std::abs(coef_[o][slot]));
    return std::abs(scale_) * largest;
}

void Expansion::square_coefs(double factor) const {
    squares_.assign(size(), 0.0);
    for (std::size_t o = 0; o < outputs(); ++o)
        for (std::size_t slot = 0; slot < size(); ++slot) squares_[slot] += coef_[o][slot] * coef_[o][slot];
    const double all = scale_ * factor, square = all * all;
    for (double& x : squares_) x *= square;
    if (!average_) return;
    for (std::size_t slot = 0; slot < size(); ++slot) {  // the larger of the losses of f and of the average
        double mean = 0;
        for (std::size_t o = 0; o < outputs(); ++o) mean += average_coef(slot, o) * average_coef(slot, o);
        squares_[slot] = std::max(squares_[slot], mean);
    }
}

Entry Expansion::cheapest_fold(const Newcomer& newcomer) const {
    square_coefs(newcomer.shrink);
    double own = 0;
    for (const double c : newcomer.coefs) own += c * c;
    const auto fold = partners_->choose(*points_, kernel_, squares_, own, newcomer.row, newcomer.self);
    if (fold.slot == MergePartners::kNone) return {Entry::Kind::fold, 0, 1, fold.partner, fold.share};
    return {Entry::Kind::replace, fold.slot, 1, fold.partner, fold.share};
}

MergePartners::Fold Expansion::cheapest_fold(std::span<const std::uint8_t> may_go) const {
    square_coefs(1);
    return partners_->choose(*points_, kernel_, squares_, may_go);
}

double Expansion::score(std::size_t output, const double* row) const {
    return scale_ * isa_score().dot(coef_[output].data(), row, padded(size()));
}

// sum over time of coef_i = sum_i + weight * coef_i - lag_i: the accumulated scales times the present value, minus what
// was accumulated before the coefficient took its present value.
double Expansion::average_coef(std::size_t slot, std::size_t output) const {
    if (ticks_ == 0) return 0;
    const double total = sum_[output][slot] + (weight_ * coef_[output][slot] - lag_[output][slot]);
    return total / static_cast<double>(ticks_);
}

double Expansion::average_score(std::size_t output, const double* row) const {
    double total = 0;
    for (std::size_t slot = 0; slot < size(); ++slot) total += average_coef(slot, output) * row[slot];
    return total;
}

void Expansion::change(std::size_t slot, std::size_t output, double by) {
    coef_[output][slot] += by;
    if (average_) lag_[output][slot] += weight_ * by;
}

void Expansion::repair_norm() {
    double total = 0;
    for (std::size_t o = 0; o < coef_.size(); ++o) total += inner(o, o);
    if (!(error_bound_ > std::max(1e-10 * total, 1e3 * error_floor_))) return;
    double terms = 0;
    inner_ = exact_inner(&terms);
    error_bound_ = error_floor_ = kRounding * terms;
}

void Expansion::count_term(std::span<const double> coefs, std::span<const double> scores, double self) {
    const std::size_t n = coef_.size();
    for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < n; ++b) {
            inner_[a * n + b] += coefs[a] * scores[b] + coefs[b] * scores[a] + coefs[a] * coefs[b] * self;
            if (a == b) inner_[a * n + a] = std::max(inner_[a * n + a], 0.0);
        }
    for (std::size_t a = 0; a < n; ++a)
        error_bound_ += kRounding * (std::abs(2 * coefs[a] * scores[a]) + coefs[a] * coefs[a] * std::abs(self));
}

void Expansion::shrink(double factor) {
    if (factor == 1) return;
    if (factor == 0) {
        if (average_) {
            renormalize();
            for (auto& coef : coef_) std::fill(coef.begin(), coef.end(), 0.0);
        } else {
            points_->clear();
            if (partners_) partners_->clear();
            for (auto& coef : coef_) std::fill(coef.begin(), coef.end(), 0.0);
        }
        scale_ = 1;
        std::fill(inner_.begin(), inner_.end(), 0.0);
        error_bound_ = error_floor_ = 0;
        return;
    }
    scale_ *= factor;
    for (double& x : inner_) x *= factor * factor;
    error_bound_ *= factor * factor;
    error_floor_ *= std::min(1.0, factor * factor);  // growth amplifies the error, so it must not raise the floor
    // The average is a difference that loses one digit per power of ten of the scale, so it renormalises early.
    const double low = average_ ? 1e-4 : 1e-100;
    const double size = std::abs(scale_);
    if (size < low || size > 1 / low) renormalize();
}

void Expansion::scale_outputs(std::span<const double> factors) {
    if (average_) {
        renormalize();
        for (std::size_t o = 0; o < sum_.size(); ++o)
            for (double& x : sum_[o]) x *= factors[std::min(o, factors.size() - 1)];
    }
    if (factors.size() == 1) return shrink(factors[0]);
    for (std::size_t o = 0; o < coef_.size(); ++o)
        for (double& x : coef_[o]) x *= factors[o];
}

bool Expansion::stays_in_range(double coefficient, double factor) const {
    constexpr double kLargest = 1e150;  // its square is finite, and so is its quotient by the smallest scale
    if (!(std::abs(coefficient) <= kLargest)) return false;
    if (std::abs(factor) <= 1) return true;
    constexpr std::size_t kUnroll = 8;
    double largest[kUnroll] = {};
    for (std::size_t o = 0; o < outputs(); ++o)
        for (std::size_t slot = 0; slot < padded(size()); slot += kUnroll)
            for (std::size_t k = 0; k < kUnroll; ++k) {
                const double here = std::abs(coef_[o][slot + k]);
                largest[k] = here > largest[k] ? here : largest[k];
            }
    for (const double here : largest)
        if (!(std::abs(scale_) * here * std::abs(factor) <= kLargest)) return false;
    return std::abs(factor) <= kLargest;
}

void Expansion::renormalize() {
    for (std::size_t o = 0; o < coef_.size(); ++o) {
        if (average_)
            for (std::size_t slot = 0; slot < size(); ++slot) {
                sum_[o][slot] += weight_ * coef_[o][slot] - lag_[o][slot];
                lag_[o][slot] = 0;
            }
        isa_score().scale(scale_, coef_[o].data(), coef_[o].size());
    }
    weight_ = 0;
    scale_ = 1;
}

void Expansion::reserve(std::size_t n) {
    points_->reserve(n);
    auto grow = [&](Lines<double>& line) {
        if (n <= line.size()) return;
        Lines<double> wider(padded(points_->capacity_for(n, line.size())));
        std::copy(line.begin(), line.end(), wider.begin());
        line.swap(wider);
    };
    for (auto& line : label_) grow(line);
    for (auto& line : coef_) grow(line);
    for (auto& line : lag_) grow(line);
    for (auto& line : sum_) grow(line);
    if (partners_) partners_->reserve(label_[0].size());
}

void Expansion::add(std::size_t slot, std::int64_t id, const Batch& batch, std::size_t row,
                    std::span<const double> coefs, const double* values, double self, std::span<const double> labels) {
    reserve(slot + 1);
    std::vector<double> scores;
    if (track_norm_)
        for (std::size_t o = 0; o < coef_.size(); ++o) scores.push_back(score(o, values));
    points_->put(slot, id, batch, row);
    for (std::size_t t = 0; t < label_.size(); ++t) label_[t][slot] = t < labels.size() ? labels[t] : kUnknown;
    for (std::size_t o = 0; o < coefs.size(); ++o) change(slot, o, coefs[o] / scale_);
    if (track_norm_) count_term(coefs, scores, self);
    if (partners_) partners_->stored(*points_, slot, values, self);
}

void Expansion::fold(std::size_t slot, std::size_t onto, double share, const double* row) {
    if (track_norm_) {
        std::vector<double> by, scores;
        for (std::size_t o = 0; o < coef_.size(); ++o) {
            by.push_back(share * coef(slot, o));
            scores.push_back(score(o, row));
        }
        count_term(by, scores, row[onto]);
    }
    for (auto* lines : {&coef_, &lag_, &sum_})
        for (auto& line : *lines) line[onto] += share * line[slot];
}

void Expansion::release(std::size_t slot, const double* row) {
    if (track_norm_) {
        std::vector<double> removed, scores;
        for (std::size_t o = 0; o < coef_.size(); ++o) {
            removed.push_back(-coef(slot, o));
            scores.push_back(score(o, row));
        }
        count_term(removed, scores, row[slot]);
    }
    for (std::size_t o = 0; o < coef_.size(); ++o) {
        coef_[o][slot] = 0;
        if (average_) lag_[o][slot] = sum_[o][slot] = 0;
    }
}

void Expansion::adjust(std::size_t slot, std::span<const double> by, const double* row) {
    if (track_norm_) {
        std::vector<double> scores;
        for (std::size_t o = 0; o < coef_.size(); ++o) scores.push_back(score(o, row));
        count_term(by, scores, row[slot]);
    }
    for (std::size_t o = 0; o < by.size(); ++o) change(slot, o, by[o] / scale_);
}

void Expansion::combine(std::size_t to, double keep, std::size_t from, double mix) {
    const std::size_t n = coef_.size();
    isa_score().scale(keep, coef_[to].data(), coef_[to].size());
    isa_score().axpy(mix, coef_[from].data(), coef_[to].data(), coef_[to].size());
    if (!track_norm_) return;
    const double square =
        keep * keep * inner(to, to) + 2 * keep * mix * inner(to, from) + mix * mix * inner(from, from);
    for (std::size_t o = 0; o < n; ++o) {
        const double value = o == to ? std::max(square, 0.0) : keep * inner(to, o) + mix * inner(from, o);
        inner_[to * n + o] = inner_[o * n + to] = value;
    }
}

void Expansion::assign(std::size_t output, std::span<const double> coefs) {
    for (std::size_t slot = 0; slot < coefs.size(); ++slot) coef_[output][slot] = coefs[slot] / scale_;
}

void Expansion::remove(std::size_t slot, const double* row) {
    release(slot, row);
    const std::size_t last = size() - 1;
    auto move = [&](Lines<double>& line) {
        line[slot] = line[last];
        line[last] = 0;
    };
    for (auto& line : label_) move(line);
    for (auto& line : coef_) move(line);
    for (auto& line : lag_) move(line);
    for (auto& line : sum_) move(line);
    points_->remove(slot);
    if (partners_) partners_->removed(slot, last);
}

void Expansion::stay_inside(double radius) {
    const double square = radius * radius;
    const double now = norm2();
    if (!(now > square)) return;
    shrink(radius / std::sqrt(now));
}

void Expansion::add_output() {
    const std::size_t capacity = coef_.empty() ? 0 : coef_[0].size(), visible = outputs();
    auto grow = [&](std::vector<Lines<double>>& lines) {
        lines.emplace(lines.begin() + static_cast<std::ptrdiff_t>(visible), capacity);
        if (hidden_ > 0) lines.emplace_back(capacity);
    };
    grow(coef_);
    if (average_) {
        grow(lag_);
        grow(sum_);
    }
    if (hidden_ > 0) ++hidden_;
    if (track_norm_) inner_ = exact_inner();
}

void Expansion::split_output(double factor) {
    auto split = [&](std::vector<Lines<double>>& lines) {
        std::vector<Lines<double>> twice;
        for (const auto& line : lines) twice.insert(twice.end(), 2, line);
        for (std::size_t o = 0; o < twice.size(); ++o)
            for (double& x : twice[o]) x *= o % 2 == 0 ? -factor : factor;
        lines.swap(twice);
    };
    split(coef_);
    if (average_) {
        split(lag_);
        split(sum_);
    }
    hidden_ *= 2;
    if (track_norm_) inner_ = exact_inner();
}

std::vector<double> Expansion::exact_inner(double* terms) const {
    const std::size_t n = coef_.size();
    std::vector<double> total(n * n);
    Lines<double> row(padded(size()));
    for (std::size_t slot = 0; slot < size(); ++slot) {
        points_->stored_row(kernel_, slot, row.data());
        for (std::size_t a = 0; a < n; ++a)
            for (std::size_t b = 0; b < n; ++b) {
                const double term = coef(slot, a) * score(b, row.data());
                total[a * n + b] += term;
                if (terms && a == b) *terms += std::abs(term);
            }
    }
    for (std::size_t a = 0; a < n; ++a) total[a * n + a] = std::max(total[a * n + a], 0.0);
    return total;
}

}  // namespace gristmill
