// The same stream gives the same model, bit for bit, on every machine with fused multiply-add: learners of every kind
// run over fixed streams, and the program prints one line each, a name and a digest of all prequential scores. Inputs
// are sums of uniform numbers, without functions of a C library.
//
//     core_digests            prints the digests
//     core_digests FOLDER     compares with FOLDER/fused.txt or baseline.txt, names differences; exit code 1 if any
//     core_digests --isas     prints the instruction sets of this machine
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>

#include "core/additive/hypothesis.hpp"
#include "core/expansion/expansion.hpp"
#include "core/expansion/projected.hpp"
#include "core/features/maps.hpp"
#include "core/features/weights.hpp"
#include "core/learner/learner.hpp"
#include "core/pairwise/kernel.hpp"
#include "core/pairwise/matrix.hpp"

using namespace gristmill;

namespace {

using Digests = std::map<std::string, std::string>;
Digests digests;

void record(const std::string& name, std::span<const double> scores) {
    std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a over the bytes, lowest first
    for (const double score : scores) {
        const auto bits = std::bit_cast<std::uint64_t>(score);
        for (int byte = 0; byte < 64; byte += 8) hash = (hash ^ (bits >> byte & 0xff)) * 0x100000001b3u;
    }
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
    digests[name] = text;
}

struct Stream {
    std::size_t count, width;
    std::vector<double> x, signs, classes, targets;
    std::vector<float> single;
    // the non-zeros
    std::vector<std::int64_t> start{0};
    std::vector<std::int32_t> column;
    std::vector<double> value;

    Stream(std::size_t count, std::size_t width, double zeros) : count(count), width(width) {
        Random random{width};
        for (std::size_t i = 0; i < count * width; ++i) {
            const double bell = random.uniform() + random.uniform() + random.uniform() - 1.5;
            x.push_back(random.uniform() < zeros ? 0.0 : 0.4 * bell);
            single.push_back(static_cast<float>(x.back()));
            if (x.back() != 0) column.push_back(static_cast<std::int32_t>(i % width)), value.push_back(x.back());
            if (i % width == width - 1) start.push_back(static_cast<std::int64_t>(value.size()));
        }
        for (std::size_t i = 0; i < count; ++i) {
            const double* row = x.data() + i * width;
            targets.push_back(row[0] - 2 * row[1] * row[2] + 0.05 * random.uniform());
            signs.push_back(targets.back() > 0 ? 1 : -1);
            classes.push_back(targets.back() > 0.1 ? 2 : targets.back() > -0.1 ? 1 : 0);
        }
    }
    DenseRows<double> dense() const { return {x.data(), count, width}; }
    Batch batch(bool sparse, bool floats) const {
        if (sparse) return SparseRows<double>{start.data(), column.data(), value.data(), count, width};
        if (floats) return DenseRows<float>{single.data(), count, width};
        return dense();
    }
    std::vector<double> labels(Task task, bool three) const {
        if (task != Task::classification) return task == Task::regression ? targets : signs;
        if (three) return classes;
        std::vector<double> codes;
        for (const double sign : signs) codes.push_back(sign > 0 ? 1 : 0);
        return codes;
    }
};

// ---- parts --------------------------------------------------------------------------------------------------------

Node node(Op op, double a = 0, double b = 0, int n = 0, int left = -1, int right = -1) {
    return {op, left, right, n, a, b};
}

std::map<std::string, Kernel> kernels() {
    std::map<std::string, Kernel> all;
    auto one = [&](const char* name, Node only) { all.emplace(name, Kernel({only})); };
    one("linear", node(Op::linear));
    one("polynomial", node(Op::polynomial, 0.7, 0.3, 5));
    one("gaussian", node(Op::gaussian, 0.9));
    one("laplacian", node(Op::laplacian, 0.3));
    one("exponential", node(Op::exponential, 0.4));
    one("vovk", node(Op::vovk, 0, 0, 4));
    one("sigmoid", node(Op::sigmoid, 0.4, 0.1));
    one("manhattan", node(Op::manhattan));
    one("squared_euclidean", node(Op::squared_euclidean));
    all.emplace("composed",
                Kernel({node(Op::gaussian, 0.5), node(Op::polynomial, 1, 1, 2), node(Op::normalized, 0, 0, 0, 1),
                        node(Op::product, 0, 0, 0, 0, 2), node(Op::laplacian, 0.2), node(Op::multiple, 0.6, 0, 0, 4),
                        node(Op::sum, 0, 0, 0, 3, 5)}));
    return all;
}

template <class R, class... Set>
R with(Set... set) {
    R part;
    (set(part), ...);
    return part;
}

std::map<std::string, Rule> rules() {
    const auto logistic = [](auto& r) { r.loss.kind = LossKind::logistic; };
    return {{"perceptron", Perceptron{}},
            {"sgd_hinge", with<Sgd>([](Sgd& r) { r.loss.nu = 0.3, r.rate = 0.2, r.reg = 0.1, r.intercept = true; })},
            {"sgd_logistic",
             with<Sgd>(logistic, [](Sgd& r) { r.rate = 0.3, r.reg = 0.02, r.schedule = Schedule::inv_sqrt; })},
            {"implicit_hinge", with<Implicit>([](Implicit& r) { r.reg = 0.01; })},
            {"implicit_logistic", with<Implicit>(logistic, [](Implicit& r) { r.reg = 0.01; })},
            {"passive_aggressive", PassiveAggressive{}},
            {"feasible_set", with<FeasibleSet>([](FeasibleSet& r) { r.radius = 3; })},
            {"alma", Alma{}},
            {"romma", with<Romma>([](Romma& r) { r.aggressive = true; })},
            {"svmd", with<StepSizeAdaptation>(logistic, [](StepSizeAdaptation& r) {
                 r.rate = 0.2, r.reg = 0.01, r.meta_rate = 0.05, r.decay = 0.95;
             })}};
}

template <class B>
B sized(std::size_t size) {
    return with<B>([=](B& b) { b.size = size; });
}

std::map<std::string, Budget> budgets() {
    return {{"unbounded", Unbounded{}},
            {"window", with<Window>([](Window& b) { b.steps = 57; })},
            {"growing_window", with<Window>([](Window& b) { b.growth = 0.15; })},
            {"drop_oldest", sized<DropOldest>(45)},
            {"drop_smallest", sized<DropSmallest>(45)},
            {"drop_random", sized<DropRandom>(45)},
            {"merge", sized<Merge>(45)}};
}

// ---- learners -----------------------------------------------------------------------------------------------------

void expand(const std::string& name, const Stream& stream, const Kernel& kernel, Rule rule, Budget budget,
            Task task = Task::classification, bool average = false, bool sparse = false, bool floats = false,
            bool three = false) {
    std::vector<double> scores;
    auto learn = [&]<class H>(H*) {
        Learner<H> learner(std::move(rule), budget, task, average, 11, kernel,
                           make_points(stream.width, sparse, floats));
        learner.learn(stream.batch(sparse, floats), stream.labels(task, three), {}, &scores, three ? 3 : 2);
    };
    std::holds_alternative<Project>(budget) ? learn(static_cast<ProjectedExpansion*>(nullptr))
                                            : learn(static_cast<Expansion*>(nullptr));
    record("expansion " + name, scores);
}

void expansions() {
    const Stream stream(400, 21, 0.3);
    const auto sgd = rules().at("sgd_logistic");
    const Budget oldest = sized<DropOldest>(45), project = with<Project>([](Project& b) { b.tolerance = 0.3; });
    for (const auto& [name, kernel] : kernels()) {
        expand(name, stream, kernel, sgd, oldest);
        expand(name + " float", stream, kernel, sgd, oldest, Task::classification, false, false, true);
        expand(name + " sparse", stream, kernel, sgd, oldest, Task::classification, false, true);
    }
    const Kernel gaussian = kernels().at("gaussian");
    for (const auto& [name, rule] : rules())
        for (const auto& [place, budget] : budgets()) expand(name + " " + place, stream, gaussian, rule, budget);
    for (const bool basic : {false, true})
        expand(basic ? "forget basic" : "forget", stream, gaussian, Perceptron{},
               with<Forget>([=](Forget& b) { b.size = 30, b.basic = basic; }));
    expand("projectron", stream, gaussian, Perceptron{}, project);
    expand("projectron laplacian sparse", stream, kernels().at("laplacian"), Perceptron{}, project,
           Task::classification, false, true);
    expand("projectron++", stream, gaussian, with<MarginProjection>([](MarginProjection& r) { r.squared = true; }),
           project);
    expand("three classes", stream, gaussian, sgd, oldest, Task::classification, false, false, false, true);
    expand("three classes averaged", stream, gaussian, sgd, Unbounded{}, Task::classification, true, false, false,
           true);
    expand("three classes projectron", stream, gaussian, Perceptron{}, project, Task::classification, false, false,
           false, true);
    expand("squared", stream, gaussian, with<Sgd>([](Sgd& r) { r.loss.kind = LossKind::squared, r.reg = 0.01; }),
           Unbounded{}, Task::regression, true);
    expand("implicit squared", stream, gaussian, with<Implicit>([](Implicit& r) { r.loss.kind = LossKind::squared; }),
           oldest, Task::regression);
}

void weights() {
    const Stream stream(400, 21, 0);
    for (const auto& [name, rule] : rules()) {
        if (name == "svmd") continue;  // its tangent needs an expansion
        Learner<Weights> learner(rule, Unbounded{}, Task::classification, true, 0, stream.width);
        std::vector<double> scores;
        learner.learn(stream.dense(), stream.labels(Task::classification, false), {}, &scores);
        record("weights " + name, scores);
    }
}

void maps() {
    const Stream stream(60, 21, 0.3);
    const Features features{{5, 4, 3, 3, 2, 2, 2, 1, 1, 1, 1}, {0.3, 0.4, 0.5, 0.5, 0.6, 0.7, 0.7, 1, 1, 1, 1}};
    for (const bool structured : {false, true}) {
        const MaclaurinMap<double> map(stream.width, features, features, structured, 5);
        std::vector<double> out(stream.count * map.columns());
        map.transform(stream.dense(), 0, stream.count, out.data(), map.columns());
        record(structured ? "map structured" : "map", out);
    }
}

void trees() {
    const Stream stream(500, 4, 0);
    for (const int order : {-1, 0, 1, 2}) {
        std::vector<Coordinate> coordinates;
        for (std::size_t c = 0; c < stream.width; ++c) coordinates.push_back({order, 1.3, c, Coordinate::kNone, 0.25});
        Stream shifted = stream;
        for (double& value : shifted.x) value += 0.7;  // splines need non-negative numbers
        Learner<Trees> learner(rules().at("sgd_logistic"), sized<DropOldest>(60), Task::classification, false, 11,
                               coordinates, stream.width, false, false);
        std::vector<double> scores;
        learner.learn(shifted.dense(), stream.labels(Task::classification, false), {}, &scores);
        record(order < 0 ? "trees laplacian" : "trees spline " + std::to_string(order), scores);
    }
}

const std::map<std::string, MarginKind> kMargins = {{"hinge", MarginKind::hinge},
                                                    {"squared_hinge", MarginKind::squared_hinge},
                                                    {"logistic", MarginKind::logistic},
                                                    {"exponential", MarginKind::exponential}};

template <class L>
void rank(const std::string& name, L learner, const Stream& stream) {
    std::vector<double> scores(stream.count);
    learner.learn(stream.dense(), stream.signs, scores.data(), nullptr);
    record(name, scores);
}

void pairs() {
    const Stream stream(400, 6, 0);
    const Buffer policies[] = {Buffer(Policy::fifo, 20), Buffer(Policy::reservoir, 20), Buffer(Policy::reservoir_x, 20),
                               Buffer(Policy::reservoir_x, 20, Draw::binomial)};
    for (const auto& [name, kind] : kMargins)
        for (std::size_t p = 0; p < std::size(policies); ++p) {
            const std::string what = name + " " + std::to_string(p);
            rank("auc " + what,
                 LinearRanker({{kind}, {0.3, 0}, {BallKind::l2, 2}, true, false}, policies[p], stream.width, 1),
                 stream);
            rank("auc kernel " + what,
                 KernelRanker(kernels().at("gaussian"), make_points(stream.width, false, false),
                              {{kind}, {1, 0}, 2, false, false, KernelRanker::Drop::smallest, 30}, policies[p], 3),
                 stream);
        }
    rank("oam", TwoReservoirRanker({0.05, true}, 20, stream.width, 1), stream);
    for (const BallKind ball : {BallKind::none, BallKind::l2, BallKind::trace})
        for (const auto form : {MatrixLearner::Form::metric, MatrixLearner::Form::goodness}) {
            const auto which = std::to_string(static_cast<int>(ball)) + " " + std::to_string(static_cast<int>(form));
            rank("matrix " + which,
                 MatrixLearner({form, {}, {0.2, 0}, {ball, 0.5}, true, false, false}, Buffer(Policy::reservoir_x, 9),
                               stream.width, 1),
                 stream);
        }
}

int compare(const std::string& folder) {
    const std::string name = folder + (std::strcmp(isa_name(), "baseline") == 0 ? "/baseline.txt" : "/fused.txt");
    std::ifstream file(name);
    Digests kept;
    for (std::string line; std::getline(file, line);) kept[line.substr(17)] = line.substr(0, 16);
    int wrong = kept.empty();
    for (const auto& [run, digest] : digests)
        if (const auto at = kept.find(run); at == kept.end() || at->second != digest)
            ++wrong,
                std::printf("%s: %s is %s, not as kept in %s\n", isa_name(), run.c_str(), digest.c_str(), name.c_str());
    for (const auto& [run, digest] : kept)
        if (!digests.contains(run)) ++wrong, std::printf("%s: no run is called %s\n", isa_name(), run.c_str());
    std::printf("digests on %s: %zu runs, %d differ from %s\n", isa_name(), digests.size(), wrong, name.c_str());
    return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
    if (count > 1 && std::strcmp(arguments[1], "--isas") == 0) {
        for (const char* name : isas()) std::printf("%s\n", name);
        return 0;
    }
    expansions();
    weights();
    maps();
    trees();
    pairs();
    if (count > 1) return compare(arguments[1]);
    for (const auto& [name, digest] : digests) std::printf("%s %s\n", digest.c_str(), name.c_str());
    return 0;
}
