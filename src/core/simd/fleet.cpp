// Vector code for many small learners, compiled once per instruction set like simd/kernel_blocks.cpp and under the same
// rule: it includes only vector code.
#include "core/simd/fleet_dispatch.hpp"
#include "core/simd/fleet_kernels.hpp"
#include "core/simd/fleet_rules.hpp"
#include "core/simd/keyed_kernels.hpp"

namespace gristmill::GRISTMILL_ISA {

namespace {

template <class T>
std::uint32_t fleet_step(const LaneSettings& s, const LaneBlock<T>& block, const LaneEvents<T>& in) {
    const std::uint32_t left = with_rule(s.rule, [&]<LaneRule R>() {
        return step_lanes<R>(s, block, in, full_lanes(s, block), 0, store_lanes_of<T>(s.width));
    });
    count_lanes(block, 0, in.here & ~left);
    return left;
}

constexpr std::size_t kMostLinesAtOnce = 24;

template <LaneRule R, class T>
LaneStop learn_frames(const LaneSettings& settings, const LaneBlock<T>& memory, const LaneFrames<T>& given,
                      const Node* nodes, std::int32_t root, const LaneEvents<T>& events, T* scratch, T* values) {
    // Local copies: stores through pointers cannot alias them, so the compiler keeps them in registers.
    const LaneSettings s = settings;
    const LaneBlock<T> block = memory;
    const LaneFrames<T> frames = given;
    LaneEvents<T> in = events;
    const StoreLanes<T> put = store_lanes_of<T>(s.width);
    const std::uint32_t full = full_lanes(s, block);
    std::size_t slots = 0;  // the number of stored points does not change here
    for (std::size_t l = 0; l < kLanes<T>; ++l) slots = block.size[l] > slots ? block.size[l] : slots;
    const std::size_t row = frames.apart * s.width,
                      share = (frames.lines + frames.count - 1) / frames.count * kLineBytes;
    const std::byte *next = frames.next, *end = next + frames.lines * kLineBytes;
    // A processor waits for memory while more lines are asked for than it can fetch at once: many lines are asked for
    // in small groups between groups of slots.
    const std::size_t group = share > kMostLinesAtOnce * kLineBytes ? kSlotUnroll : slots + !slots;
    const std::size_t part = (share / kLineBytes / (slots / group + 1) + 1) * kLineBytes;
    const T* rows = frames.rows;
    for (std::size_t t = 0; t < frames.count; ++t, rows += row) {
        // Prefetches a share of the next block and its events per frame while this block is learned.
        const std::byte* const last = static_cast<std::size_t>(end - next) < share ? end : next + share;
        const auto prefetch = [&] {
            for (const std::byte* stop = next + part; next < stop && next < last; next += kLineBytes)
                __builtin_prefetch(next, 1);
        };
        for (std::size_t at = 0; at <= kLanes<T> * s.width; at += kLanes<T>)
            __builtin_prefetch(rows + kLanes<T> * s.width + at);
        fleet_lanes(rows, s.width, in.x);
        fleet_norms(in.x, s.width, in.norm2);
        for (std::size_t first = 0; first < slots; first += group) {
            prefetch();
            fleet_values(nodes, root, in.x, in.norm2, block.points + first * s.width * kLanes<T>,
                         block.norm2 + first * kLanes<T>, slots - first < group ? slots - first : group, s.width,
                         scratch, values + first * kLanes<T>);
        }
        prefetch();
        fleet_scores(values, block.coef, slots, in.raw);
        const std::uint32_t left = step_lanes<R>(s, block, in, full, static_cast<std::uint32_t>(t), put);
        if (__builtin_expect(left != 0, 0)) {
            count_lanes(block, static_cast<std::uint32_t>(t), in.here & ~left);
            return {t, left};
        }
        if (frames.labels) in.label += frames.apart;
        if (frames.weights) in.weight += frames.apart;
        if (in.shown) in.shown += frames.apart;
    }
    count_lanes(block, static_cast<std::uint32_t>(frames.count), 0);
    return {frames.count, 0};
}

template <class T>
LaneStop fleet_frames(const LaneSettings& settings, const LaneBlock<T>& block, const LaneFrames<T>& frames,
                      const Node* nodes, std::int32_t root, const LaneEvents<T>& events, T* scratch, T* values) {
    return with_rule(settings.rule, [&]<LaneRule R>() {
        return learn_frames<R>(settings, block, frames, nodes, root, events, scratch, values);
    });
}

template <class T>
constexpr IsaFleet<T> fleet_table() {
    return {&fleet_lanes<T>,  &fleet_small<T>,     &fleet_norms<T>,          &fleet_values<T>,
            &fleet_scores<T>, &fleet_smallest<T>,  &record_sums<DotTerm, T>, &record_sums<L1Term, T>,
            &record_norms<T>, &record_gaussian<T>, &record_oldest<T>,        &fleet_step<T>,
            &fleet_frames<T>};
}

}  // namespace

extern const IsaFleet<double> kFleetDouble;
extern const IsaFleet<float> kFleetFloat;
const IsaFleet<double> kFleetDouble = fleet_table<double>();
const IsaFleet<float> kFleetFloat = fleet_table<float>();

}  // namespace gristmill::GRISTMILL_ISA
