#include "core/expansion/projected.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/threads.hpp"

namespace gristmill {

Projections::Projections(Kernel kernel, std::unique_ptr<Points> points, const Composition& composition)
    : store_(std::move(kernel), std::move(points), 1, false, false),
      tolerance_(std::get<Project>(composition.budget).tolerance), norm_(composition.needs.norm),
      average_(composition.average), limit_(limit_of(composition.budget)), spans_(1) {
    store_.set_limit(limit_);
}

double Projections::norm2() const {
    double total = 0;
    for (const Span& span : spans_) total += span.norm2();
    return total;
}

std::size_t Projections::bytes() const {
    std::size_t total = sizeof *this - sizeof store_ + store_.bytes();
    for (const Span& span : spans_) total += span.bytes();
    return total;
}

void Projections::load(Sight& sight, std::size_t first, std::size_t count) const {
    store_.load(sight, first, count);
    sight.solved = 0;  // an event by itself may turn out to need no coordinates
}

void Projections::solve(Sight& sight) const {
    if (sight.solved == sight.count) return;
    sight.solved = sight.count;
    std::size_t largest = 0;
    for (const Span& span : spans_) largest = std::max(largest, span.size());
    sight.z_stride = Span::padded_size(largest + sight.count);
    sight.z.resize(spans_.size());
    std::vector<const double*> from(sight.count);
    std::vector<double*> to(sight.count);
    for (std::size_t o = 0; o < spans_.size(); ++o) {
        const auto members = spans_[o].members();
        sight.z[o].assign(sight.count * sight.z_stride, 0.0);
        sight.members.assign(sight.count * sight.z_stride, 0.0);
        for (std::size_t r = 0; r < sight.count; ++r) {
            double* gathered = sight.members.data() + r * sight.z_stride;
            for (std::size_t s = 0; s < members.size(); ++s) gathered[s] = sight.row(r)[members[s]];
            from[r] = gathered;
            to[r] = sight.coordinates(o, r);
        }
        const std::size_t rows = sight.count, size = spans_[o].size();
        const bool alone = threads_allowed() == 1 || rows * size * size / 2 < kWorthThreads;
        const std::size_t pieces = alone ? 1 : std::min(rows / 8, 4 * threads_allowed());
        if (pieces <= 1) spans_[o].solve(from.data(), rows, to.data());
        else
            parallel(pieces, [&](std::size_t p) {
                const std::size_t first = rows * p / pieces, last = rows * (p + 1) / pieces;
                spans_[o].solve(from.data() + first, last - first, to.data() + first);
            });
    }
}

double Projections::score(Sight& sight, std::size_t i, std::size_t output) const {
    solve(sight);
    return spans_[output].score(sight.coordinates(output, i));
}

double Projections::average_score(Sight& sight, std::size_t i, std::size_t output) const {
    return spans_[output].average_score(sight.coordinates(output, i), ticks_);
}

void Projections::measure(Sight& sight, std::size_t i, std::span<const double> direction, Trial& trial) {
    if (norm_) trial.norm2 = norm2();
    const double self = outputs() > 1 ? trial.self / 2 : trial.self;
    double residual2 = 0;
    trial.projected2 = 0;
    for (std::size_t o = 0; o < spans_.size(); ++o) {
        if (direction[o] == 0) continue;
        residual2 += spans_[o].residual2(sight.coordinates(o, i), self);
        trial.projected2 += spans_[o].projected2(sight.coordinates(o, i));
    }
    trial.residual = sight.residual = std::sqrt(residual2);
    trial.tolerance = tolerance_;
}

Projections::Plan Projections::plan(Sight& sight, std::size_t, Term& term, Budget&, Random&) {
    if (term.step.coefficient == 0) return {};
    const bool full = store_.size() >= limit_ && !sight.slots.contains(term.id);
    const bool fold = term.step.fold_only || sight.residual <= tolerance_ || full;
    if (!fold) store_.reserve(store_.size() + 1);
    return {fold};
}

void Projections::commit(Sight& sight, std::size_t i, const Plan& plan, const Term& term) {
    const Step& step = term.step;
    if (step.shrink != 1)
        for (Span& span : spans_) span.scale(step.shrink);
    if (step.coefficient != 0) {
        if (!plan.fold) store(sight, i, term);
        else
            for (std::size_t o = 0; o < spans_.size(); ++o)
                if (term.coefs[o] != 0) spans_[o].fold(term.coefs[o], sight.coordinates(o, i));
    }
    if (const double now = std::isfinite(step.radius) ? norm2() : 0.0; now > step.radius * step.radius)
        for (Span& span : spans_) span.scale(step.radius / std::sqrt(now));
    sight.changed |= step.shrink != 1 || step.coefficient != 0 || average_;
}

// f_o += c_o k(x,.), and x becomes a point; an output whose span holds it already folds it. The rows still to come get
// their new coordinate. In a later pass it may be a point already, for the sake of another output.
void Projections::store(Sight& sight, std::size_t i, const Term& term) {
    const auto known = sight.slots.find(term.id);
    const std::size_t slot = known == sight.slots.end() ? store_.size() : known->second, left = sight.count - i - 1;
    if (slot == store_.size()) {
        const std::vector<double> nothing(spans_.size(), 0.0);
        store_.add(slot, term.id, *sight.batch, sight.first + i, nothing, nullptr, term.self, term.told);
        if (sight.start) sight.slots[term.id] = slot;
    }
    sight.stored(i, slot);
    std::vector<const double*> rows(left);
    std::vector<double> next(left);
    for (std::size_t o = 0; o < spans_.size(); ++o) {
        if (term.coefs[o] == 0) continue;
        Span& span = spans_[o];
        const double residual2 = span.residual2(sight.coordinates(o, i), term.self);
        if (residual2 == 0) {
            span.fold(term.coefs[o], sight.coordinates(o, i));
            continue;
        }
        span.add(term.coefs[o], sight.coordinates(o, i), std::sqrt(residual2), slot);
        if (left == 0) continue;
        for (std::size_t r = 0; r < left; ++r) rows[r] = sight.coordinates(o, i + 1 + r);
        span.extend(rows.data(), left, sight.column.data() + i + 1, next.data());
        for (std::size_t r = 0; r < left; ++r) sight.coordinates(o, i + 1 + r)[span.size() - 1] = next[r];
    }
}

void Projections::tick() {
    for (Span& span : spans_) span.tick();
    ++ticks_;
}

void Projections::retell(std::span<const double> factors) {
    for (std::size_t o = 0; o < spans_.size(); ++o) spans_[o].scale_all(factors[o]);
    refresh();
}

void Projections::add_output() {
    if (narrower_.empty()) narrower_ = spans_;
    spans_.emplace_back();
    store_.add_output();
}

void Projections::split_output() {
    if (narrower_.empty()) narrower_ = spans_;
    spans_.push_back(spans_[0]);
    spans_[0].scale_all(-0.5);
    spans_[1].scale_all(0.5);
    store_.split_output();
}

void Projections::refresh() {
    std::vector<double> coefs(store_.size());
    for (std::size_t o = 0; o < spans_.size(); ++o) {
        const Span& span = spans_[o];
        auto of_members = span.coefficients(average_ ? span.coordinate_sum().data() : span.coordinates().data());
        std::fill(coefs.begin(), coefs.end(), 0.0);
        for (std::size_t s = 0; s < of_members.size(); ++s)
            coefs[span.members()[s]] = average_ && ticks_ > 0 ? of_members[s] / static_cast<double>(ticks_) : of_members[s];
        store_.assign(o, coefs);
    }
}

// ---- transactions and files ---------------------------------------------------------------------------------------

void Projections::begin(std::size_t rows, bool grows) {
    store_.begin(rows, grows);
    narrower_.clear();
    marks_.clear();
    for (const Span& span : spans_) marks_.push_back(span.mark());
    ticks_before_ = ticks_;
}

void Projections::keep() {
    store_.keep();
    marks_.clear();
    narrower_.clear();
}

void Projections::rollback() {
    store_.rollback();
    if (!narrower_.empty()) spans_ = std::move(narrower_);
    for (std::size_t o = 0; o < spans_.size(); ++o) spans_[o].rollback(std::move(marks_[o]));
    ticks_ = ticks_before_;
    marks_.clear();
    narrower_.clear();
}

void Projections::visit(Archive& archive, std::uint64_t seen) {
    store_.visit(archive, seen);
    archive.count("span_ticks", ticks_);
    // The factor is not kept: the points give it again, bit for bit.
    std::vector<std::int64_t> members, sizes;
    std::vector<double> coordinates, sums;
    for (const Span& span : spans_) {
        const auto n = static_cast<std::ptrdiff_t>(span.size());
        sizes.push_back(n);
        members.insert(members.end(), span.members().begin(), span.members().end());
        coordinates.insert(coordinates.end(), span.coordinates().begin(), span.coordinates().begin() + n);
        sums.insert(sums.end(), span.coordinate_sum().begin(), span.coordinate_sum().begin() + n);
    }
    archive.numbers("span_sizes", sizes, spans_.size());
    archive.numbers("members", members);
    archive.numbers("coordinates", coordinates, members.size());
    archive.numbers("coordinate_sums", sums, members.size());
    if (!archive.loads) return;
    std::int64_t total = 0;
    for (const auto size : sizes) {
        if (size < 0 || size > static_cast<std::int64_t>(store_.size())) archive.refuse("span_sizes", "does not fit the points");
        total += size;
    }
    for (const auto slot : members)
        if (slot < 0 || slot >= static_cast<std::int64_t>(store_.size())) archive.refuse("members", "does not fit the points");
    if (total != static_cast<std::int64_t>(members.size())) archive.refuse("members", "does not fit the others");
    rebuild(sizes, members);
    std::span<const double> g = coordinates, sum = sums;
    for (std::size_t o = 0, at = 0; o < spans_.size(); at += static_cast<std::size_t>(sizes[o]), ++o)
        spans_[o].restore(g.subspan(at, static_cast<std::size_t>(sizes[o])), sum.subspan(at, static_cast<std::size_t>(sizes[o])));
}

void Projections::rebuild(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& members) {
    Lines<double> row(padded(store_.size()));
    auto next = members.begin();
    for (std::size_t o = 0; o < spans_.size(); ++o) {
        Span& span = spans_[o];
        for (std::int64_t m = 0; m < sizes[o]; ++m) {
            const auto slot = static_cast<std::size_t>(*next++);
            store_.points().stored_row(store_.kernel(), slot, row.data());
            Lines<double> values(Span::padded_size(span.size() + 1)), z(values.size());
            for (std::size_t s = 0; s < span.size(); ++s) values[s] = row[span.members()[s]];
            const double* from = values.data();
            double* to = z.data();
            span.solve(&from, 1, &to);
            const double residual2 = span.residual2(z.data(), store_.points().stored_self(store_.kernel(), slot));
            if (!(residual2 > 0)) throw std::invalid_argument("the saved points are not independent");
            span.add(0.0, z.data(), std::sqrt(residual2), slot);
        }
    }
}

}  // namespace gristmill
