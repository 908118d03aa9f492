// Folder fleet: many learners of one kind, updated together in vector lanes.
// It includes expansion/, learner/ and below; keyed/ and bind/ may include it.
// Begin with this file. Lanes run across learners; the outer loop is over blocks of learners and the inner one over
// frames, so that a block stays in the cache. Each member equals a single learner, bit for bit.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "core/fleet/pack.hpp"
#include "core/simd/fleet_dispatch.hpp"

namespace gristmill {

// Whether every number is finite and small enough that the squared norm of a row cannot overflow.
template <class T>
bool all_small(const T* rows, std::size_t count, std::size_t width) {
    return isa_fleet<T>().small(rows, count * width,
                                std::sqrt(std::numeric_limits<T>::max() / T(16)) / std::sqrt(static_cast<T>(width)));
}

// The parts of every fleet.
struct FleetParts {
    std::vector<Node> nodes;
    Rule rule;
    Budget budget;
    Task task;
    std::size_t width;
    Scaling scaling = {};
};

// Frames of one event per learner, frame by frame; null: no labels (novelty), weights of 1, all events present.
template <class T>
struct FleetChunk {
    const T* rows = nullptr;
    std::size_t frames = 0;
    const double* labels = nullptr;
    const double* weights = nullptr;
    const std::uint8_t* present = nullptr;
};

template <class T>
class Fleet {
  public:
    // seeds: one for all, or one per member.
    Fleet(FleetParts parts, std::size_t count, std::span<const std::uint64_t> seeds);

    std::size_t count() const { return count_; }
    std::size_t width() const { return shape_.width; }
    std::size_t outputs() const { return shape_.outputs; }
    std::size_t classes() const { return classes_; }
    const MemberShape& shape() const { return shape_; }
    std::size_t bytes() const;
    void sizes(std::int64_t* out) const;
    void seen(std::int64_t* out) const;

    // Throws RowError for the first invalid event.
    void check(const FleetChunk<T>& chunk) const;
    // requires: check(). scores, if given: receives the scores of each event before it is learned, outputs() numbers
    // each, NaN for absent events. All or nothing: after an error nothing has changed. The result does not depend on
    // jobs.
    void learn(const FleetChunk<T>& chunk, std::size_t classes, std::vector<double>* scores, std::size_t jobs);
    // shares: probabilities of the classes instead of scores.
    void score(const FleetChunk<T>& chunk, bool shares, double* out, std::size_t jobs) const;

    // Throws std::out_of_range if there is no such member.
    MemberPack<T> members(std::span<const std::int64_t> which) const;
    void set_members(std::span<const std::int64_t> which, const MemberPack<T>& pack);
    void add_classes(std::size_t classes);  // adds classes up to this number
    std::uint64_t changes() const { return changes_; }  // chunks learned

  private:
    static constexpr std::size_t kWide = kLanes<T>;
    struct Block {
        std::shared_ptr<const MemberLayout> layout;
        Lines<std::byte> data;
    };
    struct Scratch;
    using View = Member<T, kWide>;

    View view(const Block& block, std::size_t lane) const {
        return View(const_cast<std::byte*>(block.data.data()), lane, shape_, *block.layout);
    }
    std::shared_ptr<const MemberLayout> layout(std::size_t slots);
    Block make(std::size_t slots);
    void widen(Block& block, const MemberShape& old, std::size_t slots);
    void reserve(std::size_t frames);
    bool may_fail(const FleetChunk<T>& chunk) const;
    // Approximate number of multiplications for this many frames.
    std::size_t work(std::size_t frames) const { return frames * count_ * limit_ * (shape_.width + 16); }
    void learn_frames(const FleetChunk<T>& chunk, std::size_t from, std::size_t to, double* out, std::size_t jobs);
    void prefetch_next(std::size_t b, const FleetChunk<T>& chunk, std::size_t frame, std::size_t from,
                       std::size_t to) const;
    template <class R>
    void learn_block(std::size_t b, const R& rule, const FleetChunk<T>& chunk, std::size_t from, std::size_t to,
                     double* out, const LaneSettings& lanes, Scratch& scratch);
    template <class R>
    void learn_lane(std::size_t b, std::size_t l, const R& rule, const FleetChunk<T>& chunk, std::size_t frame,
                    Budget& budget, double* out, Scratch& scratch);
    std::uint32_t learn_lanes(Block& block, std::size_t b, const FleetChunk<T>& chunk, std::size_t frame,
                              const LaneSettings& lanes, double* out, Scratch& scratch);
    std::uint32_t learn_whole(std::size_t b, const FleetChunk<T>& chunk, std::size_t& frame, std::size_t to,
                              const LaneSettings& lanes, double* out, Scratch& scratch);
    LaneBlock<T> memory(Block& block) const;
    void load_events(const Block& block, std::size_t b, const FleetChunk<T>& chunk, std::size_t frame, bool learn,
                     Scratch& scratch) const;
    void calibrate_lane(Block& block, std::size_t b, std::size_t l, const FleetChunk<T>& chunk, std::size_t frame,
                        bool alone, Scratch& scratch);
    void compute_scores(const Block& block, std::size_t b, const FleetChunk<T>& chunk, std::size_t frame, bool learn,
                        Scratch& scratch) const;
    std::size_t place(std::int64_t member) const;
    [[noreturn]] void report(std::size_t learner, std::size_t frame, const Refusal& refusal) const;

    FleetParts parts_;
    Kernel kernel_;
    MemberShape shape_;
    std::size_t count_, limit_, classes_ = 0;
    std::uint64_t seen_ = 0;  // upper bound of the events of any member
    std::uint64_t changes_ = 0;
    bool bounded_ = true;  // no number is so large that a bounded step could make it infinite
    std::vector<Block> blocks_;
    std::map<std::size_t, std::shared_ptr<const MemberLayout>> layouts_;
};

}  // namespace gristmill
