#include "core/race/merging.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace gristmill {

namespace {

// ---- small matrices, row by row ---------------------------------------------------------------------------------------------

using Table = std::vector<double>;

Table product(const Table& a, const Table& b, std::size_t rows, std::size_t inner, std::size_t columns) {
    Table out(rows * columns);
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t k = 0; k < inner; ++k)
            for (std::size_t j = 0; j < columns; ++j) out[i * columns + j] += a[i * inner + k] * b[k * columns + j];
    return out;
}

Table transposed(const Table& a, std::size_t n) {
    Table out(n * n);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) out[j * n + i] = a[i * n + j];
    return out;
}

// The pseudo-inverse of a symmetric matrix: eigenvalues by Jacobi's rotations, those that are rounding errors left out.
Table pseudo_inverse(Table a, std::size_t n) {
    constexpr std::size_t kSweeps = 60;
    constexpr double kCutoff = 1e-15;
    Table vectors(n * n);
    for (std::size_t i = 0; i < n; ++i) vectors[i * n + i] = 1;
    for (std::size_t sweep = 0; sweep < kSweeps; ++sweep) {
        double off = 0, all = 0;
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j) (i == j ? all : off) += a[i * n + j] * a[i * n + j];
        if (!(off > 1e-34 * all)) break;
        for (std::size_t p = 0; p + 1 < n; ++p)
            for (std::size_t q = p + 1; q < n; ++q) {
                if (a[p * n + q] == 0) continue;
                const double theta = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
                const double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
                const double c = 1 / std::sqrt(t * t + 1), s = t * c;
                for (std::size_t k = 0; k < n; ++k) {
                    const double x = a[k * n + p], y = a[k * n + q];
                    a[k * n + p] = c * x - s * y, a[k * n + q] = s * x + c * y;
                }
                for (std::size_t k = 0; k < n; ++k) {
                    const double x = a[p * n + k], y = a[q * n + k];
                    a[p * n + k] = c * x - s * y, a[q * n + k] = s * x + c * y;
                }
                for (std::size_t k = 0; k < n; ++k) {
                    const double x = vectors[k * n + p], y = vectors[k * n + q];
                    vectors[k * n + p] = c * x - s * y, vectors[k * n + q] = s * x + c * y;
                }
            }
    }
    double largest = 0;
    for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(a[i * n + i]));
    Table out(n * n);
    for (std::size_t e = 0; e < n; ++e) {
        const double value = a[e * n + e];
        if (!(std::abs(value) > kCutoff * largest)) continue;
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j) out[i * n + j] += vectors[i * n + e] * vectors[j * n + e] / value;
    }
    return out;
}

// ---- baselines and linear models ----------------------------------------------------------------------------------------------

// Counts add up; the last sample is that of the last part that has one.
void unite(Baseline& into, const std::vector<const Baseline*>& each, std::span<const RacePart> parts,
           std::size_t classes) {
    auto& numbers = into.numbers;
    switch (into.kind) {
        case Baseline::Kind::majority:
            numbers.assign(std::max<std::size_t>(classes, 2), 0.0);
            for (std::size_t at = 0; at < parts.size(); ++at)
                for (std::size_t c = 0; c < parts[at].codes.size(); ++c)
                    numbers[parts[at].codes[c]] += each[at]->numbers[c];
            break;
        case Baseline::Kind::no_change:
            numbers = {-1, 1, 1};
            for (std::size_t at = 0; at < parts.size(); ++at) {
                const auto& own = each[at]->numbers;
                if (own[0] >= 0) numbers[0] = static_cast<double>(parts[at].codes[static_cast<std::size_t>(own[0])]);
                numbers[1] += own[1] - 1;
                numbers[2] += own[2] - 1;
            }
            break;
        case Baseline::Kind::mean:
            numbers = {0, 0, 0};
            for (const Baseline* one : each) {
                const auto& own = one->numbers;
                if (own[2] == 0) continue;
                if (numbers[2] == 0) numbers[0] = own[0];
                numbers[1] += own[1] + own[2] * (own[0] - numbers[0]);
                numbers[2] += own[2];
            }
            break;
        case Baseline::Kind::last: numbers[0] = each.back()->numbers[0]; break;
    }
}

// A scaled column is (x - centre) * slope.
struct Affine {
    std::vector<double> centre, slope;
    explicit Affine(const ColumnScaling& scaling) : centre(scaling.width()), slope(scaling.slopes()) {
        const double count = static_cast<double>(std::max<std::uint64_t>(scaling.known(), 1));
        for (std::size_t c = 0; c < centre.size(); ++c)
            centre[c] = scaling.by_range ? scaling.low[c] : scaling.first[c] + scaling.low[c] / count;
    }
};

// Sums of squares and products add up, each brought into the united scaling.
void unite(LinearExpert& into, const std::vector<const LinearExpert*>& each,
           const std::vector<const ColumnScaling*>& old, const ColumnScaling& united, std::size_t width) {
    const std::size_t n = width + (into.changes ? 0 : 1);
    Table squares(n * n), products(n);
    const LinearExpert* first = nullptr;
    const Affine now(united);
    for (std::size_t at = 0; at < each.size(); ++at) {
        const LinearExpert& own = *each[at];
        if (!own.line || own.seen == 0) continue;
        if (!first) first = &own;
        const Affine then(*old[at]);
        // Features in the old scaling are `back` times those in the new one.
        Table back(n * n), weights(own.line->weights().begin(), own.line->weights().end());
        const std::size_t shift = into.changes ? 0 : 1;
        if (!into.changes) {
            weights[0] += own.first - first->first;
            back[0] = 1;
        }
        for (std::size_t c = 0; c < width; ++c) {
            back[(c + shift) * n + c + shift] = now.slope[c] != 0 ? then.slope[c] / now.slope[c] : 1.0;
            if (!into.changes) back[(c + 1) * n] = (now.centre[c] - then.centre[c]) * then.slope[c];
        }
        const Table sums = pseudo_inverse({own.line->inverse().begin(), own.line->inverse().end()}, n),
                    turned = transposed(back, n);
        const Table square = product(turned, product(sums, back, n, n, n), n, n, n);
        const Table part = product(turned, product(sums, weights, n, n, 1), n, n, 1);
        for (std::size_t i = 0; i < n * n; ++i) squares[i] += square[i];
        for (std::size_t i = 0; i < n; ++i) products[i] += part[i];
        into.last = own.last;
        into.seen += own.seen;
        into.row.resize(width);
        for (std::size_t c = 0; c < width; ++c)
            into.row[c] = (own.row[c] / then.slope[c] + (then.centre[c] - now.centre[c])) * now.slope[c];
    }
    if (!first) return;
    into.first = first->first;
    Table inverse = pseudo_inverse(squares, n);
    const Table weights = product(inverse, products, n, n, 1), turned = transposed(inverse, n);
    for (std::size_t i = 0; i < n * n; ++i) inverse[i] = 0.5 * (inverse[i] + turned[i]);
    into.begin(width);
    into.line->set(weights, inverse);
}

// ---- experts that go on ----------------------------------------------------------------------------------------------------------------

// The experts that go on, the best first.
std::vector<std::size_t> going_on(const RaceState& into, std::span<const RacePart> parts,
                                  const std::vector<std::vector<std::size_t>>& ran) {
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < into.experts.size(); ++place)
        if (into.is_trained(place) && !ran[place].empty()) places.push_back(place);
    if (into.shares.memory == 0 || into.task == Task::novelty) return places;
    std::vector<double> spread(into.experts.size());
    for (const std::size_t place : places)
        for (const std::size_t at : ran[place]) spread[place] += parts[at].share;
    std::size_t most = 0;
    for (const RacePart& part : parts) {
        std::size_t running = 0;
        for (std::size_t place = 0; place < into.experts.size(); ++place)
            running += part.race->is_trained(place) && part.race->experts[place]->runs();
        most = std::max(most, running);
    }
    const Mixture& mixture = into.mixture();
    auto recent = mixture.recent();
    std::vector<double> counted(mixture.counted().begin(), mixture.counted().end());
    if (std::all_of(counted.begin(), counted.end(),
                    [](double n) { return n == 0; })) {  // memory moved at the last sample
        recent.assign(mixture.errors().begin(), mixture.errors().end());
        counted.assign(mixture.events().begin(), mixture.events().end());
    }
    auto mean = [&](std::size_t place) {
        return counted[place] > 0 ? recent[place] / std::max(counted[place], 1.0)
                                  : std::numeric_limits<double>::infinity();
    };
    std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
        const bool few_a = spread[a] < 0.5, few_b = spread[b] < 0.5;
        return few_a != few_b ? few_b : mean(a) < mean(b);
    });
    const auto enough = static_cast<std::size_t>(
        std::count_if(places.begin(), places.end(), [&](std::size_t p) { return spread[p] >= 0.5; }));
    places.resize(std::max(std::min(most, enough), std::min(MemoryShares::kLast, places.size())));
    return places;
}

void rest(RaceState& into, std::size_t place, std::span<const RacePart> parts) {
    Expert& expert = *into.experts[place];
    const bool left = std::all_of(parts.begin(), parts.end(),
                                  [&](const RacePart& part) { return !part.race->experts[place]->note.empty(); });
    expert.note = left ? parts[0].race->experts[place]->note : "";
    expert.rests = !left;
    into.trained(place).begin(into.width);
    into.leave(place);
}

void unite_simple(RaceState& into, std::size_t place, std::span<const RacePart> parts, std::size_t classes) {
    if (auto* baseline = dynamic_cast<Baseline*>(into.experts[place].get())) {
        std::vector<const Baseline*> each;
        for (const RacePart& part : parts)
            each.push_back(static_cast<const Baseline*>(part.race->experts[place].get()));
        unite(*baseline, each, parts, classes);
        return;
    }
    auto& line = static_cast<LinearExpert&>(*into.experts[place]);
    const std::size_t scaling = line.scaling() - 1;
    std::vector<const LinearExpert*> each;
    std::vector<const ColumnScaling*> old;
    for (const RacePart& part : parts) {
        each.push_back(static_cast<const LinearExpert*>(part.race->experts[place].get()));
        old.push_back(part.race->scalings[scaling].columns());
    }
    unite(line, each, old, *into.scalings[scaling].columns(), into.width);
}

}  // namespace

std::vector<std::vector<std::size_t>> parts_that_ran(std::span<const RacePart> parts) {
    std::vector<std::vector<std::size_t>> ran(parts[0].race->experts.size());
    for (std::size_t place = 0; place < ran.size(); ++place)
        for (std::size_t at = 0; at < parts.size(); ++at) {
            const RaceState& race = *parts[at].race;
            const bool learned =
                race.is_trained(place) && race.experts[place]->runs() && race.trained(place).seen() > 0;
            if (learned && parts[at].share > 0) ran[place].push_back(at);
        }
    return ran;
}

std::vector<MergedExpert> unite(RaceState& into, std::span<const RacePart> parts, std::size_t classes) {
    const auto ran = parts_that_ran(parts);
    std::vector<double> all_shares;
    for (const RacePart& part : parts) all_shares.push_back(part.share);
    if (into.task == Task::novelty) {
        std::vector<const NoveltyMixture*> each;
        for (const RacePart& part : parts) each.push_back(&std::get<NoveltyMixture>(part.race->mixed));
        std::get<NoveltyMixture>(into.mixed).unite(each);
    } else {
        std::vector<Mixture::Part> each;
        for (const RacePart& part : parts) {
            std::vector<std::uint8_t> runs;
            for (const auto& expert : part.race->experts) runs.push_back(expert->runs());
            each.push_back({&part.race->mixture(), part.share, std::move(runs), part.codes});
        }
        into.mixture().unite(each, classes);
    }
    if (into.task == Task::regression) {
        std::vector<const Intervals*> each;
        for (const RacePart& part : parts) each.push_back(&part.race->errors);
        into.errors.unite(each, all_shares);
    }
    std::vector<std::size_t> running = going_on(into, parts, ran);
    auto runs = [&](std::size_t place) { return std::find(running.begin(), running.end(), place) != running.end(); };
    for (std::size_t place = 0; place < into.experts.size(); ++place) {
        if (!into.is_trained(place)) {
            unite_simple(into, place, parts, classes);
        } else if (runs(place)) {
            into.experts[place]->rests = false;
            into.experts[place]->note.clear();
        } else {
            rest(into, place, parts);
        }
    }
    if (into.shares.memory != 0) {
        into.shares.check(into, classes);
        into.shares.shares = into.shares.shared_among(into, running, classes);
        into.shares.tried = parts[0].race->shares.tried;
        std::vector<std::size_t> kept_running;
        for (const std::size_t place : running) {
            const auto& kept = into.shares.shares;
            if (std::none_of(kept.begin(), kept.end(), [&](const auto& one) { return one.first == place; }))
                rest(into, place, parts);
            else kept_running.push_back(place);
        }
        running = std::move(kept_running);
    }
    into.quiet = 0;
    std::vector<MergedExpert> found;
    for (const std::size_t place : running) found.push_back({place, ran[place]});
    return found;
}

void resize_to_shares(RaceState& race) {
    for (const auto& [place, bytes] : race.shares.shares) race.trained(place).resize(bytes);
}

}  // namespace gristmill
