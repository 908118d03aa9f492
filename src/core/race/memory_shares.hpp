// The memory of a race: shared out among the experts, and moved from those with large losses to the best (successive halving).
//
// Memory moves only at positions of the stream that double, and an expert shrinks before another grows. Each time that the best
// expert is full, a part of the experts goes on, until few are left; otherwise those go on that were not clearly worse. An expert
// that rested comes back until the next such position, and stays if it was better. A window does not grow: it is for drift.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/archive.hpp"

namespace gristmill {

struct RaceState;

class MemoryShares {
  public:
    using Share = std::pair<std::size_t, std::size_t>;  // position of an expert, and its bytes

    // memory: bytes of the whole race, or 0 for experts that keep their own budgets. moves: false if there are no losses to compare.
    MemoryShares(std::size_t memory, bool moves) : memory(memory), moves(moves) {}

    // Samples until memory may move.
    std::optional<std::uint64_t> due(std::uint64_t seen) const;
    bool is_due(std::uint64_t seen) const;
    // Throws if not even one expert would have enough memory with so many classes.
    void check(const RaceState& race, std::size_t classes) const;
    // Throws with the memory that the expert at `place` alone would need.
    [[noreturn]] void refuse(const RaceState& race, std::size_t place, std::size_t classes) const;
    void begin(RaceState& race);
    void fit(RaceState& race);  // rows are wider than before
    void add_classes(RaceState& race, std::size_t classes);  // every stored point gets more coefficients
    void move(RaceState& race);
    // Shares of these experts, the best first, or of as many of them as there is memory for; the race is not changed.
    std::vector<Share> shared_among(const RaceState& race, const std::vector<std::size_t>& running,
                                    std::size_t classes) const;
    void visit(Archive& archive, const RaceState& race);

    static constexpr std::size_t kLast = 3;  // so many experts go on, if the best has enough points beside them

    std::size_t memory;
    std::size_t outside = 0;  // bytes of it that are taken by what prepares rows for the race
    bool moves;
    std::vector<Share> shares;  // the best first
    std::size_t begun = 0;  // of each expert at first
    std::vector<std::size_t> tried;  // positions of those that came back, oldest first

  private:
    std::int64_t free(const RaceState& race, const std::vector<std::size_t>& running, std::size_t classes) const;
    std::vector<std::pair<std::size_t, std::int64_t>> parts(const RaceState& race,
                                                            const std::vector<std::size_t>& running,
                                                            std::size_t classes) const;
    std::vector<std::pair<std::size_t, std::int64_t>> shared_out(const RaceState& race,
                                                                 const std::vector<std::size_t>& running,
                                                                 std::size_t classes) const;
    void share(RaceState& race, const std::vector<std::size_t>& running, std::size_t classes);
    std::vector<std::size_t> ranked(const RaceState& race) const;
    bool is_full(const RaceState& race, std::size_t place) const;
    std::optional<std::size_t> returning(const RaceState& race, const std::vector<std::size_t>& running) const;
};

}  // namespace gristmill
