// Expansion as a hypothesis: look-ahead, measure, plan and commit of an event.
#include "core/expansion/expansion.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/threads.hpp"
#include "core/kernels/check.hpp"

namespace gristmill {

void Expansion::check(const Batch& batch) const {
    check_width(batch, width());
    check_rows(batch, kernel_);
}

Lookahead Expansion::make_revisit_lookahead(const Batch& batch, std::int64_t start) const {
    Lookahead lookahead(*points_, kernel_, batch);
    lookahead.start = start;
    for (std::size_t slot = 0; slot < size(); ++slot) lookahead.slots[points_->id(slot)] = slot;
    return lookahead;
}

void Expansion::load(Lookahead& lookahead, std::size_t first, std::size_t count) const {
    // A window budget holds one more point between adding and expiring.
    auto slots_after = [&](std::size_t rows) { return std::min(size() + rows, std::max(limit_, size())) + 1; };
    if (!lookahead.take_next(first, count)) lookahead.load(*points_, first, count, slots_after(count));
    if (!inserts_only_ || threads_allowed() == 1 || !lookahead.batch || lookahead.replays) return;
    const std::size_t left = batch_count(*lookahead.batch) - first - count;
    const std::size_t coming = left == 0 ? 0 : window(left);
    if (coming * size() * (width() + 16) < kWorthThreads) return;
    lookahead.start_next(*points_, kernel_, first + count, coming, slots_after(count + coming));
}

void Expansion::measure(Lookahead& lookahead, std::size_t i, std::span<const double> direction, Trial& trial) {
    if (track_norm_) {
        repair_norm();
        trial.norm2 = norm2();
    }
    if (needs_mass_) trial.mass = mass();
    if (hidden_ > 0) {
        trial.tangent = trial.along = 0;
        for (std::size_t o = 0; o < outputs(); ++o) {
            if (direction[o] != 0) trial.tangent += direction[o] * score(outputs() + o, lookahead.row(i));
            trial.along += inner(o, outputs() + o);
        }
    }
    if (!lookahead.start) return;
    const auto found = lookahead.slots.find(*lookahead.start + static_cast<std::int64_t>(lookahead.first + i));
    if (found == lookahead.slots.end()) return;
    const auto own = static_cast<std::size_t>(std::max_element(direction.begin(), direction.end()) - direction.begin());
    trial.present = coef(found->second, own);
}

bool Expansion::overflows(const Trial& trial, const Step& step) const {
    const double c = step.coefficient;
    if (!stays_in_range(c, step.shrink)) return true;
    const double grown =
        trial.norm2 * step.shrink * step.shrink + std::abs(2 * c * trial.score) + c * c * std::abs(trial.self);
    return track_norm_ && !std::isfinite(grown);
}

Expansion::Plan Expansion::plan(Lookahead& lookahead, std::size_t i, Term& term, Budget& budget, Random& random) {
    Plan plan;
    const Step& step = term.step;
    // The step of v has the direction of that of f; where f takes none, only a single output can tell.
    for (std::size_t o = 0; o < hidden_; ++o) {
        const double unit = step.coefficient != 0 ? term.coefs[o] / step.coefficient : outputs() == 1 ? 1.0 : 0.0;
        term.coefs[outputs() + o] = unit * step.tangent;
    }
    if (step.coefficient == 0 && step.tangent == 0) return plan;
    if (lookahead.start)
        if (const auto found = lookahead.slots.find(term.id); found != lookahead.slots.end()) {
            plan.present = found->second;
            return plan;
        }
    plan.entry = {};  // appends: after clearing the store is not full
    lookahead.evicted_rows.left = windowed_ ? 1 : batch_count(*lookahead.batch) - lookahead.first - i;
    const Newcomer newcomer{term.id,   term.coefs.first(outputs()), step.shrink, lookahead.row(i),
                            term.self, &lookahead.evicted_rows};
    if (step.shrink != 0) plan.entry = choose(budget, *this, newcomer, random);
    if (plan.entry.kind == Entry::Kind::append) reserve(size() + 1);
    if (!track_norm_) return plan;  // only the norm needs the rows
    auto copy_row = [&](std::size_t slot, Lines<double>& to) {
        const double* row = lookahead.evicted_rows.row(*points_, kernel_, slot);
        to.assign(row, row + padded(size()));
    };
    if (plan.entry.kind == Entry::Kind::replace) copy_row(plan.entry.slot, plan.evicted_row);
    if (plan.entry.onto != Points::npos) copy_row(plan.entry.onto, plan.partner_row);
    return plan;
}

void Expansion::commit(Lookahead& lookahead, std::size_t i, const Plan& plan, const Term& term) {
    const Step& step = term.step;
    // The shrinking below multiplies v too; tangent_keep is relative to that.
    for (std::size_t o = 0; o < hidden_; ++o)
        combine(outputs() + o, step.tangent_keep / step.shrink, o, step.tangent_mix / step.shrink);
    const std::size_t before = size();
    if (lookahead.replays && step.shrink == 0) clear_coefs();
    else shrink(step.shrink * plan.entry.factor);
    if (size() < before) {
        lookahead.cleared(i + 1, before);
        lookahead.slots.clear();
    }
    for (double& c : term.coefs) c *= plan.entry.factor;
    if (plan.present != Points::npos) {
        adjust_present(lookahead, i, plan, term);
    } else if (plan.entry.kind == Entry::Kind::fold) {
        for (double& c : term.coefs) c *= plan.entry.share;
        if (plan.entry.onto != Points::npos) adjust(plan.entry.onto, term.coefs, plan.partner_row.data());
    } else if (plan.entry.kind != Entry::Kind::refuse) {
        std::size_t slot = size();
        const double reach = neighbours_ > 0 ? neighbours::reach(lookahead.row(i), slot, neighbours_) : 0;
        if (plan.entry.kind == Entry::Kind::replace) {
            slot = plan.entry.slot;
            if (lookahead.start) lookahead.slots.erase(points_->id(slot));
            if (plan.entry.onto != Points::npos) fold(slot, plan.entry.onto, plan.entry.share, plan.partner_row.data());
            release(slot, plan.evicted_row.data());
        }
        add(slot, term.id, *lookahead.batch, lookahead.first + i, term.coefs, lookahead.row(i), term.self,
            neighbours_ > 0 ? std::span(&reach, 1) : term.labels);
        lookahead.stored(i, slot);
        if (lookahead.start) lookahead.slots[term.id] = slot;
    }
    if (std::isfinite(step.radius)) stay_inside(step.radius);
}

void Expansion::adjust_present(Lookahead& lookahead, std::size_t i, const Plan& plan, const Term& term) {
    const std::size_t slot = plan.present, last = size() - 1;
    adjust(slot, term.coefs, lookahead.row(i));
    if (magnitude(slot) != 0 || lookahead.replays) return;
    remove(slot, lookahead.row(i));
    lookahead.moved(i + 1, last, slot);
    lookahead.slots.erase(term.id);
    if (slot != last) lookahead.slots[points_->id(slot)] = slot;
}

void Expansion::expire(Lookahead& lookahead, std::size_t i, std::int64_t horizon) {
    for (std::size_t slot = oldest(); slot != Points::npos && points_->id(slot) < horizon; slot = oldest()) {
        const std::size_t last = size() - 1;
        lookahead.evicted_rows.left = 1;
        remove(slot, track_norm_ ? lookahead.evicted_rows.row(*points_, kernel_, slot) : nullptr);
        lookahead.moved(i + 1, last, slot);
    }
}

void Expansion::scores(const Batch& batch, double* out) const {
    const std::size_t rows = batch_count(batch), stride = padded(size());
    const std::size_t block = std::clamp<std::size_t>((8u << 20) / (8 * (stride + 1)), 16, 128);
    auto score_rows = [&](std::size_t from, std::size_t to) {
        const auto kernel_rows = points_->kernel_rows(kernel_, batch);
        Lines<double> values(std::min(to - from, block) * stride);
        double* at = out + from * outputs();
        for (std::size_t first = from; first < to; first += block) {
            const std::size_t count = std::min(block, to - first);
            kernel_rows->load(first, count);
            kernel_rows->rows(values.data(), stride);
            for (std::size_t r = 0; r < count; ++r)
                for (std::size_t o = 0; o < outputs(); ++o) {
                    const double* row = values.data() + r * stride;
                    *at++ = average_ ? average_score(o, row) : output_score(o, row);
                }
        }
    };
    constexpr std::size_t kFewest = 16;  // rows that fill a register tile
    const bool single =
        threads_allowed() == 1 || points_->may_fail() || rows * stride * (width() / 8 + 16) < kWorthThreads;
    const std::size_t pieces = single ? 1 : std::min(rows / kFewest, 4 * threads_allowed());
    if (pieces <= 1) return score_rows(0, rows);
    parallel(pieces, [&](std::size_t p) { score_rows(rows * p / pieces, rows * (p + 1) / pieces); });
}

void Expansion::gradients(const Batch& batch, double* out) const {
    if (neighbours_ > 0) throw std::invalid_argument("a score that is measured by neighbours has no gradient");
    const std::size_t rows = batch_count(batch), stride = padded(size());
    std::vector<Lines<double>> coefs(outputs(), Lines<double>(stride));
    for (std::size_t o = 0; o < outputs(); ++o)
        for (std::size_t slot = 0; slot < size(); ++slot) coefs[o][slot] = shown_coef(slot, o);
    const auto kernel_rows = points_->kernel_rows(kernel_, batch);
    // As many rows as keep their weights in the L2 cache (for signs those of all points, otherwise of a panel) and fill
    // a tile.
    const bool signs = kernel_.needs_l1();
    const std::size_t weights = outputs() * (signs ? stride : std::min<std::size_t>(stride, 256)) + 1;
    const std::size_t block = std::clamp<std::size_t>((1u << 17) / weights / 8 * 8, 8, signs ? 64 : 128);
    for (std::size_t first = 0; first < rows; first += block) {
        const std::size_t count = std::min(block, rows - first);
        kernel_rows->load(first, count);
        kernel_rows->gradients(coefs, out + first * outputs() * width());
    }
}

}  // namespace gristmill
