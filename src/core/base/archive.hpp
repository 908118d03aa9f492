// Named fields of a saved model. One `visit` of a learner both saves and loads, so that a new saved number is one line.
// Loaded fields are checked here: their sizes, and that every number is finite. Independent of file formats and of
// Python.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/batch.hpp"

namespace gristmill {

struct Field {
    std::variant<std::vector<double>, std::vector<std::int64_t>, std::vector<std::uint64_t>, std::vector<std::uint8_t>,
                 std::vector<float>>
        values;
    std::vector<std::size_t> shape;
};

class Archive {
  public:
    static constexpr std::size_t kAny = static_cast<std::size_t>(-1);
    static constexpr std::uint64_t kLongest = std::uint64_t{1} << 62;  // an upper limit of event counts

    Archive() = default;  // an empty archive to save into
    explicit Archive(std::vector<std::pair<std::string, Field>> fields) : loads(true), fields(std::move(fields)) {}

    bool loads = false;
    std::vector<std::pair<std::string, Field>> fields;  // in the order of the visits
    std::string scope;  // prefix of every name
    std::optional<Batch> points;  // while loading: the stored points, which are kept outside the fields

    // One number; `otherwise`: the value when the field is absent.
    template <class T>
    void number(const char* name, T& value, std::optional<T> otherwise = std::nullopt) {
        std::vector<T> list{value};
        if (loads && otherwise && !find(name)) {
            value = *otherwise;
            return;
        }
        numbers(name, list, 1);
        value = list[0];
    }
    // A count of events or steps; larger than kLongest is refused.
    void count(const char* name, std::uint64_t& value, std::optional<std::uint64_t> otherwise = std::nullopt) {
        number(name, value, otherwise);
        if (value > kLongest) refuse(name, "is not a number of events");
    }
    // A count of things, such as classes, for each of which the file holds numbers: a forged count can ask for no more work or
    // memory than the size of the file justifies.
    void things(const char* name, std::uint64_t& value) {
        count(name, value);
        if (loads && value > 2 + held()) refuse(name, "is more than the file holds numbers for");
    }
    // A list; while loading it must have `size` entries.
    template <class List>
    void numbers(const char* name, List& list, std::size_t size = kAny) {
        using T = typename List::value_type;
        if (!loads) {
            std::vector<T> kept(list.begin(), list.end());
            refuse_infinite(name, kept);  // it could not be loaded
            keep(name, std::move(kept), {list.size()});
            return;
        }
        const auto& read = values<T>(name);
        if (size != kAny && read.size() != size) refuse(name, "does not fit the others");
        list.assign(read.begin(), read.end());
    }
    // One number per stored point; NaN marks an unknown one, and without the field all are unknown.
    template <class List>
    void known(const char* name, List& list, std::size_t size) {
        if (!loads) {
            keep(name, std::vector<double>(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(size)), {size});
            return;
        }
        const Field* field = find(name);
        if (!field) return list.assign(size, std::numeric_limits<double>::quiet_NaN());
        const auto* read = std::get_if<std::vector<double>>(&field->values);
        if (!read || read->size() != size ||
            std::any_of(read->begin(), read->end(), [](double x) { return std::isinf(x); }))
            refuse(name, "does not fit the others");
        list.assign(read->begin(), read->end());
    }
    // Rows of equal length, one per output, kept padded with zeros.
    void table(const char* name, std::vector<Lines<double>>& lines, std::size_t rows, std::size_t columns) {
        if (!loads) {
            std::vector<double> all;
            for (const auto& line : lines)
                all.insert(all.end(), line.begin(), line.begin() + static_cast<std::ptrdiff_t>(columns));
            refuse_infinite(name, all);
            keep(name, std::move(all), {lines.size(), columns});
            return;
        }
        const auto& read = values<double>(name);
        if (read.size() != rows * columns) refuse(name, "does not fit the others");
        lines.assign(rows, Lines<double>(padded(columns)));
        for (std::size_t o = 0; o < rows; ++o)
            std::copy_n(read.begin() + static_cast<std::ptrdiff_t>(o * columns), columns, lines[o].begin());
    }
    // The state of a rule or a budget: the numbers that change while learning.
    template <class Part>
    void part(const char* name, Part& part) {
        const std::string outer = scope;
        scope += name;
        scope += '.';
        std::visit(
            [&](auto& p) {
                p.state([&](const char* field, double& x) { number(field, x); });
                if constexpr (requires { p.visit(*this); }) p.visit(*this);  // list-valued state
            },
            part);
        scope = outer;
    }
    // A text, kept as its bytes.
    void text(const char* name, std::string& value) {
        std::vector<std::uint8_t> bytes(value.begin(), value.end());
        numbers(name, bytes);
        value.assign(bytes.begin(), bytes.end());
    }
    // The names of the fields of a part begin with `name.`.
    template <class F>
    void within(const std::string& name, F&& f) {
        const std::string outer = scope;
        scope += name + '.';
        f();
        scope = outer;
    }
    // Rows of a table, which the archive keeps alive while it loads.
    template <class T>
    DenseRows<T> rows(const char* name, std::size_t width) const {
        const auto& read = values<T>(name);
        if (width == 0 || read.size() % width != 0) refuse(name, "does not fit the others");
        return {read.data(), read.size() / width, width};
    }
    // Saves numbers as they are. The field is made member by member: GCC 12 destroys members of a nested initializer that were
    // never made, if an allocation in it fails.
    template <class T>
    void keep(const char* name, std::vector<T> values, std::vector<std::size_t> shape) {
        Field field;
        field.values = std::move(values);
        field.shape = std::move(shape);
        fields.emplace_back(scope + name, std::move(field));
    }
    bool has(const char* name) const { return find(name) != nullptr; }
    [[noreturn]] void refuse(const char* name, const char* why) const {
        throw std::invalid_argument("the saved field '" + scope + name + "' " + why);
    }

  private:
    // Numbers in all fields.
    std::uint64_t held() const {
        std::uint64_t sum = 0;
        for (const auto& [name, field] : fields)
            sum += std::visit([](const auto& list) { return std::uint64_t{list.size()}; }, field.values);
        return sum;
    }
    const Field* find(const char* name) const {
        const std::string full = scope + name;
        for (const auto& [key, field] : fields)
            if (key == full) return &field;
        return nullptr;
    }
    template <class T>
    const std::vector<T>& values(const char* name) const {
        const Field* field = find(name);
        if (!field) refuse(name, "is missing");
        const auto* list = std::get_if<std::vector<T>>(&field->values);
        if (!list) refuse(name, "has another type of number");
        refuse_infinite(name, *list);
        return *list;
    }
    template <class T>
    void refuse_infinite(const char* name, const std::vector<T>& list) const {
        if constexpr (std::is_floating_point_v<T>)
            if (!std::all_of(list.begin(), list.end(), [](T x) { return std::isfinite(x); }))
                refuse(name, "holds a number that is not finite");
    }
};

// Refuses ids that are not distinct positions before the end of the stream.
inline void check_ids(const Archive& archive, std::vector<std::int64_t> ids, std::uint64_t seen) {
    std::sort(ids.begin(), ids.end());
    if (std::adjacent_find(ids.begin(), ids.end()) != ids.end() ||
        (!ids.empty() && (ids.front() < 0 || static_cast<std::uint64_t>(ids.back()) >= seen)))
        archive.refuse("ids", "does not hold distinct positions of the stream");
}

}  // namespace gristmill
