// One race of several that learned apart: everything but the stored points of the learners.
//
// Losses of the experts add up, so that their weights are multiplied. An expert goes on where it ran over at least half of the
// samples, as many of them as ran before, the best by the losses of all first; the others rest, and come back as in any race.
#pragma once

#include "core/race/race.hpp"

namespace gristmill {

struct RacePart {
    const RaceState* race;
    double share;  // of the result
    std::vector<std::size_t> codes;  // the position of each of its classes among those of the result
};

// An expert of the result that runs, and the parts in which it has learned.
struct MergedExpert {
    std::size_t place;
    std::vector<std::size_t> parts;
};

// The parts in which each expert runs and has learned, by expert.
std::vector<std::vector<std::size_t>> parts_that_ran(std::span<const RacePart> parts);

// requires: `into` has begun with the experts of the parts, and has their scalings, target scale and column weights, united.
// ensures: the learners of the experts returned are still to be united, and then `resize_to_shares` to be called.
std::vector<MergedExpert> unite(RaceState& into, std::span<const RacePart> parts, std::size_t classes);
void resize_to_shares(RaceState& race);

}  // namespace gristmill
