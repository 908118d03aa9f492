#include "core/pipeline/relevance.hpp"

#include <algorithm>
#include <cmath>

namespace gristmill {

namespace {

constexpr std::size_t kPoints = 256;   // stored points that the gradient is taken at; half with many outputs
constexpr std::size_t kSpread = 128;   // of these, whose median distance is kept
constexpr std::size_t kPasses = 3;
constexpr double kLeast = 0.05;        // of the largest weight: none is smaller
constexpr double kSteady = 0.02;       // of the squared weights move, for 1,000 points: less is not worth the time
constexpr double kSteadiest = 0.1;
constexpr std::size_t kMost = 4096;    // stored points that are learned anew
constexpr double kSlack = 0.1;         // share by which new weights may raise the error on stored points

std::vector<double> shares_of(std::span<const double> gradient, std::span<const double> weights) {
    const std::size_t width = weights.size();
    std::vector<double> shares(width);
    for (std::size_t at = 0; at < gradient.size(); at += width)
        for (std::size_t c = 0; c < width; ++c) {
            const double slope = gradient[at + c] * weights[c];
            shares[c] += slope * slope;
        }
    const double total = exact_sum(shares);
    if (!(total > 0 && std::isfinite(total))) return {};
    for (double& share : shares) share /= total;
    return shares;
}

// share^(11/16), by roots alone: a root is rounded alike on every machine, a power is not.
std::vector<double> weights_of(std::span<const double> shares) {
    std::vector<double> weights(shares.size());
    const auto n = static_cast<double>(shares.size());
    for (std::size_t c = 0; c < shares.size(); ++c) {
        const double half = std::sqrt(n * shares[c]), eighth = std::sqrt(std::sqrt(half));
        weights[c] = std::sqrt(half * eighth * std::sqrt(eighth));
    }
    const double least = kLeast * *std::max_element(weights.begin(), weights.end());
    for (double& weight : weights) weight = std::max(weight, least);
    return weights;
}

// Which share of the squared weights has gone to other columns.
double moved(std::span<const double> old, std::span<const double> fresh) {
    std::vector<double> before, after;
    for (const double w : old) before.push_back(w * w);
    for (const double w : fresh) after.push_back(w * w);
    const double a = exact_sum(before), b = exact_sum(after);
    for (std::size_t c = 0; c < before.size(); ++c) before[c] = std::abs(before[c] / a - after[c] / b);
    return 0.5 * exact_sum(before);
}

// The median distance of rows, as the kernel measures it: by coordinates, or straight.
template <class T>
double median_distance(const std::vector<T>& rows, std::size_t width, bool by_coordinates) {
    const std::size_t count = rows.size() / width, stride = padded(count);
    const Kernel kernel({Node{by_coordinates ? Op::manhattan : Op::squared_euclidean}});
    const Batch batch = DenseRows<T>{rows.data(), count, width};
    DensePoints<T> points(width);
    const auto kernel_rows = points.kernel_rows(kernel, batch);
    kernel_rows->load(0, count);  // refuses rows that are too large
    points.reserve(count);
    for (std::size_t s = 0; s < count; ++s) points.put(s, static_cast<std::int64_t>(s), batch, s);
    Lines<double> values(count * stride);
    kernel_rows->rows(values.data(), stride);
    std::vector<double> pairs;
    for (std::size_t r = 0; r < count; ++r)
        for (std::size_t s = 0; s < r; ++s) pairs.push_back(-values[r * stride + s]);
    const auto low = pairs.begin() + static_cast<std::ptrdiff_t>((pairs.size() - 1) / 2);
    const auto high = pairs.begin() + static_cast<std::ptrdiff_t>(pairs.size() / 2);
    std::nth_element(pairs.begin(), high, pairs.end());
    const double above = *high;
    if (low != high) std::nth_element(pairs.begin(), low, high);
    const double median = 0.5 * (*low + above);
    return by_coordinates ? median : std::sqrt(std::max(median, 0.0));
}

template <class T>
void renew_over(Relevance& relevance, PointLearner& learner, const DensePoints<T>& points, std::uint64_t position,
                bool always) {
    const Expansion& f = learner.hypothesis();
    const std::size_t size = f.size(), width = f.width();
    const std::size_t count = std::min(size, learner.outputs() == 1 ? kPoints : kPoints / 2);
    if (count < 2) return;
    std::vector<std::size_t> order;
    for (std::size_t slot = f.oldest(); slot != Points::npos; slot = f.newer(slot)) order.push_back(slot);
    std::vector<T> sample(count * width);
    for (std::size_t place = 0; place < count; ++place)
        points.copy_out(order[place * size / count], sample.data() + place * width);
    std::vector<double> gradient(count * learner.outputs() * width);
    learner.gradient(DenseRows<T>{sample.data(), count, width}, gradient.data());
    std::vector<double> shares = shares_of(gradient, relevance.weights);
    if (shares.empty()) return;
    std::vector<double> fresh = weights_of(shares);
    const double grown = std::max(1.0, static_cast<double>(size) / 1000);
    const double least = always ? 0.0 : std::min(kSteady * (grown * grown), kSteadiest);
    if (moved(relevance.weights, fresh) < least || size > kMost) {
        relevance.history.push_back({position, shares, false});
        return;
    }
    const std::size_t step = (count + kSpread - 1) / kSpread;
    std::vector<T> few;
    std::vector<double> stretched;
    for (std::size_t place = 0; place < count; place += step)
        for (std::size_t c = 0; c < width; ++c) {
            few.push_back(sample[place * width + c]);
            stretched.push_back(static_cast<double>(few.back()) * (fresh[c] / relevance.weights[c]));
        }
    const bool by_coordinates = f.kernel().needs_l1();
    const double before = median_distance(few, width, by_coordinates),
                 after = median_distance(stretched, width, by_coordinates);
    if (!(before > 0 && after > 0)) return;
    std::vector<double> factors(width);
    for (std::size_t c = 0; c < width; ++c) {
        fresh[c] *= before / after;
        factors[c] = fresh[c] / relevance.weights[c];
    }
    relevance.history.reserve(relevance.history.size() + 1);
    const bool taken = learner.relearn(factors, kPasses, kSlack).accepted;
    if (taken) relevance.weights = fresh;
    relevance.history.push_back({position, std::move(shares), taken});
}

}  // namespace

double exact_sum(std::span<const double> numbers) {
    std::vector<double> partials;
    for (double x : numbers) {
        std::size_t kept = 0;
        for (double y : partials) {
            if (std::abs(x) < std::abs(y)) std::swap(x, y);
            const double high = x + y, low = y - (high - x);
            if (low != 0) partials[kept++] = low;
            x = high;
        }
        partials.resize(kept);
        partials.push_back(x);
    }
    if (partials.empty()) return 0;
    std::size_t n = partials.size();
    double high = partials[--n], low = 0;
    while (n > 0) {
        const double x = high, y = partials[--n];
        high = x + y;
        low = y - (high - x);
        if (low != 0) break;
    }
    // Half-way cases are rounded to even by what is left below.
    if (n > 0 && ((low < 0 && partials[n - 1] < 0) || (low > 0 && partials[n - 1] > 0))) {
        const double y = 2 * low, x = high + y;
        if (y == x - high) high = x;
    }
    return high;
}

void Relevance::relearn(PointLearner& learner, std::uint64_t position, bool always) {
    const Points& points = learner.hypothesis().points();
    if (const auto* single = dynamic_cast<const DensePoints<float>*>(&points))
        renew_over(*this, learner, *single, position, always);
    else if (const auto* dense = dynamic_cast<const DensePoints<double>*>(&points))
        renew_over(*this, learner, *dense, position, always);
    else throw std::invalid_argument("only dense points have columns that can be weighed");
}

void Relevance::widen(std::size_t width) {
    weights.resize(width, 1.0);
    for (RelearnResult& renewal : history) renewal.shares.resize(width);
}

void Relevance::visit(Archive& archive, std::size_t width) {
    archive.numbers("weights", weights, width);
    std::vector<std::uint64_t> positions;
    std::vector<std::uint8_t> taken;
    std::vector<double> shares;
    for (const RelearnResult& renewal : history) {
        positions.push_back(renewal.position);
        taken.push_back(renewal.taken);
        shares.insert(shares.end(), renewal.shares.begin(), renewal.shares.end());
    }
    archive.numbers("renewals", positions);
    archive.numbers("renewals_taken", taken, positions.size());
    archive.numbers("renewals_shares", shares, positions.size() * width);
    if (!archive.loads) return;
    if (!std::all_of(weights.begin(), weights.end(), [](double w) { return w > 0; }))
        archive.refuse("weights", "holds a number out of range");
    history.clear();
    for (std::size_t at = 0; at < positions.size(); ++at) {
        const auto from = shares.begin() + static_cast<std::ptrdiff_t>(at * width);
        history.push_back({positions[at], {from, from + static_cast<std::ptrdiff_t>(width)}, taken[at] != 0});
    }
}

}  // namespace gristmill
