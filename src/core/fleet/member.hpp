// One member of a fleet: a few numbers and points in memory shared with other members, and the update by one event.
//
// It is the loop of learner/learner.hpp over an expansion without norm and average, written for strided memory: lanes
// of learners (fleet/fleet.hpp) and records of one learner each (keyed/keyed.hpp) use the same code. Slots are filled,
// replaced and moved exactly as in expansion/expansion.cpp, because a score sums in the order of the slots.
#pragma once

#include <cmath>
#include <cstring>

#include "core/fleet/merging.hpp"
#include "core/fleet/scaling.hpp"
#include "core/learner/hypothesis.hpp"
#include "core/learner/learner.hpp"
#include "core/simd/fleet_dispatch.hpp"

namespace gristmill {

// Positions in the stream have 32 bits in a fleet.
inline constexpr std::uint64_t kMostEvents = 0xffffffffu;
// Coefficients below this cannot make a score of a bounded kernel infinite.
inline constexpr double kBoundedMost = 1e100;

// What all members have in common.
struct MemberShape {
    std::size_t width = 0, outputs = 1;
    std::size_t numbers = 0;  // numbers of the rule's state
    Task task = Task::novelty;
    bool random = false;      // the budget uses random numbers
    bool scaled = false;      // members scale their inputs
    bool norms = true;        // <y, y> of each point is stored instead of recomputed
    bool merges = false;      // points have merge partners

    std::size_t calibration() const { return task == Task::classification ? Calibration::count(outputs) : 0; }
};

// Byte offsets of the fields for `lanes` members side by side with `slots` slots each.
struct MemberLayout {
    std::size_t slots, size, seen, steps, scale, intercept, numbers, scaling, calibration, coef, points, norm2, hot;
    std::size_t seed, counter, target, likeness, share, self, partner_rows, ids, partner, code, stale, bytes;

    MemberLayout(const MemberShape& shape, std::size_t number_bytes, std::size_t slots, std::size_t lanes)
        : slots(slots) {
        std::size_t at = 0;
        auto take = [&](std::size_t count, std::size_t each) {
            const std::size_t start = at;
            at += count * each * lanes;
            return start;
        };
        // First, up to `hot`, what every event reads: a record starts at a cache line.
        size = take(1, 4);
        seen = take(1, 4);
        steps = take(2, 4);
        scale = take(1, 8);
        intercept = take(shape.outputs, 8);
        numbers = take(shape.numbers, 8);
        scaling = take(shape.scaled ? Scaling::kNumbers * shape.width : 0, 8);
        calibration = take(shape.calibration(), 8);
        coef = take(shape.outputs * slots, 8);
        points = take(slots * shape.width, number_bytes);
        norm2 = take(shape.norms ? slots : 0, number_bytes);
        hot = at;
        // Then what only some events read, larger types first, so that all are aligned.
        at = (at + 8 * lanes - 1) / (8 * lanes) * 8 * lanes;
        seed = take(shape.random, 8);
        counter = take(shape.random, 8);
        target = take(shape.task == Task::regression ? slots : 0, 8);
        const std::size_t merged = shape.merges ? slots : 0;
        likeness = take(merged, 8);
        share = take(merged, 8);
        self = take(merged, 8);
        partner_rows = take(shape.merges, 8);
        ids = take(slots, 4);
        partner = take(merged, 2);
        code = take(shape.task == Task::classification ? slots : 0, 2);
        stale = take(merged, 1);
        const std::size_t whole = lanes == 1 ? kLineBytes : 8;
        bytes = (at + whole - 1) / whole * whole;
    }
};

// Why an event cannot be learned; the caller adds which event it is.
struct Refusal {
    const char* what;
    double value;
};

// The points to evict in all lanes of a block, computed together when the first is needed.
struct LaneEvictions {
    bool known = false;
    std::int64_t slot[16], tied[16];
};

template <class T, std::size_t Lanes>
class Member {
  public:
    static constexpr std::uint16_t kNoCode = 0xffff;

    Member(std::byte* base, std::size_t lane, const MemberShape& shape, const MemberLayout& at)
        : shape_(&shape), at_(&at), base_(base), lane_(lane) {}

    // ---- as a store for budgets
    std::size_t size() const { return *count(at_->size); }
    std::size_t oldest() const {
        std::size_t found = Points::npos;
        std::uint64_t first = kMostEvents + 1;
        const std::uint32_t* ids = count(at_->ids);
        if constexpr (Lanes == 1)
            if (size() > 0) return isa_fleet<T>().record_oldest(ids, size());
        for (std::size_t s = 0, n = size(); s < n; ++s)
            if (ids[s * Lanes] < first) {
                first = ids[s * Lanes];
                found = s;
            }
        return found;
    }
    std::size_t smallest() const {
        if (evictions && evictions->known && !evictions->tied[lane_])
            return static_cast<std::size_t>(evictions->slot[lane_]);
        const std::uint32_t* ids = count(at_->ids);
        std::size_t found = 0;
        double least = magnitude(0);
        for (std::size_t s = 1, n = size(); s < n; ++s) {
            const double here = magnitude(s);
            if (here < least || (here == least && ids[s * Lanes] < ids[found * Lanes])) {
                found = s;
                least = here;
            }
        }
        return found;
    }
    double magnitude(std::size_t slot) const {
        double largest = 0;
        for (std::size_t o = 0; o < shape_->outputs; ++o) largest = std::max(largest, std::abs(coef(o, slot)));
        return std::abs(scale()) * largest;
    }
    const LaneEvictions* evictions = nullptr;

    // ---- fields
    double& scale() const { return *real(at_->scale); }
    double& intercept(std::size_t o) const { return real(at_->intercept)[o * Lanes]; }
    double& number(std::size_t i) const { return real(at_->numbers)[i * Lanes]; }
    double& scaling(std::size_t i, std::size_t j) const { return real(at_->scaling)[(i * shape_->width + j) * Lanes]; }
    double& coef(std::size_t o, std::size_t slot) const { return real(at_->coef)[(o * at_->slots + slot) * Lanes]; }
    double& calibration(std::size_t i) const { return real(at_->calibration)[i * Lanes]; }
    std::uint64_t& partner_rows() const { return *word(at_->partner_rows); }
    MergePartners::PartnerState partner_state(std::size_t slot) const {
        const std::uint16_t partner = at<std::uint16_t>(at_->partner)[slot * Lanes];
        return {partner == kNoCode ? MergePartners::kNone : partner, real(at_->likeness)[slot * Lanes],
                real(at_->share)[slot * Lanes], real(at_->self)[slot * Lanes],
                at<std::uint8_t>(at_->stale)[slot * Lanes] != 0};
    }
    void set_partner_state(std::size_t slot, const MergePartners::PartnerState& known) const {
        at<std::uint16_t>(at_->partner)[slot * Lanes] =
            known.partner == MergePartners::kNone ? kNoCode : static_cast<std::uint16_t>(known.partner);
        real(at_->likeness)[slot * Lanes] = known.likeness;
        real(at_->share)[slot * Lanes] = known.share;
        real(at_->self)[slot * Lanes] = known.self;
        at<std::uint8_t>(at_->stale)[slot * Lanes] = known.stale;
    }
    Entry cheapest_fold(const Newcomer& newcomer) const { return merging->cheapest_fold(*this, newcomer); }
    Merging<T>* merging = nullptr;  // only with Merge

    std::uint32_t& seen() const { return *count(at_->seen); }
    std::uint32_t& steps() const { return *count(at_->steps); }
    std::uint32_t& id(std::size_t slot) const { return count(at_->ids)[slot * Lanes]; }
    void set_norm2(std::size_t slot, T value) const {
        if (shape_->norms) at<T>(at_->norm2)[slot * Lanes] = value;
    }
    T& point(std::size_t slot, std::size_t j) const {
        // In lanes of learners a point's features are adjacent; in a record a feature's slots are adjacent.
        return at<T>(at_->points)[Lanes == 1 ? j * at_->slots + slot : (slot * shape_->width + j) * Lanes];
    }
    Random random() const { return shape_->random ? Random{*word(at_->seed), *word(at_->counter)} : Random{}; }
    void set_random(const Random& r) const {
        if (shape_->random) {
            *word(at_->seed) = r.seed;
            *word(at_->counter) = r.counter;
        }
    }
    double label(std::size_t slot) const {
        if (shape_->task == Task::novelty) return 1.0;
        if (shape_->task == Task::regression) return real(at_->target)[slot * Lanes];
        const std::uint16_t code = at<std::uint16_t>(at_->code)[slot * Lanes];
        return code == kNoCode ? kUnknown : code;
    }
    void set_label(std::size_t slot, double label) const {
        if (shape_->task == Task::regression) real(at_->target)[slot * Lanes] = label;
        if (shape_->task == Task::classification)
            at<std::uint16_t>(at_->code)[slot * Lanes] =
                std::isnan(label) ? kNoCode : static_cast<std::uint16_t>(label);
    }
    void copy_norms(const Member& from) const {
        for (std::size_t s = 0; shape_->norms && s < from.size(); ++s)
            set_norm2(s, from.template at<T>(from.at_->norm2)[s * Lanes]);
    }
    // Initialises a member. requires: zeroed memory.
    void clear_to(std::uint64_t seed, std::span<const double> numbers) const {
        scale() = 1;
        for (std::size_t i = 0; i < numbers.size(); ++i) number(i) = numbers[i];
        set_random({seed, 0});
        if (shape_->calibration())
            Calibration::of(shape_->outputs).save([&](std::size_t i) -> double& { return calibration(i); });
    }
    void set_size(std::size_t n) const { *count(at_->size) = static_cast<std::uint32_t>(n); }

    // ---- changes, as in expansion/expansion.cpp
    // x: a row, whose numbers are `stride` apart.
    void put(std::size_t slot, double label, const T* x, std::size_t stride, T x_norm2) const {
        if (slot == size()) set_size(slot + 1);
        for (std::size_t j = 0; j < shape_->width; ++j) point(slot, j) = x[j * stride];
        set_norm2(slot, x_norm2);
        id(slot) = seen();
        set_label(slot, label);
    }
    void remove(std::size_t slot) const {
        const std::size_t last = size() - 1;
        for (std::size_t j = 0; j < shape_->width; ++j) {
            point(slot, j) = point(last, j);
            point(last, j) = T(0);
        }
        if (shape_->norms) {
            set_norm2(slot, at<T>(at_->norm2)[last * Lanes]);
            set_norm2(last, T(0));
        }
        for (std::size_t o = 0; o < shape_->outputs; ++o) {
            coef(o, slot) = coef(o, last);
            coef(o, last) = 0;
        }
        id(slot) = id(last);
        set_label(slot, label(last));
        set_size(last);
    }
    void expire(std::int64_t horizon) const {
        for (std::size_t slot = oldest(); slot != Points::npos && id(slot) < horizon; slot = oldest()) remove(slot);
    }
    void shrink(double factor) const {
        if (factor == 1) return;
        if (factor == 0) {
            while (size() > 0) remove(size() - 1);
            scale() = 1;
            return;
        }
        scale() *= factor;
        if (const double now = std::abs(scale()); now < 1e-100 || now > 1e100) renormalize();
    }
    bool stays_in_range(double coefficient, double factor) const {
        constexpr double kLargest = 1e150;
        if (!(std::abs(coefficient) <= kLargest)) return false;
        if (std::abs(factor) <= 1) return true;
        for (std::size_t slot = 0; slot < size(); ++slot)
            if (!(magnitude(slot) * std::abs(factor) <= kLargest)) return false;
        return std::abs(factor) <= kLargest;
    }
    // Replaces the output f by -f/2 and f/2, with further outputs 0. requires: memory for the outputs.
    void split_output() const {
        for (std::size_t s = 0; s < size(); ++s) {
            coef(1, s) = 0.5 * coef(0, s);
            coef(0, s) *= -0.5;
        }
        intercept(1) = 0.5 * intercept(0);
        intercept(0) *= -0.5;
    }

  private:
    void renormalize() const {
        for (std::size_t o = 0; o < shape_->outputs; ++o)
            for (std::size_t s = 0; s < size(); ++s) coef(o, s) = scale() * coef(o, s);
        scale() = 1;
    }
    template <class U>
    U* at(std::size_t offset) const {
        return reinterpret_cast<U*>(base_ + offset) + lane_;
    }
    double* real(std::size_t offset) const { return at<double>(offset); }
    std::uint32_t* count(std::size_t offset) const { return at<std::uint32_t>(offset); }
    std::uint64_t* word(std::size_t offset) const { return at<std::uint64_t>(offset); }

    const MemberShape* shape_;
    const MemberLayout* at_;
    std::byte* base_;
    std::size_t lane_;
};

// An event to be learned by a member.
template <class T>
struct MemberEvent {
    const T* x;
    std::size_t stride;     // distance between the numbers of x
    T norm2;
    double self, label, weight;
    const double* scores;   // intercept + f, one per output, finite
    std::size_t score_stride;
    const double* row = nullptr;  // kernel values at the stored points, for budgets that need them
    double score(std::size_t o) const { return scores[o * score_stride]; }
};

// The trial of an event, and the outputs that the step raises and lowers.
template <class T>
[[gnu::always_inline]] inline Trial member_trial(const MemberShape& shape, const MemberEvent<T>& event,
                                                 std::uint64_t step, std::size_t& own, std::size_t& rival) {
    Trial trial{
        .score = event.score(0), .label = event.label, .self = event.self, .step = step, .weight = event.weight};
    own = rival = 0;
    if (shape.task != Task::classification) return trial;
    if (shape.outputs == 1) {
        trial.label = 2 * event.label - 1;
        return trial;
    }
    own = static_cast<std::size_t>(event.label);
    rival = own == 0 ? 1 : 0;
    for (std::size_t o = rival + 1; o < shape.outputs; ++o)
        if (o != own && event.score(o) > event.score(rival)) rival = o;
    trial.score = event.score(own) - event.score(rival);
    trial.label = 1;
    trial.self *= 2;
    return trial;
}

// Rule and budget of the members: the rule is a prototype, whose state is stored per member.
template <class R>
struct MemberParts {
    const R& rule;
    Budget& budget;
};

// The rule with the state of this member.
template <class M, class R>
[[gnu::always_inline]] inline R own_rule(const M& member, const R& prototype) {
    R rule = prototype;
    std::size_t i = 0;
    rule.state([&](const char*, double& x) { x = member.number(i++); });
    return rule;
}

template <class M, class T, class R>
[[gnu::always_inline]] inline void enter(const M& member, const MemberEvent<T>& event, const MemberShape& shape,
                                         Budget& budget, const Step& step, std::span<double> coefs, std::size_t own,
                                         std::size_t rival, const R& find_evictions) {
    Entry entry{Entry::Kind::refuse};
    if (step.coefficient != 0) {
        entry = {};  // appends: after clearing the store is not full
        std::fill(coefs.begin(), coefs.end(), 0.0);
        coefs[own] = step.coefficient;
        if (rival != own) coefs[rival] = -step.coefficient;
        if (step.shrink != 0) {
            Random random = member.random();
            find_evictions();
            if (member.merging) member.merging->load(member);
            const Newcomer newcomer{member.seen(), coefs, step.shrink, event.row, event.self};
            // The common cases, without a jump through the variant.
            if (auto* smallest = std::get_if<DropSmallest>(&budget)) entry = smallest->choose(member, newcomer, random);
            else if (auto* oldest = std::get_if<DropOldest>(&budget)) entry = oldest->choose(member, newcomer, random);
            else entry = choose(budget, member, newcomer, random);
            member.set_random(random);
        }
    }
    member.shrink(step.shrink * entry.factor);
    if (entry.kind == Entry::Kind::refuse) return;
    if (entry.kind == Entry::Kind::fold) {  // into a stored point, or dropped
        for (std::size_t o = 0; entry.onto != Points::npos && o < shape.outputs; ++o)
            member.coef(o, entry.onto) += coefs[o] * entry.factor * entry.share / member.scale();
        member.merging->save(member);
        return;
    }
    const std::size_t slot = entry.kind == Entry::Kind::replace ? entry.slot : member.size();
    if (entry.kind == Entry::Kind::replace && entry.onto != Points::npos)
        for (std::size_t o = 0; o < shape.outputs; ++o)
            member.coef(o, entry.onto) += entry.share * member.coef(o, slot);
    member.put(slot, event.label, event.x, event.stride, event.norm2);
    for (std::size_t o = 0; o < shape.outputs; ++o)
        member.coef(o, slot) = 0.0 + coefs[o] * entry.factor / member.scale();
    if (!member.merging) return;
    if (step.shrink == 0) member.merging->reset(member.partner_rows());  // all other points were cleared
    member.merging->stored(member, slot, event.row, event.self);
    member.merging->save(member);
}

// Learns and counts one scored event. Throws Refusal before anything has changed.
template <class M, class T, class R, class V>
[[gnu::always_inline]] inline void learn_member(const M& member, const MemberEvent<T>& event, const MemberShape& shape,
                                                const MemberParts<R>& parts, std::span<double> coefs,
                                                const V& find_evictions) {
    if (member.seen() == kMostEvents)
        throw Refusal{"a member of a fleet counts so many events and no more:", double(kMostEvents)};
    if (event.weight != 0) {
        if (!std::isfinite(event.self))
            throw Refusal{"k(x, x) is not finite (scale the inputs, or choose another kernel):", event.self};
        std::size_t own, rival;
        const Trial trial = member_trial(shape, event, std::uint64_t{member.steps()} + 1, own, rival);
        R rule = own_rule(member, parts.rule);
        const Step step = rule(trial);
        if (!std::isfinite(step.coefficient) || !std::isfinite(step.shrink) || !std::isfinite(step.intercept))
            throw Refusal{"the rule proposed a step that is not finite (learning diverged; a smaller rate may help):",
                          step.coefficient};
        if (!member.stays_in_range(step.coefficient, step.shrink))
            throw Refusal{"the coefficients would overflow (learning diverged; a smaller rate may help):",
                          step.coefficient};
        std::size_t i = 0;
        rule.state([&](const char*, double& x) { member.number(i++) = x; });
        enter(member, event, shape, parts.budget, step, coefs, own, rival, find_evictions);
        member.intercept(own) += step.intercept;
        if (rival != own) member.intercept(rival) -= step.intercept;
        ++member.steps();
    }
    ++member.seen();
    if (const auto* window = std::get_if<Window>(&parts.budget)) member.expire(window->horizon(member.seen()));
}

// Updates the member's probabilities with the scores of an event before it was learned.
template <class M>
void calibrate(const M& member, const MemberShape& shape, Calibration& scratch, std::span<const double> scores,
               double label) {
    scratch.load(shape.outputs, [&](std::size_t i) { return member.calibration(i); });
    scratch.learn(scores, static_cast<std::size_t>(label));
    scratch.save([&](std::size_t i) -> double& { return member.calibration(i); });
}

// Refuses parts that a fleet cannot serve; returns the largest number of points of a member.
inline std::size_t member_limit(const Rule& rule, const Budget& budget) {
    const Needs needs = needs_of(rule) | needs_of(budget);
    const bool merges = std::holds_alternative<Merge>(budget);
    if (bytes_of(budget) > 0) throw std::invalid_argument("a fleet needs a size in points, not in bytes");
    if (const char* what = Needs{.rows = merges, .partners = merges}.lacks(needs))
        throw std::invalid_argument(std::string("a fleet cannot serve this rule and budget, which need ") + what);
    if (std::holds_alternative<Foreign>(rule) || std::holds_alternative<ForeignBudgetPart>(budget))
        throw std::invalid_argument("a fleet cannot serve rules and budgets written in Python");
    if (!state_of(budget).empty())
        throw std::invalid_argument("a fleet cannot serve a budget that counts, as uniform=True does");
    const std::size_t limit = limit_of(budget);
    if (limit == kNoLimit) throw std::invalid_argument("a fleet needs a budget with a fixed number of points");
    if (merges && limit >= 0xffff) throw std::invalid_argument("a fleet has room for 65534 points a member with Merge");
    return std::holds_alternative<Window>(budget) ? limit + 1 : limit;  // a window holds one more point temporarily
}

// The largest |coefficient| of a step for an event of weight 1 under a kernel with values in [0, 1]; infinity if the
// rule has no bound. With a bound nothing can diverge, and a chunk needs no copy for a rollback.
inline double step_bound(const Rule& rule) {
    return std::visit(
        [](const auto& r) -> double {
            using R = std::decay_t<decltype(r)>;
            if constexpr (std::is_same_v<R, Perceptron>) return 1;
            if constexpr (std::is_same_v<R, Sgd>)
                return r.loss.kind != LossKind::squared && std::abs(1 - r.rate * r.reg) <= 1 ? r.rate : kInfinity;
            if constexpr (std::is_same_v<R, PassiveAggressive>) return r.variant == 1 ? r.aggressiveness : kInfinity;
            if constexpr (std::is_same_v<R, Implicit>)
                return r.loss.kind != LossKind::squared ? r.rate * r.trade : kInfinity;
            return kInfinity;
        },
        rule);
}

}  // namespace gristmill
