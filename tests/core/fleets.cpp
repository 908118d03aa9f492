// Fleets of the core without Python: every member equals a single learner, bit for bit. Runs under the sanitizers and
// in an emulator.
#include <cmath>
#include <cstdio>

#include "check.hpp"
#include "core/expansion/expansion.hpp"
#include "core/kernels/points.hpp"
#include "core/keyed/keyed.hpp"

using namespace gristmill;

namespace {

void check(bool holds, const char* what, const std::string& where) {
    ++checks;
    if (holds) return;
    ++failures;
    std::printf("%s: %s\n", where.c_str(), what);
}

constexpr std::size_t kCuts[] = {0, 1, 9, 60, 90};  // frames
constexpr std::size_t kFrames = 90, kMembers = 37;  // several whole blocks and one that is not

// Events of all members, frame by frame; one member gets the same event every time.
template <class T>
struct Frames {
    std::size_t width;
    std::vector<T> rows;
    std::vector<double> labels;

    Frames(std::size_t width, Task task) : width(width) {
        Random random{width};
        for (std::size_t e = 0; e < kFrames * kMembers; ++e) {
            for (std::size_t j = 0; j < width; ++j)
                rows.push_back(
                    static_cast<T>(e % kMembers == 5 ? 0.25 : 2 * (random.uniform() + random.uniform() - 1)));
            const double first = rows[e * width];
            labels.push_back(task == Task::novelty ? 1 : task == Task::regression ? first * first : first > 0 ? 1 : 0);
        }
    }
};

template <class T>
std::vector<double> alone(const FleetParts& parts, const Frames<T>& frames, std::size_t member) {
    Learner<Expansion> learner(parts.rule, parts.budget, parts.task, false, 3, Kernel(parts.nodes),
                               make_points(frames.width, false, sizeof(T) == sizeof(float)));
    std::vector<T> rows;
    std::vector<double> labels, scores;
    for (std::size_t t = 0; t < kFrames; ++t) {
        const std::size_t e = t * kMembers + member;
        rows.insert(rows.end(), frames.rows.begin() + static_cast<std::ptrdiff_t>(e * frames.width),
                    frames.rows.begin() + static_cast<std::ptrdiff_t>((e + 1) * frames.width));
        labels.push_back(frames.labels[e]);
    }
    learner.learn(DenseRows<T>{rows.data(), kFrames, frames.width}, labels, {}, &scores,
                  parts.task == Task::classification ? 2 : 0);
    return scores;
}

template <class T>
std::vector<double> in_step(const FleetParts& parts, const Frames<T>& frames) {
    const std::uint64_t seed = 3;
    Fleet<T> fleet(parts, kMembers, std::span(&seed, 1));
    std::vector<double> all, scores;
    for (std::size_t c = 0; c + 1 < std::size(kCuts); ++c) {
        const std::size_t first = kCuts[c] * kMembers;
        const FleetChunk<T> chunk{frames.rows.data() + first * frames.width, kCuts[c + 1] - kCuts[c],
                                  parts.task == Task::novelty ? nullptr : frames.labels.data() + first};
        fleet.check(chunk);
        fleet.learn(chunk, parts.task == Task::classification ? 2 : 0, &scores, 1);
        all.insert(all.end(), scores.begin(), scores.end());
    }
    return all;
}

template <class T>
std::vector<double> by_key(const FleetParts& parts, const Frames<T>& frames) {
    Keyed<T> fleet(parts, KeyedSettings{.seed = 3});
    std::vector<std::int64_t> keys;
    for (std::size_t e = 0; e < kFrames * kMembers; ++e) keys.push_back(static_cast<std::int64_t>(e % kMembers));
    KeyedChunk<T> chunk;
    chunk.keys.whole = keys;
    chunk.rows = frames.rows.data();
    chunk.labels = parts.task == Task::novelty ? nullptr : frames.labels.data();
    std::vector<double> scores;
    fleet.check(chunk);
    fleet.learn(chunk, parts.task == Task::classification ? 2 : 0, {}, &scores);
    return scores;
}

template <class T>
void compare(const FleetParts& parts, const std::string& where) {
    const Frames<T> frames(parts.width, parts.task);
    const auto stepped = in_step(parts, frames), keyed = by_key(parts, frames);
    for (std::size_t i = 0; i < kMembers; ++i) {
        const auto expected = alone(parts, frames, i);
        bool same = true, alike = true;
        for (std::size_t t = 0; t < kFrames; ++t) {
            same = same && stepped[t * kMembers + i] == expected[t];
            alike = alike && keyed[t * kMembers + i] == expected[t];
        }
        check(same, "a member of a fleet is not what it would be alone", where + ", member " + std::to_string(i));
        check(alike, "the learner of a key is not what it would be alone", where + ", key " + std::to_string(i));
    }
}

struct Case {
    const char* name;
    Rule rule;
    Task task;
};

std::vector<Case> cases() {
    Sgd adaptive, squared;
    adaptive.loss.nu = 0.2, adaptive.rate = 0.2, adaptive.reg = 0.02, adaptive.schedule = Schedule::inv_sqrt;
    squared.loss.kind = LossKind::squared, squared.rate = 0.2, squared.reg = 0.01, squared.intercept = true;
    Implicit implicit;
    implicit.trade = 0.1, implicit.reg = 0.005;
    PassiveAggressive careful;
    careful.regression = true, careful.epsilon = 0.05, careful.aggressiveness = 0.3;
    return {{"implicit", implicit, Task::novelty},
            {"adaptive", adaptive, Task::novelty},
            {"squared", squared, Task::regression},
            {"passive aggressive", careful, Task::regression},
            {"perceptron", Perceptron{}, Task::classification}};
}

}  // namespace

int main() {
    for (const Case& part : cases())
        for (const std::size_t size : {5, 16, 20, 33})
            for (const bool oldest : {false, true})
                for (const std::size_t width : {1, 3, 6}) {
                    FleetParts parts{
                        {Node{.op = Op::gaussian, .a = 0.8}}, part.rule, DropSmallest{{}, size}, part.task, width};
                    if (oldest) parts.budget = DropOldest{{}, size};
                    const std::string where = std::string(part.name) + (oldest ? ", oldest " : ", smallest ") +
                                              std::to_string(size) + ", " + std::to_string(width) + " columns";
                    compare<double>(parts, where);
                    compare<float>(parts, where + ", float");
                }
    return summary(isa_name());
}
