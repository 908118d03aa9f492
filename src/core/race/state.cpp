// The state of a race, of which a copy is taken before a chunk: experts, scalings, mixture, target and shares of memory.
#include <algorithm>

#include "core/race/race.hpp"

namespace gristmill {

namespace {

constexpr std::uint64_t kWidest = std::uint64_t{1} << 31;  // columns of a race that is loaded

Intervals intervals_of(Task task) { return Intervals(task == Task::regression ? 1 : 0); }

std::variant<Mixture, NoveltyMixture> mixture_of(Task task, std::size_t experts, double share, double quantile) {
    if (task == Task::novelty) return NoveltyMixture(experts, share);
    return Mixture(task == Task::classification ? Mixture::Kind::classes : Mixture::Kind::numbers, experts, share,
                   quantile);
}

}  // namespace

RaceState::RaceState(Task task, std::size_t experts, double share, std::size_t memory, double quantile)
    : task(task), mixed(mixture_of(task, experts, share, quantile)), errors(intervals_of(task)),
      shares(memory, task != Task::novelty) {}

RaceState::RaceState(const RaceState& other)
    : task(other.task), width(other.width), scalings(other.scalings), mixed(other.mixed), errors(other.errors),
      target(other.target), held_rows(other.held_rows), held_labels(other.held_labels), shares(other.shares),
      wide_columns(other.wide_columns), means_scaling(other.means_scaling), has_class_means(other.has_class_means),
      balance(other.balance), held_weights(other.held_weights), quiet(other.quiet) {
    for (const auto& expert : other.experts) experts.push_back(expert->clone());
}

std::size_t RaceState::mixture_bytes_for(std::size_t classes) const {
    if (task == Task::novelty) return std::get<NoveltyMixture>(mixed).bytes();
    return mixture().bytes_for(classes);
}

std::size_t RaceState::bytes() const {
    std::size_t total = std::visit([](const auto& m) { return m.bytes(); }, mixed) + errors.bytes();
    for (const auto& expert : experts) total += expert->bytes();
    for (const auto& scaling : scalings) total += scaling.bytes();
    if (wide_columns) total += wide_columns->bytes();
    return total + (held_rows.size() + held_labels.size() + held_weights.size()) * sizeof(double) +
           (target ? target->bytes() : 0);
}

void RaceState::add_class_means() {
    experts.push_back(std::make_unique<ClassMeans>(
        width, *means_scaling, static_cast<std::size_t>(ClassMeans::kShare * static_cast<double>(shares.memory))));
    mixture().add_expert();
    has_class_means = true;
    quiet = 0;
}

void RaceState::drop_class_means() {
    if (!has_class_means) return;
    experts.pop_back();
    mixture().drop_last_expert();
    has_class_means = false;
    quiet = 0;
}

std::size_t RaceState::early_bytes() const {
    std::size_t total = 0;
    for (const auto& scaling : scalings) total += scaling.early_bytes(width);
    return total;
}

std::size_t RaceState::scaling_bytes() const {
    std::size_t total = (target ? target->bytes() : 0) + (wide_columns ? wide_columns->bytes() : 0);
    if (target && target->holds()) total += RobustTarget::kFirst * (width + 1) * sizeof(double);
    for (const auto& scaling : scalings) total += scaling.most_bytes(width);
    return total;
}

void RaceState::set_width(std::size_t columns) {
    for (auto& expert : experts) expert->widen(columns);
    width = columns;
    quiet = 0;
}

void RaceState::visit(Archive& archive) {
    std::uint64_t columns = width, known = classes();
    archive.count("width", columns);
    if (archive.loads && (columns < width || columns >= kWidest))
        archive.refuse("width", "is no number of columns of this race");
    if (wide_columns)
        archive.within("wide_columns", [&] {
            std::uint64_t wide = wide_columns->width;
            archive.count("width", wide);
            if (archive.loads && (wide_columns->width > wide || wide >= kWidest || width != WideColumns::kSketch))
                archive.refuse("width", "is no number of columns of this race");
            wide_columns->width = wide;
            wide_columns->visit(archive);
        });
    for (std::size_t s = 0; s < scalings.size(); ++s)
        archive.within("scaling" + std::to_string(s), [&] { scalings[s].visit(archive, columns); });
    if (archive.loads && means_scaling && archive.has("has_class_means")) add_class_means();
    if (task == Task::classification) balance.visit(archive, kWidest);
    if (has_class_means) {
        std::uint8_t present = 1;
        archive.number("has_class_means", present);
    }
    archive.within("mixture", [&] { std::visit([&](auto& m) { m.visit(archive); }, mixed); });
    archive.count("classes", known);
    if (archive.loads && known != classes()) archive.refuse("classes", "does not fit the others");
    errors.visit(archive);
    if (target)
        archive.within("target", [&] {
            target->visit(archive);
            if (!target->is_robust()) return;
            archive.numbers("held_rows", held_rows);
            archive.numbers("held_labels", held_labels);
            if (archive.loads ? archive.has("held_weights") : !held_weights.empty()) {
                archive.numbers("held_weights", held_weights);
                const bool fits = held_weights.size() == held_labels.size() &&
                                  std::all_of(held_weights.begin(), held_weights.end(), [](double w) { return w > 0; });
                if (archive.loads && !fits) archive.refuse("held_weights", "does not fit the others");
            }
            if (archive.loads &&
                (held_labels.size() >= RobustTarget::kFirst || held_rows.size() != held_labels.size() * columns))
                archive.refuse("held_rows", "does not fit the others");
        });
    archive.within("shares", [&] { shares.visit(archive, *this); });
    if (archive.loads) {
        if (columns > width) set_width(columns);
        for (const auto& [place, bytes] : shares.shares) trained(place).resize(bytes);
    }
    for (std::size_t place = 0; place < experts.size(); ++place)
        archive.within(std::to_string(place), [&] { experts[place]->visit(archive, width, classes()); });
    quiet = 0;
}

}  // namespace gristmill
