#include "core/race/memory_shares.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "core/race/race.hpp"

namespace gristmill {

namespace {

constexpr std::uint64_t kFirst =
    100;    // the first position at which losses are compared; no expert rests before the second
constexpr std::size_t kLeast = 12;       // points that a single expert must have memory for
constexpr std::size_t kFewest = 50;      // points that each of several must have memory for
constexpr std::size_t kEnough = 300;     // points that the leader has before it shares memory with others
constexpr double kKeep = 0.65;           // of the experts go on at each position where the leader is full
constexpr double kFull = 0.95;           // of its points stored: it is
constexpr std::uint64_t kReturn = 1600;  // from this position on one expert that rested comes back each time
constexpr std::uint64_t kSettled = 400;  // before that losses say too little
constexpr double kClear = 2.0;           // standard errors of a mean loss
constexpr double kDecline = 0.5;         // memory of each of the last few, relative to the one before it

// Of novelty detectors, whose memory does not move; they are limited so that a sample takes little time.
constexpr double kMost = 400;        // points of a detector, for each megabyte of all
constexpr double kNumbers = 50'000;  // numbers in them: wide rows take more time
constexpr double kSome = 50;         // points that it may have for any width

constexpr std::size_t kWidePoints = 200;  // of an expert beside linear ones over very many columns
constexpr std::size_t kWide = 4000;  // columns from which on an error names what else there is
constexpr const char* kInstead =
    "; sparse rows of many columns need no scaling: use KernelClassifier(Linear(), budget=Merge(500)) or "
    "KernelRegressor(Linear(), budget=Merge(500)), which keep them sparse, or hash the columns to fewer";

using Parts = std::vector<std::pair<std::size_t, std::int64_t>>;

std::size_t points_of(const RaceState& race, std::size_t place, std::int64_t bytes, std::size_t outputs) {
    return race.trained(place).points_within(bytes > 0 ? static_cast<std::size_t>(bytes) : 0, outputs);
}

bool contains(const std::vector<std::size_t>& places, std::size_t place) {
    return std::find(places.begin(), places.end(), place) != places.end();
}

}  // namespace

std::optional<std::uint64_t> MemoryShares::due(std::uint64_t seen) const {
    if (memory == 0 || !moves) return std::nullopt;
    std::uint64_t position = kFirst;
    while (position <= seen) position *= 2;
    return position - seen;
}

bool MemoryShares::is_due(std::uint64_t seen) const {
    if (memory == 0 || !moves || seen == 0 || seen % kFirst != 0) return false;
    const std::uint64_t times = seen / kFirst;
    return (times & (times - 1)) == 0;
}

// Memory for the points of these.
std::int64_t MemoryShares::free(const RaceState& race, const std::vector<std::size_t>& running,
                                std::size_t classes) const {
    std::size_t taken = outside + race.scaling_bytes() + race.mixture_bytes_for(classes) + race.errors.bytes();
    for (std::size_t place = 0; place < race.experts.size(); ++place) {
        if (!race.is_trained(place)) taken += race.experts[place]->most_bytes(classes);
        else if (contains(running, place)) taken += race.trained(place).weighing_bytes();
    }
    return static_cast<std::int64_t>(memory) - static_cast<std::int64_t>(taken);
}

// Bytes for each: equal for many, falling from the best on for few.
Parts MemoryShares::parts(const RaceState& race, const std::vector<std::size_t>& running, std::size_t classes) const {
    const double decline = moves && running.size() <= kLast + 1 ? kDecline : 1.0;
    double whole = 0, power = 1;
    for (std::size_t at = 0; at < running.size(); ++at, power *= decline) whole += power;
    const std::int64_t available = free(race, running, classes);
    Parts parts;
    power = 1;
    for (std::size_t at = 0; at < running.size(); ++at, power *= decline)
        parts.push_back({running[at], static_cast<std::int64_t>(static_cast<double>(available) * power / whole)});
    if (!moves) {
        for (auto& [place, bytes] : parts) {
            const double most = std::max(1.0, static_cast<double>(memory) / 1e6) *
                                std::min(kMost, std::max(kSome, kNumbers / static_cast<double>(race.width)));
            const auto points = static_cast<double>(points_of(race, place, bytes, 1));
            if (points > most) bytes = static_cast<std::int64_t>(static_cast<double>(bytes) * most / points);
        }
        return parts;
    }
    if (race.wide_columns) {  // a fixed number of points
        for (auto& [place, bytes] : parts)
            if (const std::size_t points = points_of(race, place, bytes, outputs_of(classes)); points > kWidePoints)
                bytes = static_cast<std::int64_t>(static_cast<double>(bytes) * static_cast<double>(kWidePoints) /
                                                  static_cast<double>(points));
        return parts;
    }
    if (begun == 0) return parts;
    for (auto& [place, bytes] : parts)  // a window stays as short as it began
        if (race.trained(place).is_window()) bytes = std::min(bytes, static_cast<std::int64_t>(begun));
    const auto steady = std::find_if(parts.begin(), parts.end(),
                                     [&](const auto& part) { return !race.trained(part.first).is_window(); });
    if (steady == parts.end()) return parts;
    std::int64_t sum = 0;
    for (const auto& part : parts) sum += part.second;
    steady->second += available - sum;
    return parts;
}

// Bytes for these, the best first, or for as many of them as there is memory for.
Parts MemoryShares::shared_out(const RaceState& race, const std::vector<std::size_t>& running,
                               std::size_t classes) const {
    Parts found = parts(race, running, classes);
    while (found.size() > 1) {
        // Left out is the last of those that have too little memory, else the last of all while the leader has too little.
        std::size_t out = found.size(), first = 0;
        for (std::size_t at = 0; at < found.size(); ++at) {
            const std::size_t count = points_of(race, found[at].first, found[at].second, outputs_of(classes));
            if (count < (moves ? kFewest : kLeast)) out = at;
            if (at == 0) first = count;
        }
        if (out == found.size()) {
            if (!(moves && race.seen() >= kSettled && first < kEnough)) break;
            out = found.size() - 1;
        }
        std::vector<std::size_t> others;
        for (std::size_t at = 0; at < found.size(); ++at)
            if (at != out) others.push_back(found[at].first);
        found = parts(race, others, classes);
    }
    return found;
}

// Memory for these, the best first, as many as there is memory for; the others rest.
void MemoryShares::share(RaceState& race, const std::vector<std::size_t>& running, std::size_t classes) {
    const Parts found = shared_out(race, running, classes);
    auto among = [](const auto& list, std::size_t place) {
        return std::find_if(list.begin(), list.end(), [&](const auto& one) { return one.first == place; });
    };
    for (std::size_t place = 0; place < race.experts.size(); ++place) {
        if (!race.is_trained(place) || race.experts[place]->rests || among(found, place) != found.end()) continue;
        race.experts[place]->rests = true;
        race.leave(place);
        race.trained(place).begin(race.width);
    }
    Parts order = found;  // those that shrink come first
    auto grows = [&](const auto& part) {
        const auto before = among(shares, part.first);
        return part.second - (before == shares.end() ? 0 : static_cast<std::int64_t>(before->second));
    };
    std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) { return grows(a) < grows(b); });
    for (const auto& [place, bytes] : order)
        race.trained(place).resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    shares.clear();
    for (const auto& [place, bytes] : found)
        shares.push_back({place, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0))});
}

std::vector<MemoryShares::Share> MemoryShares::shared_among(const RaceState& race,
                                                            const std::vector<std::size_t>& running,
                                                            std::size_t classes) const {
    std::vector<Share> found;
    for (const auto& [place, bytes] : shared_out(race, running, classes))
        found.push_back({place, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0))});
    return found;
}

void MemoryShares::visit(Archive& archive, const RaceState& race) {
    std::vector<std::uint64_t> places, bytes, returned(tried.begin(), tried.end());
    for (const Share& one : shares) places.push_back(one.first), bytes.push_back(one.second);
    std::uint64_t first = begun;
    archive.numbers("experts", places);
    archive.numbers("bytes", bytes, places.size());
    archive.numbers("returned", returned);
    archive.count("begun", first);
    if (archive.loads ? archive.has("outside") : outside > 0) {
        std::uint64_t reserved = outside;
        archive.count("outside", reserved);
        if (reserved > memory) archive.refuse("outside", "is more than the memory of the race");
        outside = reserved;
    }
    if (!archive.loads) return;
    auto is_trained = [&](std::uint64_t place) { return place < race.experts.size() && race.is_trained(place); };
    shares.clear();
    for (std::size_t at = 0; at < places.size(); ++at) {
        const bool twice = std::count(places.begin(), places.end(), places[at]) > 1;
        if (!is_trained(places[at]) || twice)
            archive.refuse("experts", "holds shares of experts that the race does not have");
        if (bytes[at] > memory) archive.refuse("bytes", "is more than the memory of the race");
        shares.push_back({places[at], bytes[at]});
    }
    if (!std::all_of(returned.begin(), returned.end(), is_trained))
        archive.refuse("returned", "holds experts that the race does not have");
    tried.assign(returned.begin(), returned.end());
    begun = first;
}

void MemoryShares::check(const RaceState& race, std::size_t classes) const {
    if (memory == 0 || (classes <= std::max<std::size_t>(race.classes(), 2) && race.seen() > 0)) return;
    std::vector<std::size_t> one;
    for (std::size_t place = 0; place < race.experts.size() && one.empty(); ++place)
        if (race.is_trained(place) && race.experts[place]->note.empty()) one.push_back(place);
    if (one.empty()) return;
    const Parts single = parts(race, one, classes);
    if (points_of(race, one[0], single[0].second, outputs_of(classes)) < kLeast) refuse(race, one[0], classes);
}

void MemoryShares::refuse(const RaceState& race, std::size_t place, std::size_t classes) const {
    const std::int64_t available = free(race, {place}, classes), all = static_cast<std::int64_t>(memory);
    std::int64_t least = all;
    while (points_of(race, place, least - all + available, outputs_of(classes)) < kLeast)
        least += std::max<std::int64_t>(1000, least / 20);
    least += least / 20;  // other experts may run in a larger race
    throw std::invalid_argument("memory=" + std::to_string(memory) + " bytes are too few for " +
                                std::to_string(race.width) + " columns and " +
                                std::to_string(std::max<std::size_t>(classes, 1)) + " classes: it takes at least " +
                                std::to_string(least) + " bytes" + (race.width > kWide ? kInstead : ""));
}

void MemoryShares::begin(RaceState& race) {
    check(race, 0);
    if (memory == 0) return;
    std::vector<std::size_t> all;
    for (std::size_t place = 0; place < race.experts.size(); ++place)
        if (race.is_trained(place)) all.push_back(place);
    share(race, all, 0);
    begun = 0;
    for (const Share& one : shares) begun = begun == 0 ? one.second : std::min(begun, one.second);
    begun += race.early_bytes() / shares.size();  // which is free again before memory moves for the first time
}

void MemoryShares::fit(RaceState& race) {
    if (memory == 0) return;
    std::vector<std::size_t> running;
    for (const Share& one : shares) running.push_back(one.first);
    if (moves) running = ranked(race);
    try {
        share(race, running, race.classes());
    } catch (const std::invalid_argument&) {  // of one learner, which names its own share only
        if (running.empty()) throw;
        refuse(race, running[0], race.classes());
    }
}

void MemoryShares::add_classes(RaceState& race, std::size_t classes) {
    if (memory != 0) share(race, ranked(race), classes);
}

// Those that run, the best since memory moved first.
std::vector<std::size_t> MemoryShares::ranked(const RaceState& race) const {
    const Mixture& mixture = race.mixture();
    const auto recent = mixture.recent();
    const auto counted = mixture.counted();
    auto mean = [&](std::size_t p) {
        return counted[p] > 0 ? recent[p] / std::max(counted[p], 1.0) : std::numeric_limits<double>::infinity();
    };
    std::vector<std::size_t> running;
    for (std::size_t place = 0; place < race.experts.size(); ++place)
        if (race.is_trained(place) && race.experts[place]->runs()) running.push_back(place);
    std::stable_sort(running.begin(), running.end(), [&](std::size_t a, std::size_t b) { return mean(a) < mean(b); });
    return running;
}

void MemoryShares::move(RaceState& race) {
    std::vector<std::size_t> running = ranked(race);
    // Whether an expert was significantly worse than the best since memory moved. Of losses up to 1 the variance is at most the
    // mean; those of numbers deviate by about their mean.
    const auto recent = race.mixture().recent();
    std::vector<double> counted(race.mixture().counted().begin(), race.mixture().counted().end());
    for (double& n : counted) n = std::max(n, 1.0);
    const double best = running.empty() ? 0.0 : recent[running[0]] / counted[running[0]];
    auto lost = [&](std::size_t p) {
        const double mean = recent[p] / counted[p];
        const double noise =
            race.task == Task::classification ? std::sqrt(mean / counted[p]) : 1.5 * mean / std::sqrt(counted[p]);
        return mean - best > kClear * noise;
    };
    race.mixture().reset_recent();
    if (running.empty()) return;
    const std::uint64_t seen = race.seen();
    if (seen > kFirst) {
        if (is_full(race, running[0])) {
            const auto keep = static_cast<std::size_t>(std::nearbyint(static_cast<double>(running.size()) * kKeep));
            running.resize(std::min(running.size(), std::max(kLast, keep)));
        } else if (seen >= kSettled) {
            std::vector<std::size_t> stay(
                running.begin(), running.begin() + static_cast<std::ptrdiff_t>(std::min(kLast, running.size())));
            for (std::size_t at = kLast; at < running.size(); ++at)
                if (!lost(running[at])) stay.push_back(running[at]);
            running = std::move(stay);
        }
    }
    if (seen >= kReturn)
        if (const auto back = returning(race, running)) {
            tried.erase(std::remove(tried.begin(), tried.end(), *back), tried.end());
            tried.push_back(*back);
            race.experts[*back]->rests = false;
            race.mixture().enter(*back);
            running.push_back(*back);
        }
    share(race, running, race.classes());
}

// Whether the leader could use more memory; before that no expert has to rest.
bool MemoryShares::is_full(const RaceState& race, std::size_t place) const {
    std::size_t bytes = 0;
    for (const Share& one : shares)
        if (one.first == place) bytes = one.second;
    const TrainedExpert& leader = race.trained(place);
    return static_cast<double>(leader.size()) >=
           kFull * static_cast<double>(leader.points_within(bytes, outputs_of(race.classes())));
}

// Of those that rest the one that has waited longest; one that never came back has waited since the beginning.
std::optional<std::size_t> MemoryShares::returning(const RaceState& race,
                                                   const std::vector<std::size_t>& running) const {
    std::optional<std::size_t> found;
    std::ptrdiff_t waited = 0;
    for (std::size_t place = 0; place < race.experts.size(); ++place) {
        if (!race.is_trained(place) || contains(running, place) || !race.experts[place]->note.empty()) continue;
        const auto at = std::find(tried.begin(), tried.end(), place);
        const std::ptrdiff_t turn = at == tried.end() ? -1 : at - tried.begin();
        if (!found || turn < waited) found = place, waited = turn;
    }
    return found;
}

}  // namespace gristmill
