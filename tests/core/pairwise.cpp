// The pairwise learners of the core without Python; runs under the sanitizers.
#include <cmath>
#include <cstdio>
#include <random>

#include "check.hpp"
#include "core/pairwise/kernel.hpp"
#include "core/pairwise/matrix.hpp"

using namespace gristmill;

namespace {

struct Stream {
    std::size_t width;
    std::vector<double> x, y;
    Stream(std::size_t count, std::size_t width) : width(width), x(count * width), y(count) {
        std::mt19937_64 random(width);
        std::normal_distribution<double> normal;
        for (double& v : x) v = normal(random);
        for (std::size_t i = 0; i < count; ++i) y[i] = x[i * width] > 0 ? 1 : -1;
    }
    DenseRows<double> rows(std::size_t from, std::size_t to) const {
        return {x.data() + from * width, to - from, width};
    }
    std::span<const double> labels(std::size_t from, std::size_t to) const { return {y.data() + from, to - from}; }
    std::size_t count() const { return y.size(); }
};

constexpr std::size_t kCuts[] = {0, 1, 2, 5, 40, 41, 120, 300};

template <class L>
std::vector<double> scores_in_pieces(L& learner, const Stream& stream) {
    std::vector<double> scores(stream.count());
    for (std::size_t k = 0; k + 1 < std::size(kCuts); ++k)
        learner.learn(stream.rows(kCuts[k], kCuts[k + 1]), stream.labels(kCuts[k], kCuts[k + 1]),
                      scores.data() + kCuts[k], nullptr);
    return scores;
}

template <class L>
std::vector<double> scores_at_once(L& learner, const Stream& stream) {
    std::vector<double> scores(stream.count());
    learner.learn(stream.rows(0, stream.count()), stream.labels(0, stream.count()), scores.data(), nullptr);
    return scores;
}

void rankers_of_every_shape() {
    for (const std::size_t width : {1, 5, 16, 33})
        for (const std::size_t size : {2, 7, 16, 40})
            for (const Policy policy : {Policy::fifo, Policy::reservoir, Policy::reservoir_x}) {
                const Stream stream(300, width);
                const LinearRanker::Settings settings{{}, {0.3, 0.0}, {BallKind::l2, 1.0}, true, false};
                LinearRanker whole(settings, Buffer(policy, size), width, 1), cut = whole;
                CHECK(scores_at_once(whole, stream) == scores_in_pieces(cut, stream));
                TwoReservoirRanker one({0.05, size == 7}, size, width, 1), two = one;
                CHECK(scores_at_once(one, stream) == scores_in_pieces(two, stream));
            }
}

void matrices_stay_in_the_cone() {
    for (const std::size_t width : {1, 3, 17})
        for (const BallKind kind : {BallKind::none, BallKind::l2, BallKind::trace})
            for (const auto form : {MatrixLearner::Form::metric, MatrixLearner::Form::goodness}) {
                const Stream stream(300, width);
                const MatrixLearner::Settings settings{form, {}, {0.2, 0.0}, {kind, 0.5}, true, false, width == 3};
                MatrixLearner whole(settings, Buffer(Policy::reservoir_x, 9), width, 1), cut = whole;
                CHECK(scores_at_once(whole, stream) == scores_in_pieces(cut, stream));
                std::vector<double> w(width * width);
                whole.matrix(w.data());
                Lines<double> a(width * padded(width));
                for (std::size_t i = 0; i < width; ++i)
                    for (std::size_t j = 0; j < width; ++j) a[i * padded(width) + j] = w[i * width + j];
                Spectrum spectrum;
                spectrum.decompose(a.data(), width);
                for (const double value : spectrum.values()) CHECK(value >= -1e-10);
            }
}

// The two norms of entries take many alternating projections, so a few matrices suffice.
void alternating_projections_end_in_both_sets() {
    for (const std::size_t n : {1, 4, 17})
        for (const BallKind kind : {BallKind::l1, BallKind::group}) {
            const Stream stream(n, n);
            Lines<double> a(n * padded(n));
            for (std::size_t i = 0; i < n; ++i)
                for (std::size_t j = 0; j < n; ++j) a[i * padded(n) + j] = stream.x[i * n + j] + stream.x[j * n + i];
            Spectrum spectrum;
            project_psd(a.data(), n, {kind, 1.5}, spectrum);
            double norm = 0;
            for (std::size_t j = 0; j < n; ++j) {
                double column = 0;
                for (std::size_t i = 0; i < n; ++i)
                    column += kind == BallKind::l1 ? std::abs(a[i * padded(n) + j]) : std::pow(a[i * padded(n) + j], 2);
                norm += kind == BallKind::l1 ? column : std::sqrt(column);
            }
            CHECK(norm <= 1.5 * (1 + 1e-12));
            spectrum.decompose(a.data(), n);
            for (const double value : spectrum.values()) CHECK(value >= -1e-10);
        }
}

void kernel_rankers_keep_their_budget() {
    for (const auto drop : {KernelRanker::Drop::smallest, KernelRanker::Drop::oldest, KernelRanker::Drop::random})
        for (const Policy policy : {Policy::fifo, Policy::reservoir_x})
            for (const std::size_t size : {1, 12}) {
                const Stream stream(300, 4);
                auto make = [&] {
                    const KernelRanker::Settings settings{{}, {2.0, 0.0}, 1.5, false, false, drop, size};
                    return KernelRanker(Kernel({{Op::gaussian, -1, -1, 0, 0.5, 0}}), make_points(4, false, false),
                                        settings, Buffer(policy, 10), 3);
                };
                KernelRanker whole = make(), cut = make();
                std::vector<double> one(300), two(300);
                whole.learn(stream.rows(0, 300), stream.labels(0, 300), one.data(), nullptr);
                for (std::size_t k = 0; k + 1 < std::size(kCuts); ++k)
                    cut.learn(stream.rows(kCuts[k], kCuts[k + 1]), stream.labels(kCuts[k], kCuts[k + 1]),
                              two.data() + kCuts[k], nullptr);
                CHECK(one == two);
                CHECK(whole.expansion().size() <= 10 + size);
                CHECK(whole.norm2() <= 1.5 * 1.5 * (1 + 1e-9));
                CHECK(std::abs(whole.norm2() - whole.expansion().exact_inner()[0]) < 1e-9);
            }
}

// A policy that fails in mid-chunk: nothing has changed.
struct Failing final : ForeignPolicy {
    int left = 20;
    void offer(std::uint64_t, std::span<const double>, double, std::size_t filled,
               std::vector<std::size_t>& slots) override {
        if (left-- == 0) throw std::runtime_error("enough");
        slots.push_back(filled < 5 ? filled : 0);
    }
    std::shared_ptr<ForeignPolicy> clone() const override { return std::make_shared<Failing>(*this); }
};

void a_failed_chunk_is_undone() {
    const Stream stream(300, 3);
    LinearRanker learner({}, Buffer(std::make_shared<Failing>(), 5), 3, 1);
    learner.learn(stream.rows(0, 12), stream.labels(0, 12), nullptr, nullptr);
    std::vector<double> before(3), after(3);
    learner.weights(before.data());
    bool threw = false;
    try {
        learner.learn(stream.rows(12, 40), stream.labels(12, 40), nullptr, nullptr);
    } catch (const std::runtime_error&) {
        threw = true;
    }
    learner.weights(after.data());
    CHECK(threw && before == after && learner.stream().seen == 12);
    learner.learn(stream.rows(12, 20), stream.labels(12, 20), nullptr, nullptr);  // eight offers remain
    CHECK(learner.stream().seen == 20);
}

}  // namespace

int main() {
    rankers_of_every_shape();
    matrices_stay_in_the_cone();
    alternating_projections_end_in_both_sets();
    kernel_rankers_keep_their_budget();
    a_failed_chunk_is_undone();
    return summary("pairwise");
}
