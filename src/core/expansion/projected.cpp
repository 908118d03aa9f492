#include "core/expansion/projected.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/threads.hpp"

namespace gristmill {

ProjectedExpansion::ProjectedExpansion(Kernel kernel, std::unique_ptr<Points> points, const Composition& composition)
    : store_(std::move(kernel), std::move(points), 1, false, false),
      tolerance_(std::get<Project>(composition.budget).tolerance), norm_(composition.needs.norm),
      average_(composition.average), limit_(limit_of(composition.budget)), spans_(1) {
    store_.set_limit(limit_);
}

double ProjectedExpansion::norm2() const {
    double total = 0;
    for (const CholeskySpan& span : spans_) total += span.norm2();
    return total;
}

std::size_t ProjectedExpansion::bytes() const {
    std::size_t total = sizeof *this - sizeof store_ + store_.bytes();
    for (const CholeskySpan& span : spans_) total += span.bytes();
    return total;
}

void ProjectedExpansion::load(Lookahead& lookahead, std::size_t first, std::size_t count) const {
    store_.load(lookahead, first, count);
    lookahead.solved = 0;  // a single event may need no coordinates
}

void ProjectedExpansion::solve(Lookahead& lookahead) const {
    if (lookahead.solved == lookahead.count) return;
    lookahead.solved = lookahead.count;
    std::size_t largest = 0;
    for (const CholeskySpan& span : spans_) largest = std::max(largest, span.size());
    lookahead.z_stride = CholeskySpan::padded_size(largest + lookahead.count);
    lookahead.z.resize(spans_.size());
    std::vector<const double*> from(lookahead.count);
    std::vector<double*> to(lookahead.count);
    for (std::size_t o = 0; o < spans_.size(); ++o) {
        const auto members = spans_[o].members();
        lookahead.z[o].assign(lookahead.count * lookahead.z_stride, 0.0);
        lookahead.members.assign(lookahead.count * lookahead.z_stride, 0.0);
        for (std::size_t r = 0; r < lookahead.count; ++r) {
            double* gathered = lookahead.members.data() + r * lookahead.z_stride;
            for (std::size_t s = 0; s < members.size(); ++s) gathered[s] = lookahead.row(r)[members[s]];
            from[r] = gathered;
            to[r] = lookahead.coordinates(o, r);
        }
        const std::size_t rows = lookahead.count, size = spans_[o].size();
        const bool single = threads_allowed() == 1 || rows * size * size / 2 < kWorthThreads;
        const std::size_t pieces = single ? 1 : std::min(rows / 8, 4 * threads_allowed());
        if (pieces <= 1) spans_[o].solve(from.data(), rows, to.data());
        else
            parallel(pieces, [&](std::size_t p) {
                const std::size_t first = rows * p / pieces, last = rows * (p + 1) / pieces;
                spans_[o].solve(from.data() + first, last - first, to.data() + first);
            });
    }
}

double ProjectedExpansion::score(Lookahead& lookahead, std::size_t i, std::size_t output) const {
    solve(lookahead);
    return spans_[output].score(lookahead.coordinates(output, i));
}

double ProjectedExpansion::average_score(Lookahead& lookahead, std::size_t i, std::size_t output) const {
    return spans_[output].average_score(lookahead.coordinates(output, i), ticks_);
}

void ProjectedExpansion::measure(Lookahead& lookahead, std::size_t i, std::span<const double> direction, Trial& trial) {
    if (norm_) trial.norm2 = norm2();
    const double self = outputs() > 1 ? trial.self / 2 : trial.self;
    double residual2 = 0;
    trial.projected2 = 0;
    for (std::size_t o = 0; o < spans_.size(); ++o) {
        if (direction[o] == 0) continue;
        residual2 += spans_[o].residual2(lookahead.coordinates(o, i), self);
        trial.projected2 += spans_[o].projected2(lookahead.coordinates(o, i));
    }
    trial.residual = lookahead.residual = std::sqrt(residual2);
    trial.tolerance = tolerance_;
}

ProjectedExpansion::Plan ProjectedExpansion::plan(Lookahead& lookahead, std::size_t, Term& term, Budget&, Random&) {
    if (term.step.coefficient == 0) return {};
    const bool full = store_.size() >= limit_ && !lookahead.slots.contains(term.id);
    const bool fold = term.step.fold_only || lookahead.residual <= tolerance_ || full;
    if (!fold) store_.reserve(store_.size() + 1);
    return {fold};
}

void ProjectedExpansion::commit(Lookahead& lookahead, std::size_t i, const Plan& plan, const Term& term) {
    const Step& step = term.step;
    if (step.shrink != 1)
        for (CholeskySpan& span : spans_) span.scale(step.shrink);
    if (step.coefficient != 0) {
        if (!plan.fold) store(lookahead, i, term);
        else
            for (std::size_t o = 0; o < spans_.size(); ++o)
                if (term.coefs[o] != 0) spans_[o].fold(term.coefs[o], lookahead.coordinates(o, i));
    }
    if (const double now = std::isfinite(step.radius) ? norm2() : 0.0; now > step.radius * step.radius)
        for (CholeskySpan& span : spans_) span.scale(step.radius / std::sqrt(now));
    lookahead.changed |= step.shrink != 1 || step.coefficient != 0 || average_;
}

// f_o += c_o k(x,.), and x becomes a point; an output whose span contains it projects it. The rows ahead get their new
// coordinate. In a later pass x may be stored already, for another output.
void ProjectedExpansion::store(Lookahead& lookahead, std::size_t i, const Term& term) {
    const auto known = lookahead.slots.find(term.id);
    const std::size_t slot = known == lookahead.slots.end() ? store_.size() : known->second,
                      left = lookahead.count - i - 1;
    if (slot == store_.size()) {
        const std::vector<double> nothing(spans_.size(), 0.0);
        store_.add(slot, term.id, *lookahead.batch, lookahead.first + i, nothing, nullptr, term.self, term.labels);
        if (lookahead.start) lookahead.slots[term.id] = slot;
    }
    lookahead.stored(i, slot);
    std::vector<const double*> rows(left);
    std::vector<double> next(left);
    for (std::size_t o = 0; o < spans_.size(); ++o) {
        if (term.coefs[o] == 0) continue;
        CholeskySpan& span = spans_[o];
        const double residual2 = span.residual2(lookahead.coordinates(o, i), term.self);
        if (residual2 == 0) {
            span.fold(term.coefs[o], lookahead.coordinates(o, i));
            continue;
        }
        span.add(term.coefs[o], lookahead.coordinates(o, i), std::sqrt(residual2), slot);
        if (left == 0) continue;
        for (std::size_t r = 0; r < left; ++r) rows[r] = lookahead.coordinates(o, i + 1 + r);
        span.extend(rows.data(), left, lookahead.column.data() + i + 1, next.data());
        for (std::size_t r = 0; r < left; ++r) lookahead.coordinates(o, i + 1 + r)[span.size() - 1] = next[r];
    }
}

void ProjectedExpansion::tick() {
    for (CholeskySpan& span : spans_) span.tick();
    ++ticks_;
}

void ProjectedExpansion::scale_outputs(std::span<const double> factors) {
    for (std::size_t o = 0; o < spans_.size(); ++o) spans_[o].scale_all(factors[o]);
    refresh();
}

void ProjectedExpansion::change_points(const RowChange& change) {
    store_.change_points(change);
    std::vector<CholeskySpan> fresh(spans_.size());
    Lines<double> row(padded(store_.size()));
    for (std::size_t o = 0; o < spans_.size(); ++o) {
        const CholeskySpan& old = spans_[o];
        const auto coefs = old.coefficients(old.coordinates().data());
        const auto sums = old.coefficients(old.coordinate_sum().data());
        CholeskySpan present, average;  // two hypotheses over the same members
        for (std::size_t m = 0; m < old.size(); ++m) {
            const std::size_t slot = old.members()[m];
            store_.points().stored_row(store_.kernel(), slot, row.data());
            Lines<double> values(CholeskySpan::padded_size(present.size() + 1)), z(values.size());
            for (std::size_t s = 0; s < present.size(); ++s) values[s] = row[present.members()[s]];
            const double* from = values.data();
            double* to = z.data();
            present.solve(&from, 1, &to);
            const double residual2 = present.residual2(z.data(), store_.points().stored_self(store_.kernel(), slot));
            if (!(residual2 > 0)) {
                present.fold(coefs[m], z.data());
                average.fold(sums[m], z.data());
                continue;
            }
            present.add(coefs[m], z.data(), std::sqrt(residual2), slot);
            average.add(sums[m], z.data(), std::sqrt(residual2), slot);
        }
        const std::size_t n = present.size();
        const Lines<double> g = present.coordinates(), sum = average.coordinates();
        present.restore({g.data(), n}, {sum.data(), n});
        fresh[o] = std::move(present);
    }
    if (narrower_.empty()) narrower_ = std::move(spans_);
    spans_ = std::move(fresh);
    refresh();
}

void ProjectedExpansion::add_output() {
    if (narrower_.empty()) narrower_ = spans_;
    spans_.emplace_back();
    store_.add_output();
}

void ProjectedExpansion::split_output() {
    if (narrower_.empty()) narrower_ = spans_;
    spans_.push_back(spans_[0]);
    spans_[0].scale_all(-0.5);
    spans_[1].scale_all(0.5);
    store_.split_output();
}

void ProjectedExpansion::refresh() {
    std::vector<double> coefs(store_.size());
    for (std::size_t o = 0; o < spans_.size(); ++o) {
        const CholeskySpan& span = spans_[o];
        auto of_members = span.coefficients(average_ ? span.coordinate_sum().data() : span.coordinates().data());
        std::fill(coefs.begin(), coefs.end(), 0.0);
        for (std::size_t s = 0; s < of_members.size(); ++s)
            coefs[span.members()[s]] =
                average_ && ticks_ > 0 ? of_members[s] / static_cast<double>(ticks_) : of_members[s];
        store_.assign(o, coefs);
    }
}

// ---- transactions and files ---------------------------------------------------------------------------------------

void ProjectedExpansion::begin(std::size_t rows, bool grows) {
    store_.begin(rows, grows);
    narrower_.clear();
    snapshots_.clear();
    for (const CholeskySpan& span : spans_) snapshots_.push_back(span.snapshot());
    ticks_before_ = ticks_;
}

void ProjectedExpansion::keep() {
    store_.keep();
    snapshots_.clear();
    narrower_.clear();
}

void ProjectedExpansion::rollback() {
    store_.rollback();
    if (!narrower_.empty()) spans_ = std::move(narrower_);
    for (std::size_t o = 0; o < spans_.size(); ++o) spans_[o].rollback(std::move(snapshots_[o]));
    ticks_ = ticks_before_;
    snapshots_.clear();
    narrower_.clear();
}

void ProjectedExpansion::visit(Archive& archive, std::uint64_t seen) {
    store_.visit(archive, seen);
    archive.count("span_ticks", ticks_);
    // The factor is not saved: it is recomputed from the points, bit for bit.
    std::vector<std::int64_t> members, sizes;
    std::vector<double> coordinates, sums;
    for (const CholeskySpan& span : spans_) {
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
        if (size < 0 || size > static_cast<std::int64_t>(store_.size()))
            archive.refuse("span_sizes", "does not fit the points");
        total += size;
    }
    for (const auto slot : members)
        if (slot < 0 || slot >= static_cast<std::int64_t>(store_.size()))
            archive.refuse("members", "does not fit the points");
    if (total != static_cast<std::int64_t>(members.size())) archive.refuse("members", "does not fit the others");
    rebuild(sizes, members);
    std::span<const double> g = coordinates, sum = sums;
    for (std::size_t o = 0, at = 0; o < spans_.size(); at += static_cast<std::size_t>(sizes[o]), ++o)
        spans_[o].restore(g.subspan(at, static_cast<std::size_t>(sizes[o])),
                          sum.subspan(at, static_cast<std::size_t>(sizes[o])));
}

void ProjectedExpansion::rebuild(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& members) {
    Lines<double> row(padded(store_.size()));
    auto next = members.begin();
    for (std::size_t o = 0; o < spans_.size(); ++o) {
        CholeskySpan& span = spans_[o];
        for (std::int64_t m = 0; m < sizes[o]; ++m) {
            const auto slot = static_cast<std::size_t>(*next++);
            store_.points().stored_row(store_.kernel(), slot, row.data());
            Lines<double> values(CholeskySpan::padded_size(span.size() + 1)), z(values.size());
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
