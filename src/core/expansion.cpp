#include "core/expansion.hpp"

#include <algorithm>
#include <cmath>

#include "core/check.hpp"

namespace gristmill {

Expansion::Expansion(Kernel kernel, std::unique_ptr<Points> points, std::size_t outputs, bool track_norm, bool average)
    : kernel_(std::move(kernel)), points_(std::move(points)), track_norm_(track_norm), average_(average),
      coef_(outputs), lag_(average ? outputs : 0), sum_(average ? outputs : 0),
      inner_(track_norm ? outputs * outputs : 0) {}

Expansion::Expansion(Kernel kernel, std::unique_ptr<Points> points, const Composition& composition)
    : Expansion(std::move(kernel), std::move(points), composition.needs.tangent ? 2 : 1, composition.needs.norm,
                composition.average) {
    windowed_ = std::holds_alternative<Window>(composition.budget);
    hidden_ = composition.needs.tangent ? 1 : 0;
    if (composition.needs.partners) keep_partners();
    set_limit(limit_of(composition.budget));
}

double Expansion::norm2() const {
    const auto fresh = track_norm_ ? std::vector<double>() : exact_inner();
    const auto& inner = track_norm_ ? inner_ : fresh;
    double total = 0;
    for (std::size_t o = 0; o < outputs(); ++o) total += inner[o * coef_.size() + o];
    return total;
}

std::size_t Expansion::smallest() const {
    // Ties go to the oldest, so the scan runs by age and asks for strictly less.
    std::size_t slot = points_->oldest(), found = slot;
    for (double least = magnitude(found); (slot = points_->newer(slot)) != Points::npos;)
        if (const double here = magnitude(slot); here < least) found = slot, least = here;
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
    for (std::size_t slot = 0; slot < size(); ++slot) {  // the dearer of what f and what the mean would lose
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
    if (fold.slot == Partners::kNone) return {Entry::Kind::fold, 0, 1, fold.partner, fold.share};
    return {Entry::Kind::replace, fold.slot, 1, fold.partner, fold.share};
}

Partners::Fold Expansion::cheapest_fold(std::span<const std::uint8_t> may_go) const {
    square_coefs(1);
    return partners_->choose(*points_, kernel_, squares_, may_go);
}

double Expansion::score(std::size_t output, const double* row) const {
    return scale_ * isa_score().dot(coef_[output].data(), row, padded(size()));
}

// sum over time of coef_i = sum_i + weight * coef_i - lag_i: the scales passed so far times the present value, less what
// was counted before a coefficient took its present value.
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

// A unit in the last place or two of each term that went in or out.
constexpr double kRounding = 4e-16;

void Expansion::repair_norm() {
    double total = 0;
    for (std::size_t o = 0; o < coef_.size(); ++o) total += inner(o, o);
    if (!(doubt_ > std::max(1e-10 * total, 1e3 * floor_))) return;
    double terms = 0;
    inner_ = exact_inner(&terms);
    doubt_ = floor_ = kRounding * terms;
}

void Expansion::count_term(std::span<const double> coefs, std::span<const double> scores, double self) {
    const std::size_t n = coef_.size();
    for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < n; ++b) {
            inner_[a * n + b] += coefs[a] * scores[b] + coefs[b] * scores[a] + coefs[a] * coefs[b] * self;
            if (a == b) inner_[a * n + a] = std::max(inner_[a * n + a], 0.0);
        }
    for (std::size_t a = 0; a < n; ++a)
        doubt_ += kRounding * (std::abs(2 * coefs[a] * scores[a]) + coefs[a] * coefs[a] * std::abs(self));
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
        doubt_ = floor_ = 0;
        return;
    }
    scale_ *= factor;
    for (double& x : inner_) x *= factor * factor;
    doubt_ *= factor * factor;
    floor_ *= std::min(1.0, factor * factor);  // growing must not hide what it makes worse
    // The average is a difference that loses a digit for each power of ten of the scale, so it restarts early.
    const double low = average_ ? 1e-4 : 1e-100;
    const double size = std::abs(scale_);
    if (size < low || size > 1 / low) renormalize();
}

bool Expansion::has_room_for(double coefficient, double factor) const {
    constexpr double kLargest = 1e150;  // its square is finite, and so is its quotient by the smallest scale
    if (!(std::abs(coefficient) <= kLargest)) return false;
    if (std::abs(factor) <= 1) return true;
    for (std::size_t slot = 0; slot < size(); ++slot)
        if (!(magnitude(slot) * std::abs(factor) <= kLargest)) return false;
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
        Lines<double> wider(padded(points_->room(n, line.size())));
        std::copy(line.begin(), line.end(), wider.begin());
        line.swap(wider);
    };
    grow(label_);
    for (auto& line : coef_) grow(line);
    for (auto& line : lag_) grow(line);
    for (auto& line : sum_) grow(line);
    if (partners_) partners_->reserve(label_.size());
}

void Expansion::add(std::size_t slot, std::int64_t id, const Batch& batch, std::size_t row,
                    std::span<const double> coefs, const double* values, double self, double label) {
    reserve(slot + 1);
    std::vector<double> scores;
    if (track_norm_)
        for (std::size_t o = 0; o < coef_.size(); ++o) scores.push_back(score(o, values));
    points_->put(slot, id, batch, row);
    label_[slot] = label;
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
        std::vector<double> gone, scores;
        for (std::size_t o = 0; o < coef_.size(); ++o) {
            gone.push_back(-coef(slot, o));
            scores.push_back(score(o, row));
        }
        count_term(gone, scores, row[slot]);
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
    const double square = keep * keep * inner(to, to) + 2 * keep * mix * inner(to, from) + mix * mix * inner(from, from);
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
    move(label_);
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
    const std::size_t room = coef_.empty() ? 0 : coef_[0].size();
    coef_.emplace_back(room);
    if (average_) lag_.emplace_back(room), sum_.emplace_back(room);
    if (track_norm_) inner_ = exact_inner();
}

void Expansion::split_output(double factor) {
    auto split = [&](std::vector<Lines<double>>& lines) {
        lines.push_back(lines[0]);
        for (double& x : lines[0]) x *= -factor;
        for (double& x : lines[1]) x *= factor;
    };
    split(coef_);
    if (average_) split(lag_), split(sum_);
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

std::size_t Expansion::bytes() const {
    std::size_t total = sizeof *this + points_->bytes() + label_.capacity() * sizeof(double) + (partners_ ? partners_->bytes() : 0);
    for (const auto* lines : {&coef_, &lag_, &sum_})
        for (const auto& line : *lines) total += line.capacity() * sizeof(double);
    return total;
}

std::size_t Expansion::points_within(std::size_t bytes, std::size_t outputs) const {
    if (points_->bytes_for(1) == 0) return 0;
    const std::size_t lines = (outputs + hidden_) * (average_ ? 3 : 1) + 1;  // coefficients, and labels
    auto needs = [&](std::size_t n) {
        return sizeof *this + points_->bytes_for(n) + padded(n) * lines * sizeof(double) +
               (partners_ ? Partners::bytes_for(padded(n)) : 0);
    };
    std::size_t low = 0, high = bytes / sizeof(double) + 1;  // low fits, high does not
    while (high - low > 1) {
        const std::size_t middle = low + (high - low) / 2;
        (needs(middle) <= bytes ? low : high) = middle;
    }
    return low;
}

void Expansion::resize(std::size_t limit, const Budget& budget, Random& random) {
    Lines<double> gone, partner;
    while (size() > limit) {
        const Entry entry = leave(budget, *this, random);
        if (track_norm_) {
            gone.resize(padded(size())), partner.resize(padded(size()));
            points_->stored_row(kernel_, entry.slot, gone.data());
            if (entry.onto != Points::npos) points_->stored_row(kernel_, entry.onto, partner.data());
        }
        if (entry.onto != Points::npos) fold(entry.slot, entry.onto, entry.share, partner.data());
        remove(entry.slot, gone.data());
    }
    set_limit(limit);
    points_->shrink_room();
    auto fit = [&](Lines<double>& line) {
        if (line.size() <= padded(limit)) return;
        Lines<double> fresh(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(padded(limit)));
        line.swap(fresh);
    };
    fit(label_);
    for (auto* lines : {&coef_, &lag_, &sum_})
        for (auto& line : *lines) fit(line);
    if (partners_) partners_->shrink(padded(limit));
}

// ---- as a hypothesis ----------------------------------------------------------------------------------------------

void Expansion::check(const Batch& batch) const {
    check_width(batch, width());
    check_rows(batch, kernel_);
}

Sight Expansion::look_again(const Batch& batch, std::int64_t start) const {
    Sight sight(*points_, kernel_, batch);
    sight.start = start;
    for (std::size_t slot = 0; slot < size(); ++slot) sight.slots[points_->id(slot)] = slot;
    return sight;
}

namespace {

// Rows that are stored already: all that is left to ask of them is k(x, x).
class StoredRows final : public Ahead {
  public:
    explicit StoredRows(std::vector<double> selves) : selves_(std::move(selves)) {}
    void load(std::size_t, std::size_t) override {}
    void rows(double*, std::size_t) override {}
    void among(std::size_t, double*) override {}
    double self(std::size_t i) override { return selves_[i]; }

  private:
    std::vector<double> selves_;
};

}  // namespace

Sight Expansion::look_at_stored() const {
    Sight sight(nullptr);
    sight.replays = true;
    sight.count = size();
    sight.stride = padded(size());
    sight.values.resize(sight.count * sight.stride);
    sight.start = 0;
    for (std::size_t slot = oldest(); slot != Points::npos; slot = newer(slot))
        sight.slots.emplace(static_cast<std::int64_t>(sight.slots.size()), slot);
    look_anew(sight);
    return sight;
}

void Expansion::look_anew(Sight& stored) const {
    constexpr std::size_t block = 128;  // what is worked out of so many rows stays in the cache
    std::vector<std::size_t> slots(stored.count);
    std::vector<double> selves(stored.count);
    for (std::size_t i = 0; i < stored.count; ++i) {
        slots[i] = stored.slots.at(static_cast<std::int64_t>(i));
        selves[i] = points_->stored_self(kernel_, slots[i]);
    }
    for (std::size_t i = 0; i < stored.count; i += block)
        points_->stored_rows(kernel_, std::span(slots).subspan(i, std::min(block, stored.count - i)), stored.row(i), stored.stride);
    stored.ahead = std::make_unique<StoredRows>(std::move(selves));
}

void Expansion::pair_again(Sight& stored) {
    if (!partners_) return;
    std::vector<double> selves(size());
    for (const auto& [i, slot] : stored.slots) selves[slot] = stored.self(static_cast<std::size_t>(i));
    partners_->meet_again(*points_, selves);
    for (std::size_t i = 0; i < stored.count; ++i)
        partners_->meet_again(*points_, stored.slots.at(static_cast<std::int64_t>(i)), stored.row(i));
}

void Expansion::restart() {
    for (auto& coef : coef_) std::fill(coef.begin(), coef.end(), 0.0);
    std::fill(inner_.begin(), inner_.end(), 0.0);
    scale_ = 1;
    doubt_ = floor_ = 0;
}

std::vector<std::vector<double>> Expansion::coefs() const {
    std::vector<std::vector<double>> found(coef_.size());
    for (std::size_t o = 0; o < coef_.size(); ++o)
        for (std::size_t slot = 0; slot < size(); ++slot) found[o].push_back(coef(slot, o));
    return found;
}

void Expansion::set_coefs(const std::vector<std::vector<double>>& coefs) {
    restart();
    for (std::size_t o = 0; o < coefs.size(); ++o) std::copy(coefs[o].begin(), coefs[o].end(), coef_[o].begin());
    if (track_norm_) inner_ = exact_inner();
}

void Expansion::keep_scores(Sight& stored, std::span<const double> scores) {
    constexpr int kSweeps = 2;
    constexpr double kRidge = 0.3;
    for (int sweep = 0; sweep < kSweeps; ++sweep)
        for (std::size_t i = 0; i < stored.count; ++i) {
            const double self = stored.self(i);
            if (!(self > 0)) continue;
            const std::size_t slot = stored.slots[static_cast<std::int64_t>(i)];
            for (std::size_t o = 0; o < outputs(); ++o) {
                const double left = scores[i * outputs() + o] - score(o, stored.row(i)) - kRidge * self * coef(slot, o);
                change(slot, o, left / (self * (1 + kRidge)) / scale_);
            }
        }
}

void Expansion::load(Sight& sight, std::size_t first, std::size_t count) const {
    // A window budget holds one point more for the moment between adding and forgetting.
    sight.load(*points_, first, count, std::min(size() + count, std::max(limit_, size())) + 1);
}

void Expansion::measure(Sight& sight, std::size_t i, std::span<const double> direction, Trial& trial) {
    if (track_norm_) {
        repair_norm();
        trial.norm2 = norm2();
    }
    if (hidden_ > 0) {
        trial.tangent = score(1, sight.row(i));
        trial.along = inner(0, 1);
    }
    if (!sight.start) return;
    const auto found = sight.slots.find(*sight.start + static_cast<std::int64_t>(sight.first + i));
    if (found == sight.slots.end()) return;
    const auto own = static_cast<std::size_t>(std::max_element(direction.begin(), direction.end()) - direction.begin());
    trial.present = coef(found->second, own);
}

bool Expansion::overflows(const Trial& trial, const Step& step) const {
    const double c = step.coefficient;
    if (!has_room_for(c, step.shrink)) return true;
    const double grown = trial.norm2 * step.shrink * step.shrink + std::abs(2 * c * trial.score) + c * c * std::abs(trial.self);
    return track_norm_ && !std::isfinite(grown);
}

Expansion::Plan Expansion::plan(Sight& sight, std::size_t i, Term& term, Budget& budget, Random& random) {
    Plan plan;
    const Step& step = term.step;
    if (hidden_ > 0) term.coefs[1] = step.tangent;
    if (step.coefficient == 0 && step.tangent == 0) return plan;
    if (sight.start)
        if (const auto found = sight.slots.find(term.id); found != sight.slots.end()) {
            plan.present = found->second;
            return plan;
        }
    plan.entry = {};  // after clearing there is room
    sight.victims.left = windowed_ ? 1 : batch_count(*sight.batch) - sight.first - i;
    const Newcomer newcomer{term.id, term.coefs.first(outputs()), step.shrink, sight.row(i), term.self, &sight.victims};
    if (step.shrink != 0) plan.entry = choose(budget, *this, newcomer, random);
    if (plan.entry.kind == Entry::Kind::append) reserve(size() + 1);
    if (!track_norm_) return plan;  // only the norm asks what a point was worth
    auto copy_row = [&](std::size_t slot, Lines<double>& to) {
        const double* row = sight.victims.row(*points_, kernel_, slot);
        to.assign(row, row + padded(size()));
    };
    if (plan.entry.kind == Entry::Kind::replace) copy_row(plan.entry.slot, plan.victim_row);
    if (plan.entry.onto != Points::npos) copy_row(plan.entry.onto, plan.partner_row);
    return plan;
}

void Expansion::commit(Sight& sight, std::size_t i, const Plan& plan, const Term& term) {
    const Step& step = term.step;
    // The shrinking below multiplies v too; what v keeps is measured against that.
    if (hidden_ > 0) combine(1, step.tangent_keep / step.shrink, 0, step.tangent_mix / step.shrink);
    const std::size_t before = size();
    if (sight.replays && step.shrink == 0) restart();
    else shrink(step.shrink * plan.entry.factor);
    if (size() < before) sight.cleared(i + 1, before);
    for (double& c : term.coefs) c *= plan.entry.factor;
    if (plan.present != Points::npos) {
        adjust_present(sight, i, plan, term);
    } else if (plan.entry.kind == Entry::Kind::fold) {
        for (double& c : term.coefs) c *= plan.entry.share;
        if (plan.entry.onto != Points::npos) adjust(plan.entry.onto, term.coefs, plan.partner_row.data());
    } else if (plan.entry.kind != Entry::Kind::refuse) {
        std::size_t slot = size();
        if (plan.entry.kind == Entry::Kind::replace) {
            slot = plan.entry.slot;
            if (plan.entry.onto != Points::npos) fold(slot, plan.entry.onto, plan.entry.share, plan.partner_row.data());
            release(slot, plan.victim_row.data());
        }
        add(slot, term.id, *sight.batch, sight.first + i, term.coefs, sight.row(i), term.self, term.label);
        sight.stored(i, slot);
        if (sight.start) sight.slots[term.id] = slot;
    }
    if (std::isfinite(step.radius)) stay_inside(step.radius);
}

void Expansion::adjust_present(Sight& sight, std::size_t i, const Plan& plan, const Term& term) {
    const std::size_t slot = plan.present, last = size() - 1;
    adjust(slot, term.coefs, sight.row(i));
    if (magnitude(slot) != 0 || sight.replays) return;
    remove(slot, sight.row(i));
    sight.moved(i + 1, last, slot);
    sight.slots.erase(term.id);
    if (slot != last) sight.slots[points_->id(slot)] = slot;
}

void Expansion::expire(Sight& sight, std::size_t i, std::int64_t horizon) {
    for (std::size_t slot = oldest(); slot != Points::npos && points_->id(slot) < horizon; slot = oldest()) {
        const std::size_t last = size() - 1;
        sight.victims.left = 1;
        remove(slot, track_norm_ ? sight.victims.row(*points_, kernel_, slot) : nullptr);
        sight.moved(i + 1, last, slot);
    }
}

void Expansion::scores(const Batch& batch, double* out) const {
    const std::size_t rows = batch_count(batch), stride = padded(size());
    const auto ahead = points_->ahead(kernel_, batch);
    const std::size_t block = std::clamp<std::size_t>((8u << 20) / (8 * (stride + 1)), 16, 128);
    Lines<double> values(std::min(rows, block) * stride);
    for (std::size_t first = 0; first < rows; first += block) {
        const std::size_t count = std::min(block, rows - first);
        ahead->load(first, count);
        ahead->rows(values.data(), stride);
        for (std::size_t r = 0; r < count; ++r)
            for (std::size_t o = 0; o < outputs(); ++o) {
                const double* row = values.data() + r * stride;
                *out++ = average_ ? average_score(o, row) : score(o, row);
            }
    }
}

void Expansion::gradients(const Batch& batch, double* out) const {
    const std::size_t rows = batch_count(batch), stride = padded(size());
    std::vector<Lines<double>> coefs(outputs(), Lines<double>(stride));
    for (std::size_t o = 0; o < outputs(); ++o)
        for (std::size_t slot = 0; slot < size(); ++slot) coefs[o][slot] = shown_coef(slot, o);
    const auto ahead = points_->ahead(kernel_, batch);
    // As many rows as keep their weights in the second-level cache, and as fill a tile.
    const std::size_t block = std::clamp<std::size_t>((1u << 20) / (8 * outputs() * (stride + 1)), 8, 64);
    for (std::size_t first = 0; first < rows; first += block) {
        const std::size_t count = std::min(block, rows - first);
        ahead->load(first, count);
        ahead->gradients(coefs, out + first * outputs() * width());
    }
}

void Expansion::begin(std::size_t, bool) {
    saved_ = State{coef_, lag_, sum_, label_, inner_, scale_, doubt_, floor_, weight_, ticks_,
                   partners_};
    points_->begin();
}

void Expansion::rollback() {
    points_->rollback();
    coef_ = std::move(saved_->coef);
    lag_ = std::move(saved_->lag);
    sum_ = std::move(saved_->sum);
    label_ = std::move(saved_->label);
    inner_ = std::move(saved_->inner);
    scale_ = saved_->scale, doubt_ = saved_->doubt, floor_ = saved_->floor, weight_ = saved_->weight;
    ticks_ = saved_->ticks;
    partners_ = std::move(saved_->partners);
    saved_.reset();
    reserve(size());
}

void Expansion::keep() {
    points_->commit();
    saved_.reset();
}

void Expansion::visit(Archive& archive, std::uint64_t seen) {
    std::vector<std::int64_t> ids(points_->ids().begin(), points_->ids().end());
    archive.numbers("ids", ids);
    const std::size_t n = ids.size(), all = coef_.size(), averaged = average_ ? all : 0;
    if (archive.loads) {
        if (size() != 0 || !archive.points || batch_count(*archive.points) != n) archive.refuse("ids", "does not fit the points");
        check_ids(archive, ids, seen);
        reserve(n);
        for (std::size_t s = 0; s < n; ++s) points_->put(s, ids[s], *archive.points, s);
        points_->order_by_id();
    }
    archive.table("coef", coef_, all, n);
    archive.table("lag", lag_, averaged, n);
    archive.table("sum", sum_, averaged, n);
    archive.known("labels", label_, n);
    label_.resize(padded(label_.size()));
    std::vector<std::uint8_t> sparse = points_->came_sparse();
    if (!archive.loads || archive.has("came_sparse")) archive.numbers("came_sparse", sparse, n);
    if (archive.loads) points_->set_came_sparse(sparse);
    archive.numbers("inner", inner_, inner_.size());
    archive.number("scale", scale_);
    archive.number("doubt", doubt_);
    archive.number("floor", floor_);
    archive.number("weight", weight_);
    archive.count("ticks", ticks_);
    if (partners_) partners_->visit(archive, n);
    if (archive.loads && scale_ == 0) archive.refuse("scale", "is 0");
    if (!archive.loads) return;
    reserve(n);
    if (partners_) partners_->reserve(label_.size());
}

}  // namespace gristmill
