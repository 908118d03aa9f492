#include "core/additive/widening.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/learner/saving.hpp"

namespace gristmill {

namespace {

template <class T>
std::vector<T>& list(Archive& archive, const char* name) {
    for (auto& [field, content] : archive.fields)
        if (field == name) return std::get<std::vector<T>>(content.values);
    throw std::logic_error(name);
}

// The place of each coordinate of `narrow` among those of `wide`.
std::vector<std::size_t> places_of(std::span<const Coordinate> narrow, std::span<const Coordinate> wide) {
    auto key = [](const Coordinate& c) { return std::tuple(c.order, c.gamma, c.column, c.other, c.weight); };
    std::multimap<decltype(key(wide[0])), std::size_t> found;
    for (std::size_t c = 0; c < wide.size(); ++c) found.emplace(key(wide[c]), c);
    std::vector<std::size_t> places;
    for (const Coordinate& coordinate : narrow) {
        const auto at = found.find(key(coordinate));  // the first of equal ones
        if (at == found.end()) throw std::invalid_argument("a coordinate of the narrow kernel is none of the wide one");
        places.push_back(at->second);
        found.erase(at);
    }
    return places;
}

// The shape of a tree with one entry.
std::vector<std::uint8_t> shape_of_one_entry() {
    AdditiveSum sum({Coordinate{}}, 1);
    const double key = 0;
    const std::size_t output = 0;
    sum.reserve_event({&output, 1});
    sum.add(0, &key, 1.0);
    return sum.shape(0, 0);
}

double weight_of(std::span<const Coordinate> coordinates) {
    double sum = 0;
    for (const Coordinate& coordinate : coordinates) sum += coordinate.weight;
    return sum;
}

// The fields of a saved learner over the coordinates `narrow`, as those of one over `wide`.
void widen_fields(Archive& saved, std::span<const Coordinate> narrow, std::span<const Coordinate> wide,
                  std::size_t outputs) {
    const auto places = places_of(narrow, wide);
    const auto ends = list<std::int64_t>(saved, "shape_ends");
    const auto shapes = list<std::uint8_t>(saved, "shapes");
    const auto& coefs = list<double>(saved, "coef");
    const std::size_t terms = coefs.size() / outputs;
    const auto one = shape_of_one_entry();
    std::vector<std::vector<std::uint8_t>> trees(outputs * wide.size());
    double squares = 0;
    for (std::size_t o = 0; o < outputs; ++o) {
        const double* line = coefs.data() + o * terms;
        // All stored points have the value 0 there: one entry, if any of them is in the trees of this output.
        const bool any = std::any_of(line, line + terms, [](double c) { return c != 0; });
        if (any) std::fill_n(trees.begin() + static_cast<std::ptrdiff_t>(o * wide.size()), wide.size(), one);
        for (std::size_t c = 0; c < narrow.size(); ++c) {
            const std::size_t tree = o * narrow.size() + c;
            const std::int64_t from = tree == 0 ? 0 : ends[tree - 1];
            trees[o * wide.size() + places[c]].assign(shapes.begin() + from, shapes.begin() + ends[tree]);
        }
        double sum = 0;
        for (std::size_t s = 0; s < terms; ++s) sum += line[s];
        const double value = list<double>(saved, "scale")[0] * sum;
        squares += value * value;
    }
    // k(0, 0) = 1 in each new coordinate, times its weight, for every pair of points
    list<double>(saved, "norm2")[0] += (weight_of(wide) - weight_of(narrow)) * squares;

    auto& odd_at = list<std::int64_t>(saved, "odd_at");
    auto& odd_values = list<double>(saved, "odd_values");
    std::vector<std::tuple<std::int64_t, std::int64_t, double, double>> odd;
    for (std::size_t i = 0; i < odd_at.size(); i += 2) {
        const auto tree = static_cast<std::size_t>(odd_at[i]);
        const std::size_t moved = tree / narrow.size() * wide.size() + places[tree % narrow.size()];
        odd.emplace_back(static_cast<std::int64_t>(moved), odd_at[i + 1], odd_values[i], odd_values[i + 1]);
    }
    std::sort(odd.begin(), odd.end());
    for (std::size_t i = 0; i < odd.size(); ++i)
        std::tie(odd_at[2 * i], odd_at[2 * i + 1], odd_values[2 * i], odd_values[2 * i + 1]) = odd[i];

    auto& new_shapes = list<std::uint8_t>(saved, "shapes");
    auto& new_ends = list<std::int64_t>(saved, "shape_ends");
    new_shapes.clear();
    new_ends.clear();
    for (const auto& tree : trees) {
        new_shapes.insert(new_shapes.end(), tree.begin(), tree.end());
        new_ends.push_back(static_cast<std::int64_t>(new_shapes.size()));
    }
}

template <class T>
std::vector<T> wide_rows(const Terms& terms, std::size_t width) {
    std::vector<T> rows(terms.size() * width);
    std::vector<double> row(terms.width());
    for (std::size_t s = 0; s < terms.size(); ++s) {
        terms.row(s, row.data());
        std::copy(row.begin(), row.end(), rows.begin() + static_cast<std::ptrdiff_t>(s * width));
    }
    return rows;
}

}  // namespace

void take_widened(Learner<Trees>& fresh, Learner<Trees>& narrow) {
    const Trees& trees = narrow.hypothesis();
    const std::size_t width = fresh.width(), size = trees.size();
    if (width < narrow.width() || fresh.seen() != 0) throw std::invalid_argument("a fresh and wider learner is needed");
    Archive saved;
    narrow.visit(saved);
    widen_fields(saved, trees.sum().coordinates(), fresh.hypothesis().sum().coordinates(), narrow.outputs());
    Archive loaded(std::move(saved.fields));
    std::vector<double> doubles;
    std::vector<float> floats;
    if (trees.terms().single()) {
        floats = wide_rows<float>(trees.terms(), width);
        loaded.points = DenseRows<float>{floats.data(), size, width};
    } else {
        doubles = wide_rows<double>(trees.terms(), width);
        loaded.points = DenseRows<double>{doubles.data(), size, width};
    }
    fresh.visit(loaded);
}

}  // namespace gristmill
