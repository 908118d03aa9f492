#include "core/keyed/keyed.hpp"

#include <cstring>

#include "core/kernels/check.hpp"
#include "core/kernels/points.hpp"
#include "core/keyed/prefetch.hpp"

namespace gristmill {

template <class T>
struct Keyed<T>::Scratch {
    Lines<T> dots, l1s, norms, lines, scaled;
    Lines<double> values, coefs;
    std::vector<double> scores, steps, shares;
    T norm2 = 0;
    Merging<T> merging;
    Calibration calibration;

    Scratch(const MemberShape& shape, std::size_t slots, std::size_t nodes, const Kernel& kernel)
        : dots(padded(slots)), l1s(padded(slots)), norms(padded(slots)), lines((nodes + 2) * padded(slots)),
          scaled(shape.width), values(padded(slots + 1)), coefs(padded(slots)), scores(shape.outputs),
          steps(shape.outputs), merging(kernel, shape.width, slots) {}
};

template <class T>
void Keyed<T>::check(const KeyedChunk<T>& chunk) const {
    if (!kernel_.restricts_points() && all_small(chunk.rows, chunk.count(), shape_.width)) return;
    // Scaled rows are checked by the kernel while learning.
    check_rows(DenseRows<T>{chunk.rows, chunk.count(), shape_.width}, shape_.scaled ? Kernel() : kernel_);
    if (!kernel_.needs_dot() || shape_.scaled) return;
    for (std::size_t e = 0; e < chunk.count(); ++e)
        refuse_too_long(e, gristmill::norm2(chunk.rows + e * shape_.width, shape_.width));
}

template <class T>
bool Keyed<T>::may_fail(const KeyedChunk<T>& chunk) const {
    const Op op = parts_.nodes.back().op;
    if (!bounded_ || settings_.spills || shape_.scaled || (op != Op::gaussian && op != Op::laplacian)) return true;
    double weight = 1, offset = 0;
    for (std::size_t e = 0; chunk.weights && e < chunk.count(); ++e) weight = std::max(weight, chunk.weights[e]);
    for (std::size_t e = 0; chunk.offsets && e < chunk.count() * chunk.offset_columns; ++e)
        offset = std::max(offset, std::abs(chunk.offsets[e]));
    // Events of all keys are counted instead of those of one key.
    return !(step_bound(parts_.rule) * weight * static_cast<double>(kMostEvents) <= kBoundedMost &&
             offset <= kBoundedMost) ||
           now_ + static_cast<double>(chunk.count()) > static_cast<double>(kMostEvents);
}

template <class T>
void Keyed<T>::learn(const KeyedChunk<T>& chunk, std::size_t classes, const Spilled& found,
                     std::vector<double>* scores) {
    const std::size_t count = chunk.count();
    const bool labelled = parts_.task == Task::classification;
    const auto known = [&] { return static_cast<double>(std::max<std::size_t>(classes_, 2)); };
    bool grows = std::max<std::size_t>(classes, 2) > std::max<std::size_t>(classes_, 2);
    for (std::size_t e = 0; labelled && e < count; ++e) grows = grows || chunk.labels[e] >= known();
    rollback();  // a change that was not committed is undone
    if (grows || may_fail(chunk)) begin(grows);
    const std::size_t before = classes_;
    try {
        add_classes(classes);
        if (scores) scores->assign(count * outputs(), 0.0);
        for (std::size_t from = 0; from < count;) {
            const std::size_t had = outputs();
            if (labelled && chunk.labels[from] >= known())
                add_classes(static_cast<std::size_t>(chunk.labels[from]) + 1);
            if (scores && outputs() != had) {
                std::vector<double> wider(count * outputs());
                for (std::size_t e = 0; e < from; ++e) {
                    const double* old = scores->data() + e * had;
                    double* now = wider.data() + e * outputs();
                    if (had == 1) {
                        now[0] = -0.5 * old[0];
                        now[1] = 0.5 * old[0];
                    } else {
                        std::copy(old, old + had, now);
                    }
                }
                scores->swap(wider);
            }
            std::size_t to = from + 1;
            while (to < count && !(labelled && chunk.labels[to] >= known())) ++to;
            for (std::size_t e = from; labelled && e < to; ++e)
                classes_ = std::max(classes_, static_cast<std::size_t>(chunk.labels[e]) + 1);
            std::visit(
                [&](const auto& rule) {
                    learn_events(rule, chunk, from, to, found, scores ? scores->data() : nullptr, undo_log_.get());
                },
                parts_.rule);
            from = to;
        }
    } catch (...) {
        if (!rollback()) classes_ = before;
        throw;
    }
    if (!settings_.spills) keep(0);
}

// The input of the kernel: scaled, if members scale, by this member's statistics.
template <class T>
const T* Keyed<T>::scaled_event(const View& member, const T* x, std::size_t e, bool learn, Scratch& scratch) const {
    if constexpr (std::is_same_v<T, double>) {
        if (!shape_.scaled) return x;
        double* out = scratch.scaled.data();
        if (!learn && member.seen() == 0) {  // without statistics there are no stored points to compare with
            std::fill(out, out + shape_.width, 0.0);
            return out;
        }
        if (!scale_row(member, parts_.scaling, shape_.width, x, out, 1, learn))
            fail(e, "the scaling leaves the range of numbers; scale the inputs first; column 0 is", x[0]);
        const double norm2 = gristmill::norm2(out, shape_.width);
        refuse_too_long(e, norm2);
        if (const auto why = kernel_.refusal(norm2)) throw RowError(e, "row " + std::to_string(e) + " " + *why);
        return out;
    }
    return x;
}

// The sum over one record of a Gaussian kernel, and <x, x>. requires: is_quick().
template <class T>
typename Keyed<T>::Sum Keyed<T>::sum(const std::byte* at, const T* x) const {
    Sum out;
    out.value = isa_fleet<T>().record_gaussian(static_cast<T>(parts_.nodes.back().a), x, &out.norm2,
                                               reinterpret_cast<const T*>(at + layout_.points), layout_.slots,
                                               view(const_cast<std::byte*>(at)).size(), shape_.width,
                                               reinterpret_cast<const double*>(at + layout_.coef));
    return out;
}

template <class T>
void Keyed<T>::use_sum(const View& member, const Sum& sum, Scratch& scratch) const {
    scratch.norm2 = sum.norm2;
    scratch.scores[0] = member.intercept(0) + member.scale() * sum.value;
}

template <class T>
void Keyed<T>::compute_scores(const View& member, const std::byte* at, const T* x, Scratch& scratch) const {
    if (is_quick()) return use_sum(member, sum(at, x), scratch);
    const std::size_t size = member.size(), slots = padded(size);
    const T* points = reinterpret_cast<const T*>(at + layout_.points);
    scratch.norm2 = gristmill::norm2(x, shape_.width);
    if (size > 0) {
        T* norm2 = scratch.norms.data();
        isa_fleet<T>().record_norms(points, layout_.slots, size, shape_.width, norm2);
        if (kernel_.needs_dot())
            isa_fleet<T>().record_dots(x, points, layout_.slots, size, shape_.width, scratch.dots.data());
        if (kernel_.needs_l1())
            isa_fleet<T>().record_l1s(x, points, layout_.slots, size, shape_.width, scratch.l1s.data());
        kernel_.values(Pairs<T>{scratch.dots.data(), scratch.l1s.data(), scratch.norm2, norm2, slots},
                       scratch.lines.data(), scratch.values.data());
        std::fill(scratch.values.begin() + static_cast<std::ptrdiff_t>(size),
                  scratch.values.begin() + static_cast<std::ptrdiff_t>(slots), 0.0);
    }
    const auto* coef = reinterpret_cast<const double*>(at + layout_.coef);
    for (std::size_t o = 0; o < shape_.outputs; ++o) {
        std::copy_n(coef + o * layout_.slots, size, scratch.coefs.begin());
        std::fill(scratch.coefs.begin() + static_cast<std::ptrdiff_t>(size),
                  scratch.coefs.begin() + static_cast<std::ptrdiff_t>(slots), 0.0);
        scratch.scores[o] =
            member.intercept(o) + member.scale() * isa_score().dot(scratch.coefs.data(), scratch.values.data(), slots);
    }
}

namespace {

// The prior's score of output o, whatever the numbers of outputs of prior and fleet.
template <class T>
double offset_of(const KeyedChunk<T>& chunk, std::size_t e, std::size_t o, std::size_t outputs) {
    if (!chunk.offsets) return 0;
    const double* at = chunk.offsets + e * chunk.offset_columns;
    if (chunk.offset_columns == 1) return outputs == 1 ? at[0] : (o == 0 ? -0.5 : o == 1 ? 0.5 : 0.0) * at[0];
    if (outputs == 1) return at[1] - at[0];
    return o < chunk.offset_columns ? at[o] : 0;
}

}  // namespace

template <class T>
template <class R>
void Keyed<T>::learn_events(const R& rule, const KeyedChunk<T>& chunk, std::size_t from, std::size_t to,
                            const Spilled& found, double* out, UndoLog* undo_log) {
    Budget budget = parts_.budget;
    const MemberParts<R> parts{rule, budget};
    Scratch scratch(shape_, limit_, parts_.nodes.size(), kernel_);
    const bool novelty = parts_.task == Task::novelty;
    Prefetcher prefetcher(*this, chunk.keys, from);
    // The sum is latency-bound, so we start the next event's sum in parallel when it belongs to another key and cannot
    // be changed in between: keys must not expire.
    const bool overlaps = is_quick() && !shape_.scaled && !expiry_.on();
    Sum next;
    std::size_t begun = from;  // the event of `next`, if it is later than this one
    for (std::size_t e = from; e < to; ++e) {
        tick(chunk.times ? chunk.times + e : nullptr);
        if (expiry_.on() && is_expired(expiry_.oldest(), now_)) expire(undo_log);
        std::uint32_t i;
        const Key& key = prefetcher(e, i);
        i = place(key, i, found, undo_log);
        std::byte* at = record(i);
        View member = view(at);
        if (shape_.merges) member.merging = &scratch.merging;
        const T* x = scaled_event(member, chunk.rows + e * shape_.width, e, true, scratch);
        if (!overlaps) {
            compute_scores(member, at, x, scratch);
        } else if (begun == e && e > from) {
            use_sum(member, next, scratch);
        } else {
            const Sum own = sum(at, x);
            const std::uint32_t other = e + 1 < to ? prefetcher.record(e + 1) : KeyTable::kNone;
            if (other != KeyTable::kNone && other != i) {
                next = sum(record(other), x + shape_.width);
                begun = e + 1;
            }
            use_sum(member, own, scratch);
        }
        for (std::size_t o = 0; o < shape_.outputs; ++o) {
            double& score = scratch.scores[o];
            if (chunk.offsets) score += offset_of(chunk, e, o, shape_.outputs);
            if (!std::isfinite(score))
                fail(e, "the score is not finite (kernel values too large, or learning diverged):", score);
            if (out) out[e * shape_.outputs + o] = score - (novelty ? own_rule(member, rule).novelty_margin() : 0.0);
        }
        const MemberEvent<T> event{x,
                                   1,
                                   scratch.norm2,
                                   kernel_.self(scratch.norm2),
                                   chunk.labels ? chunk.labels[e] : 1.0,
                                   chunk.weights ? chunk.weights[e] : 1.0,
                                   scratch.scores.data(),
                                   1,
                                   scratch.values.data()};
        try {
            learn_member(member, event, shape_, parts, scratch.steps, [] {});
        } catch (const Refusal& refusal) {
            fail(e, refusal.what, refusal.value);
        }
        if (shape_.calibration() && event.weight != 0)
            calibrate(member, shape_, scratch.calibration, scratch.scores, event.label);
    }
}

template <class T>
void Keyed<T>::score(const KeyedChunk<T>& chunk, const Spilled& found, bool shares, double* out) const {
    const std::size_t columns = shares ? std::max<std::size_t>(classes_, 1) : shape_.outputs;
    std::visit(
        [&](const auto& rule) {
            Scratch scratch(shape_, limit_, parts_.nodes.size(), kernel_);
            Lines<std::byte> start(layout_.bytes + kLineBytes), other(layout_.bytes + kLineBytes);
            view(start.data()).clear_to(0, start_);
            Prefetcher prefetcher(*this, chunk.keys, 0);
            for (std::size_t e = 0; e < chunk.count(); ++e) {
                std::uint32_t i;
                const Key& key = prefetcher(e, i);
                const std::byte* at = start.data();
                if (i != KeyTable::kNone) {
                    if (!expiry_.on() || !is_expired(expiry_.last(i), event_time(chunk, e))) at = record(i);
                } else if (settings_.spills) {
                    if (const std::string* blob = find_spilled(text_of(key), found)) {
                        const std::string record = decode(*blob);
                        std::memcpy(other.data(), record.data(), layout_.bytes);
                        if (!is_expired(last_of(record), event_time(chunk, e))) at = other.data();
                    }
                }
                const View member = view(const_cast<std::byte*>(at));
                compute_scores(member, at, scaled_event(member, chunk.rows + e * shape_.width, e, false, scratch),
                               scratch);
                const double margin = parts_.task == Task::novelty ? own_rule(member, rule).novelty_margin() : 0.0;
                for (std::size_t o = 0; o < shape_.outputs; ++o) {
                    double& score = scratch.scores[o];
                    score = score + offset_of(chunk, e, o, shape_.outputs) - margin;
                    if (!std::isfinite(score)) fail(e, "the score is not finite (kernel values too large):", score);
                    if (!shares) out[e * columns + o] = score;
                }
                if (!shares) continue;
                scratch.calibration.load(shape_.outputs, [&](std::size_t i) { return member.calibration(i); });
                scratch.calibration.probabilities(scratch.scores, classes_, out + e * columns);
            }
        },
        parts_.rule);
}

template class Keyed<double>;
template class Keyed<float>;

}  // namespace gristmill
