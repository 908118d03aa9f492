#include "core/fleet/fleet.hpp"

#include <bit>

#include "core/base/threads.hpp"
#include "core/fleet/vector_rules.hpp"
#include "core/kernels/points.hpp"

namespace gristmill {

namespace {

// Calls f for ascending ranges of blocks, a few per thread. The first error by block is thrown, for any number of
// threads. work: approximate number of multiplications of all of them.
template <class F>
void for_each_block(std::size_t count, std::size_t jobs, std::size_t work, const F& f) {
    if (jobs <= 1 || count <= 1 || work < kWorthThreads) return f(0, count);
    const std::size_t runs = std::min(8 * jobs, count);
    parallel(runs, jobs, [&](std::size_t r) { f(count * r / runs, count * (r + 1) / runs); });
}

}  // namespace

template <class T>
struct Fleet<T>::Scratch {
    Lines<T> x, values, lines;
    T norm2[kWide];
    Lines<double> raw;
    double self[kWide];
    std::uint32_t here = 0;  // bit mask of the lanes with an event
    double labels[kWide], weights[kWide], shown[kWide];
    std::vector<double> coefs, scores;
    LaneEvictions evictions;
    Lines<double> row;
    Merging<T> merging;
    Calibration calibration;

    Scratch(const MemberShape& shape, std::size_t slots, std::size_t nodes, const Kernel& kernel)
        : x(shape.width * kWide), values(slots * kWide), lines((2 * nodes + 8) * kWide), raw(shape.outputs * kWide),
          coefs(shape.outputs), scores(shape.outputs), row(padded(slots + 1)), merging(kernel, shape.width, slots) {
        std::fill(labels, labels + kWide, 1.0);
        std::fill(weights, weights + kWide, 1.0);
        std::fill(self, self + kWide, 1.0);
    }
    bool is_here(std::size_t lane) const { return here >> lane & 1; }
    LaneEvents<T> events(double* shown) { return {x.data(), norm2, raw.data(), self, labels, weights, here, shown}; }
};

template <class T>
void Fleet<T>::learn(const FleetChunk<T>& chunk, std::size_t classes, std::vector<double>* scores, std::size_t jobs) {
    const std::size_t events = chunk.frames * count_;
    const bool labelled = parts_.task == Task::classification;
    // The number of classes up to each frame: a frame with a new class starts a new run.
    const auto classes_up_to = [&](std::size_t frame) {
        double most = -1;
        for (std::size_t e = frame * count_; labelled && e < (frame + 1) * count_; ++e)
            if (!chunk.present || chunk.present[e]) most = std::max(most, chunk.labels[e]);
        return static_cast<std::size_t>(most + 1);
    };
    std::size_t last = std::max(classes, classes_);
    for (std::size_t t = 0; t < chunk.frames; ++t) last = std::max(last, classes_up_to(t));
    reserve(chunk.frames);
    const bool copies = may_fail(chunk) || std::max<std::size_t>(last, 2) > std::max<std::size_t>(classes_, 2);
    const auto blocks = copies ? blocks_ : std::vector<Block>();
    const MemberShape shape = shape_;
    const std::size_t known = classes_;
    try {
        add_classes(classes);
        if (scores) scores->assign(events * outputs(), kUnknown);
        for (std::size_t from = 0; from < chunk.frames;) {
            const std::size_t before = outputs();
            if (const std::size_t now = classes_up_to(from); now > classes_) add_classes(now);
            if (scores && outputs() != before) {
                std::vector<double> wider(events * outputs(), kUnknown);
                for (std::size_t e = 0; e < from * count_; ++e) {
                    const double* old = scores->data() + e * before;
                    double* fresh = wider.data() + e * outputs();
                    std::fill(fresh, fresh + outputs(), std::isnan(old[0]) ? kUnknown : 0.0);
                    if (before == 1) {
                        fresh[0] = -0.5 * old[0];
                        fresh[1] = 0.5 * old[0];
                    } else {
                        std::copy(old, old + before, fresh);
                    }
                }
                scores->swap(wider);
            }
            std::size_t to = from + 1;
            while (to < chunk.frames && classes_up_to(to) <= std::max<std::size_t>(classes_, 2)) ++to;
            learn_frames(chunk, from, to, scores ? scores->data() : nullptr, jobs);
            for (std::size_t t = from; t < to; ++t) classes_ = std::max(classes_, classes_up_to(t));
            from = to;
        }
        seen_ += chunk.frames;
        ++changes_;
    } catch (...) {
        if (copies) blocks_ = blocks;
        if (shape_.outputs != shape.outputs) layouts_.clear();
        shape_ = shape;
        classes_ = known;
        throw;
    }
}

template <class T>
void Fleet<T>::learn_frames(const FleetChunk<T>& chunk, std::size_t from, std::size_t to, double* out,
                            std::size_t jobs) {
    LaneSettings lanes;
    if (shape_.outputs == 1 && limit_ <= kMostLaneSlots && seen_ + to <= kMostEvents)
        lanes = lane_settings(parts_.rule, parts_.budget, parts_.task);
    lanes.width = shape_.width;
    lanes.slots = limit_;
    lanes.unit = parts_.nodes.back().op == Op::gaussian || parts_.nodes.back().op == Op::laplacian;
    std::visit(
        [&](const auto& rule) {
            for_each_block(blocks_.size(), jobs, work(to - from), [&](std::size_t first, std::size_t end) {
                Scratch scratch(shape_, limit_, parts_.nodes.size(), kernel_);
                for (std::size_t b = first; b < end; ++b) learn_block(b, rule, chunk, from, to, out, lanes, scratch);
            });
        },
        parts_.rule);
}

// Loads one frame's events of a block into lanes, scaled by each member's own statistics if members scale.
template <class T>
void Fleet<T>::load_events(const Block& block, std::size_t b, const FleetChunk<T>& chunk, std::size_t frame, bool learn,
                           Scratch& scratch) const {
    const std::size_t width = shape_.width, first = frame * count_ + b * kWide;
    const std::size_t lanes = std::min(kWide, count_ - b * kWide);
    scratch.here = (std::uint32_t{1} << lanes) - 1;
    for (std::size_t l = 0; chunk.present && l < lanes; ++l)
        if (!chunk.present[first + l]) scratch.here &= ~(std::uint32_t{1} << l);
    if (lanes == kWide && !chunk.present) {
        isa_fleet<T>().lanes(chunk.rows + first * width, width, scratch.x.data());
    } else {
        for (std::size_t l = 0; l < kWide; ++l)
            for (std::size_t j = 0; j < width; ++j)
                scratch.x[j * kWide + l] = scratch.is_here(l) ? chunk.rows[(first + l) * width + j] : T(0);
    }
    if constexpr (std::is_same_v<T, double>) {
        for (std::size_t l = 0; shape_.scaled && l < lanes; ++l) {
            if (!scratch.is_here(l)) continue;
            const View member = view(block, l);
            double* x = scratch.x.data() + l;
            if (!learn && member.seen() == 0) {  // without statistics there are no stored points to compare with
                for (std::size_t j = 0; j < width; ++j) x[j * kWide] = 0;
            } else if (!scale_row(member, parts_.scaling, width, chunk.rows + (first + l) * width, x, kWide, learn)) {
                report(b * kWide + l, frame,
                       {"the scaling leaves the range of numbers; scale the inputs first; column 0 is", x[0]});
            }
        }
    }
}

// Computes the kernel rows and scores (without scale and intercept) of one frame's events of a block.
template <class T>
void Fleet<T>::compute_scores(const Block& block, std::size_t b, const FleetChunk<T>& chunk, std::size_t frame,
                              bool learn, Scratch& scratch) const {
    load_events(block, b, chunk, frame, learn, scratch);
    const std::size_t width = shape_.width;
    std::size_t slots = 0;
    for (std::size_t l = 0; l < kWide && slots < block.layout->slots; ++l)
        if (scratch.is_here(l)) slots = std::max(slots, view(block, l).size());
    const auto root = static_cast<std::int32_t>(parts_.nodes.size()) - 1;
    const std::byte* data = block.data.data();
    const MemberLayout& at = *block.layout;
    const auto& vectors = isa_fleet<T>();
    vectors.norms(scratch.x.data(), width, scratch.norm2);
    for (std::size_t l = 0; shape_.scaled && l < kWide; ++l) {
        if (!scratch.is_here(l)) continue;
        if (!(scratch.norm2[l] <= std::numeric_limits<T>::max() / 4))
            report(b * kWide + l, frame, {"the squared norm of the scaled event overflows:", scratch.norm2[l]});
        if (const auto why = kernel_.refusal(scratch.norm2[l]))
            throw RowError(frame * count_ + b * kWide + l, "learner " + std::to_string(b * kWide + l) + ", frame " +
                                                               std::to_string(frame) + " " + *why);
    }
    vectors.values(parts_.nodes.data(), root, scratch.x.data(), scratch.norm2,
                   reinterpret_cast<const T*>(data + at.points), reinterpret_cast<const T*>(data + at.norm2), slots,
                   width, scratch.lines.data(), scratch.values.data());
    for (std::size_t o = 0; o < shape_.outputs; ++o)
        vectors.scores(scratch.values.data(), reinterpret_cast<const double*>(data + at.coef) + o * at.slots * kWide,
                       slots, scratch.raw.data() + o * kWide);
    const Op op = parts_.nodes.back().op;
    if (op != Op::gaussian && op != Op::laplacian)  // otherwise k(x, x) is 1, which scratch.self holds
        isa<T>().transform_self(parts_.nodes.data(), root, scratch.norm2, kWide, scratch.lines.data(), scratch.self);
}

// Prefetches a share of the next block and its events per frame while this block is learned.
template <class T>
void Fleet<T>::prefetch_next(std::size_t b, const FleetChunk<T>& chunk, std::size_t frame, std::size_t from,
                             std::size_t to) const {
    if (b + 1 >= blocks_.size()) return;
    const auto& next = blocks_[b + 1].data;
    const std::size_t lines = next.size() / kLineBytes, frames = to - from, t = frame - from;
    for (std::size_t line = lines * t / frames; line < lines * (t + 1) / frames; ++line)
        __builtin_prefetch(next.data() + line * kLineBytes, 1);
    const T* rows = chunk.rows + (frame * count_ + (b + 1) * kWide) * shape_.width;
    // Rows need not start at a cache line, so that their last number may be in one more line.
    for (std::size_t at = 0; at < kWide * shape_.width; at += kLanes<T>) __builtin_prefetch(rows + at);
    __builtin_prefetch(rows + kWide * shape_.width - 1);
}

template <class T>
template <class R>
void Fleet<T>::learn_block(std::size_t b, const R& rule, const FleetChunk<T>& chunk, std::size_t from, std::size_t to,
                           double* out, const LaneSettings& lanes, Scratch& scratch) {
    Block& block = blocks_[b];
    Budget budget = parts_.budget;
    // A store below its full size has no full lane.
    const bool together = lanes.rule != LaneRule::none && block.layout->slots >= lanes.slots;
    const bool whole = (b + 1) * kWide <= count_ && !chunk.present && !shape_.scaled && !shape_.calibration();
    for (std::size_t t = from; t < to; ++t) {
        std::uint32_t left = ~std::uint32_t{0};
        if (together && whole && lanes.unit) {
            left = learn_whole(b, chunk, t, to, lanes, out, scratch);
            if (t == to) return;
        } else {
            prefetch_next(b, chunk, t, from, to);
            compute_scores(block, b, chunk, t, true, scratch);
            if (together) left = learn_lanes(block, b, chunk, t, lanes, out, scratch);
        }
        scratch.evictions.known = false;
        for (std::uint32_t rest = left & scratch.here; rest; rest &= rest - 1)
            learn_lane(b, static_cast<std::size_t>(std::countr_zero(rest)), rule, chunk, t, budget, out, scratch);
        for (std::size_t l = 0; shape_.calibration() && l < kWide; ++l)
            if (scratch.is_here(l)) calibrate_lane(block, b, l, chunk, t, left >> l & 1, scratch);
    }
}

// Updates the calibration of a lane with its scores; alone: the lane was learned separately.
template <class T>
void Fleet<T>::calibrate_lane(Block& block, std::size_t b, std::size_t l, const FleetChunk<T>& chunk, std::size_t frame,
                              bool alone, Scratch& scratch) {
    const std::size_t e = frame * count_ + b * kWide + l;
    if (chunk.weights && chunk.weights[e] == 0) return;
    for (std::size_t o = 0; o < shape_.outputs; ++o)
        scratch.scores[o] = alone ? scratch.raw[o * kWide + l] : scratch.shown[l];
    calibrate(view(block, l), shape_, scratch.calibration, scratch.scores, chunk.labels[e]);
}

template <class T>
LaneBlock<T> Fleet<T>::memory(Block& block) const {
    const MemberLayout& at = *block.layout;
    std::byte* data = block.data.data();
    const auto real = [&](std::size_t offset) { return reinterpret_cast<double*>(data + offset); };
    const auto count = [&](std::size_t offset) { return reinterpret_cast<std::uint32_t*>(data + offset); };
    return {real(at.scale),
            real(at.intercept),
            shape_.numbers ? real(at.numbers) : nullptr,
            real(at.coef),
            shape_.task == Task::regression ? real(at.target) : nullptr,
            reinterpret_cast<T*>(data + at.points),
            reinterpret_cast<T*>(data + at.norm2),
            count(at.ids),
            count(at.size),
            count(at.seen),
            count(at.steps),
            shape_.task == Task::classification ? reinterpret_cast<std::uint16_t*>(data + at.code) : nullptr};
}

// Learns one scored frame for all lanes of a block; returns the lanes left for `learn_lane`.
template <class T>
std::uint32_t Fleet<T>::learn_lanes(Block& block, std::size_t b, const FleetChunk<T>& chunk, std::size_t frame,
                                    const LaneSettings& lanes, double* out, Scratch& scratch) {
    const std::size_t first = frame * count_ + b * kWide, count = std::min(kWide, count_ - b * kWide);
    if (chunk.labels) std::copy_n(chunk.labels + first, count, scratch.labels);
    if (chunk.weights) std::copy_n(chunk.weights + first, count, scratch.weights);
    const std::uint32_t left = isa_fleet<T>().step(lanes, memory(block), scratch.events(scratch.shown));
    for (std::size_t l = 0; out && l < count; ++l)
        if (scratch.is_here(l)) out[first + l] = scratch.shown[l];
    return left;
}

// The same for whole frames from `frame` on, up to `to` or to the first that leaves lanes; `frame` is then that frame.
template <class T>
std::uint32_t Fleet<T>::learn_whole(std::size_t b, const FleetChunk<T>& chunk, std::size_t& frame, std::size_t to,
                                    const LaneSettings& lanes, double* out, Scratch& scratch) {
    const std::size_t first = frame * count_ + b * kWide;
    const Lines<std::byte>* next = b + 1 < blocks_.size() ? &blocks_[b + 1].data : nullptr;
    const LaneFrames<T> frames{chunk.rows + first * shape_.width,
                               to - frame,
                               count_,
                               chunk.labels != nullptr,
                               chunk.weights != nullptr,
                               next ? next->data() : nullptr,
                               next ? next->size() / kLineBytes : 0};
    scratch.here = (std::uint32_t{1} << kWide) - 1;
    LaneEvents<T> events = scratch.events(out ? out + first : nullptr);
    if (chunk.labels) events.label = chunk.labels + first;
    if (chunk.weights) events.weight = chunk.weights + first;
    const auto root = static_cast<std::int32_t>(parts_.nodes.size()) - 1;
    const LaneStop stop = isa_fleet<T>().frames(lanes, memory(blocks_[b]), frames, parts_.nodes.data(), root, events,
                                                scratch.lines.data(), scratch.values.data());
    frame += stop.frame;
    return stop.left;
}

template <class T>
template <class R>
void Fleet<T>::learn_lane(std::size_t b, std::size_t l, const R& rule, const FleetChunk<T>& chunk, std::size_t frame,
                          Budget& budget, double* out, Scratch& scratch) {
    Block& block = blocks_[b];
    const MemberLayout& at = *block.layout;
    const auto* drops = std::get_if<DropSmallest>(&budget);
    const MemberParts<R> parts{rule, budget};
    const std::size_t learner = b * kWide + l, e = frame * count_ + learner;
    View member = view(block, l);
    member.evictions = &scratch.evictions;
    if (shape_.merges) {
        member.merging = &scratch.merging;
        for (std::size_t s = 0; s < member.size(); ++s) scratch.row[s] = scratch.values[s * kWide + l];
    }
    for (std::size_t o = 0; o < shape_.outputs; ++o) {
        double& score = scratch.raw[o * kWide + l];
        score = member.intercept(o) + member.scale() * score;
        if (!std::isfinite(score))
            report(learner, frame, {"the score is not finite (kernel values too large, or learning diverged):", score});
        if (out)
            out[e * shape_.outputs + o] =
                score - (parts_.task == Task::novelty ? own_rule(member, rule).novelty_margin() : 0.0);
    }
    const MemberEvent<T> event{scratch.x.data() + l,
                               kWide,
                               scratch.norm2[l],
                               scratch.self[l],
                               chunk.labels ? chunk.labels[e] : 1.0,
                               chunk.weights ? chunk.weights[e] : 1.0,
                               scratch.raw.data() + l,
                               kWide,
                               scratch.row.data()};
    try {
        learn_member(member, event, shape_, parts, scratch.coefs, [&] {
            if (!drops || scratch.evictions.known || member.size() < drops->size) return;
            isa_fleet<T>().smallest(reinterpret_cast<const double*>(block.data.data() + at.coef), shape_.outputs,
                                    at.slots * kWide, member.size(),
                                    reinterpret_cast<const double*>(block.data.data() + at.scale),
                                    scratch.evictions.slot, scratch.evictions.tied);
            scratch.evictions.known = true;
        });
    } catch (const Refusal& refusal) {
        report(learner, frame, refusal);
    }
}

template <class T>
void Fleet<T>::score(const FleetChunk<T>& chunk, bool shares, double* out, std::size_t jobs) const {
    const std::size_t columns = shares ? std::max<std::size_t>(classes_, 1) : shape_.outputs;
    std::visit(
        [&](const auto& rule) {
            for_each_block(blocks_.size(), jobs, work(chunk.frames), [&](std::size_t first, std::size_t end) {
                Scratch scratch(shape_, limit_, parts_.nodes.size(), kernel_);
                for (std::size_t b = first; b < end; ++b)
                    for (std::size_t t = 0; t < chunk.frames; ++t) {
                        compute_scores(blocks_[b], b, chunk, t, false, scratch);
                        for (std::size_t l = 0; l < std::min(kWide, count_ - b * kWide); ++l) {
                            const View member = view(blocks_[b], l);
                            const std::size_t learner = b * kWide + l;
                            const double margin =
                                parts_.task == Task::novelty ? own_rule(member, rule).novelty_margin() : 0.0;
                            double* to = out + (t * count_ + learner) * columns;
                            std::fill(to, to + columns, kUnknown);
                            if (!scratch.is_here(l)) continue;
                            for (std::size_t o = 0; o < shape_.outputs; ++o) {
                                double& score = scratch.scores[o];
                                score = member.scale() * scratch.raw[o * kWide + l] + member.intercept(o) - margin;
                                if (!std::isfinite(score))
                                    report(learner, t, {"the score is not finite (kernel values too large):", score});
                                if (!shares) to[o] = score;
                            }
                            if (!shares) continue;
                            scratch.calibration.load(shape_.outputs,
                                                     [&](std::size_t i) { return member.calibration(i); });
                            scratch.calibration.probabilities(scratch.scores, classes_, to);
                        }
                    }
            });
        },
        parts_.rule);
}

template class Fleet<double>;
template class Fleet<float>;

}  // namespace gristmill
