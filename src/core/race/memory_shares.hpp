// The memory of a race: shared out among the experts, and moved from those that lose to those that lead (successive halving).
//
// Memory moves only at positions of the stream that double, and who loses memory gives it up before another gets it. Each time
// that the leader needs more, a part of the experts goes on, until few are left; where it does not, those go on that were not
// clearly worse. One that rested comes back for a stretch, and stays if it did better. A window does not grow: it is there for
// what changes.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace gristmill {

struct RaceState;

class MemoryShares {
  public:
    using Share = std::pair<std::size_t, std::size_t>;  // place of an expert, and its bytes

    // memory: bytes of everything, or 0 for experts that keep the budgets they came with. moves: not where nothing says who loses.
    MemoryShares(std::size_t memory, bool moves) : memory(memory), moves(moves) {}

    // Events until memory may move.
    std::optional<std::uint64_t> due(std::uint64_t seen) const;
    bool is_due(std::uint64_t seen) const;
    // Throws where not even one expert would have room with so many classes.
    void check(const RaceState& race, std::size_t classes) const;
    void begin(RaceState& race);
    void fit(RaceState& race);                               // rows are wider than before
    void add_classes(RaceState& race, std::size_t classes);  // every stored point gets more coefficients
    void move(RaceState& race);

    std::size_t memory;
    bool moves;
    std::vector<Share> shares;       // the best first
    std::size_t begun = 0;           // what each had at first
    std::vector<std::size_t> tried;  // places of those that came back, oldest first

  private:
    std::int64_t free(const RaceState& race, const std::vector<std::size_t>& running, std::size_t classes) const;
    std::vector<std::pair<std::size_t, std::int64_t>> parts(const RaceState& race, const std::vector<std::size_t>& running,
                                                            std::size_t classes) const;
    std::vector<std::pair<std::size_t, std::int64_t>> shared_out(const RaceState& race, const std::vector<std::size_t>& running,
                                                                 std::size_t classes) const;
    void share(RaceState& race, const std::vector<std::size_t>& running, std::size_t classes);
    std::vector<std::size_t> ranked(const RaceState& race) const;
    bool is_full(const RaceState& race, std::size_t place) const;
    std::optional<std::size_t> returning(const RaceState& race, const std::vector<std::size_t>& running) const;
};

}  // namespace gristmill
