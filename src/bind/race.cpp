// A race as Python sees it: learning and answers without Python in between, and its parts as values, out and in again.
#include "bind/bound_learner.hpp"
#include "core/race/race.hpp"

namespace gristmill::bind {

namespace {

using HeldLearner = BoundLearner<PointLearner>;

class HeldRace : public CoreLock {
  public:
    HeldRace(const std::string& task, std::size_t experts, double share, std::size_t memory)
        : race(task_from(task), experts, share, memory) {}
    explicit HeldRace(const RaceState& state) : race(state.task, 1, 0.5, 0) { race.state = RaceState(state); }
    HeldRace(const HeldRace&) = delete;
    Race race;

    const Expert& expert(std::size_t place) const {
        if (place >= race.state.experts.size()) throw nb::index_error("there is no such expert");
        return *race.state.experts[place];
    }
    template <class E>
    E& as(std::size_t place) const {
        auto* found = dynamic_cast<E*>(const_cast<Expert*>(&expert(place)));
        if (!found) throw nb::type_error("an expert of another kind");
        return *found;
    }
};

DenseRows<double> view(const Array2<double>& rows) { return {rows.data(), rows.shape(0), rows.shape(1)}; }

nb::object learn(HeldRace& h, Array2<double> rows, Array1<double> labels, nb::handle, bool want, std::size_t known) {
    if (labels.shape(0) != rows.shape(0)) throw nb::value_error("rows and labels must have one length");
    std::vector<double> scores;
    std::size_t outputs = 1;
    h.write([&] {
        h.race.poll = Interrupts();
        scores = h.race.learn(view(rows), {labels.data(), labels.shape(0)}, want, known);
        outputs = h.race.state.outputs();
    });
    return want ? nb::cast(array_of(std::move(scores), {rows.shape(0), outputs})) : nb::none();
}

nb::tuple score(const HeldRace& h, Array2<double> rows) {
    std::vector<double> scores;
    std::size_t outputs = 1, classes = 0;
    h.read([&] {
        outputs = h.race.state.outputs();
        classes = h.race.state.classes();
        scores.resize(rows.shape(0) * outputs);
        h.race.score(view(rows), scores.data());
    });
    return nb::make_tuple(array_of(std::move(scores), {rows.shape(0), outputs}), classes);
}

// Nothing where there is one score a class: a class may have come since the caller looked.
std::optional<double> score_one(const HeldRace& h, Array1<double> x) {
    double found = 0;
    bool one = true;
    h.read([&] {
        one = h.race.state.outputs() == 1;
        if (one) h.race.score({x.data(), 1, x.shape(0)}, &found);
    });
    return one ? std::optional(found) : std::nullopt;
}

Doubles probabilities(const HeldRace& h, Array2<double> scores) {
    const std::size_t rows = scores.shape(0), outputs = scores.shape(1);
    std::size_t k = 1;
    h.read([&] {
        k = std::max<std::size_t>(h.race.state.classes(), 1);
        if (outputs != h.race.state.outputs()) throw std::runtime_error("a class came between scores and probabilities");
    });
    std::vector<double> shares(rows * k, 1.0);
    for (std::size_t r = 0; r < rows && k > 1; ++r) {
        const double* from = scores.data() + r * outputs;
        double *to = shares.data() + r * k, sum = 0;
        if (outputs == 1) {
            to[0] = Loss::sigmoid(-from[0]);
            to[1] = Loss::sigmoid(from[0]);
            continue;
        }
        for (std::size_t c = 0; c < k; ++c) sum += to[c] = elementary::exp(from[c]);
        for (std::size_t c = 0; c < k; ++c) to[c] /= sum;
    }
    return array_of(std::move(shares), {rows, k});
}

nb::object relevance_of(const HeldRace& h, std::size_t place) {
    return h.read_with_gil([&]() -> nb::object {
        const auto& found = h.as<LearnerExpert>(place).relevance;
        if (!found) return nb::none();
        nb::list history;
        for (const auto& r : found->history) history.append(nb::make_tuple(r.position, array_of(std::vector<double>(r.shares)), r.taken));
        return nb::make_tuple(array_of(std::vector<double>(found->weights)), history);
    });
}

void set_relevance(HeldRace& h, std::size_t place, Array1<double> weights, nb::list history) {
    Relevance fresh;
    fresh.weights.assign(weights.data(), weights.data() + weights.size());
    for (const nb::handle item : history) {
        const auto line = nb::cast<nb::tuple>(item);
        const auto shares = nb::cast<Array1<double>>(line[1]);
        fresh.history.push_back({nb::cast<std::uint64_t>(line[0]), {shares.data(), shares.data() + shares.size()}, nb::cast<bool>(line[2])});
        fresh.history.back().shares.resize(fresh.weights.size());
    }
    h.write([&] { h.as<LearnerExpert>(place).relevance = std::move(fresh); });
}

}  // namespace

void bind_race(nb::module_& m) {
    nb::class_<HeldRace>(m, "Race")
        .def(nb::init<const std::string&, std::size_t, double, std::size_t>(), nb::arg("task"), nb::arg("experts"), nb::arg("share"),
             nb::arg("memory"))
        .def("add_learner", [](HeldRace& h, const HeldLearner& fresh, std::optional<bool> by_range, std::optional<std::uint64_t> warmup,
                               bool weighs, bool scales_target) {
            const std::size_t place =
                by_range ? h.race.scaling(*by_range, warmup.value_or(std::numeric_limits<std::uint64_t>::max())) : 0;
            h.race.state.experts.push_back(std::make_unique<LearnerExpert>(fresh.learner, place, weighs, scales_target));
            if (scales_target && !h.race.state.target) h.race.state.target.emplace();
        }, nb::arg("fresh"), nb::arg("by_range").none(), nb::arg("warmup").none(), nb::arg("weighs"), nb::arg("scales_target"))
        .def("add_baseline", [](HeldRace& h, int kind) {
            h.race.state.experts.push_back(std::make_unique<Baseline>(static_cast<Baseline::Kind>(kind)));
        })
        .def("add_line", [](HeldRace& h, bool changes) {
            const std::size_t place = h.race.scaling(false, std::numeric_limits<std::uint64_t>::max());
            h.race.state.experts.push_back(std::make_unique<LinearExpert>(changes, place));
        })
        .def("begin", [](HeldRace& h, std::size_t width) { h.write([&] { h.race.begin(width); }); })
        .def("learn", &learn, nb::arg("rows"), nb::arg("labels"), nb::arg("weights").none(), nb::arg("want_scores"), nb::arg("classes") = 0)
        .def("learn_one", [](HeldRace& h, Array1<double> x, double label, double) {
            h.write([&] {
                h.race.poll = nullptr;
                h.race.learn_one(x.data(), x.shape(0), label);
            });
        })
        .def("learn_batch", [](HeldRace& h, Array2<double> rows, Array1<double> labels, std::size_t known, std::size_t passes) {
            if (labels.shape(0) != rows.shape(0)) throw nb::value_error("rows and labels must have one length");
            h.write([&] {
                h.race.poll = Interrupts();
                h.race.learn_batch(view(rows), {labels.data(), labels.shape(0)}, known, passes);
            });
        })
        .def("widen_rows", [](HeldRace& h, std::size_t width) { h.write([&] { h.race.widen(width); }); })
        .def("score", &score)
        .def("score_one", &score_one)
        .def("probabilities", &probabilities)
        .def("intervals", [](const HeldRace& h) { return h.read_with_gil([&] { return h.race.state.errors; }); })
        .def_prop_ro("seen", [](const HeldRace& h) { return h.read_with_gil([&] { return h.race.state.seen(); }); })
        .def_prop_ro("classes", [](const HeldRace& h) { return h.read_with_gil([&] { return h.race.state.classes(); }); })
        .def_prop_ro("outputs", [](const HeldRace& h) { return h.read_with_gil([&] { return h.race.state.outputs(); }); })
        .def_prop_ro("width", [](const HeldRace& h) { return h.read_with_gil([&] { return h.race.state.width; }); })
        .def_prop_ro("memory_bytes", [](const HeldRace& h) { return h.read_with_gil([&] { return h.race.state.bytes(); }); })
        .def_prop_ro("sizes", [](const HeldRace& h) {
            return h.read_with_gil([&] {
                std::vector<std::size_t> sizes;
                for (const auto& e : h.race.state.experts) {
                    const auto* learner = dynamic_cast<const LearnerExpert*>(e.get());
                    sizes.push_back(learner && e->runs() ? learner->learner.hypothesis().size() : 0);
                }
                return sizes;
            });
        })
        // ---- its parts as values
        .def("get_mixture", [](const HeldRace& h) -> nb::object {
            return h.read_with_gil([&]() -> nb::object {
                if (const auto* mixture = std::get_if<Mixture>(&h.race.state.mixed)) return nb::cast(Mixture(*mixture));
                return nb::cast(NoveltyMixture(std::get<NoveltyMixture>(h.race.state.mixed)));
            });
        })
        .def("set_mixture", [](HeldRace& h, const Mixture& mixture) { h.write([&] { h.race.state.mixed = mixture; }); })
        .def("set_mixture", [](HeldRace& h, const NoveltyMixture& mixture) { h.write([&] { h.race.state.mixed = mixture; }); })
        .def("get_scaling", [](const HeldRace& h, bool by_range, std::optional<std::uint64_t> warmup) {
            return h.read_with_gil([&] {
                for (const auto& s : h.race.state.scalings)
                    if (s.by_range == by_range && s.warmup == warmup.value_or(std::numeric_limits<std::uint64_t>::max()))
                        return ColumnScaling(s);
                throw nb::value_error("there is no such scaling");
            });
        }, nb::arg("by_range"), nb::arg("warmup").none())
        .def("set_scaling", [](HeldRace& h, const ColumnScaling& scaling) {
            h.write([&] {
                for (auto& s : h.race.state.scalings)
                    if (s.by_range == scaling.by_range && s.warmup == scaling.warmup) s = scaling;
            });
        })
        .def("get_learner", [](const HeldRace& h, std::size_t place) {
            return h.read_with_gil([&] {
                return nb::cast(new HeldLearner(std::vector<nb::object>(), h.as<LearnerExpert>(place).learner),
                                nb::rv_policy::take_ownership);
            });
        })
        .def("set_learner", [](HeldRace& h, std::size_t place, const HeldLearner& core) {
            h.write([&] { h.as<LearnerExpert>(place).learner = PointLearner(core.learner); });
        })
        .def("get_relevance", &relevance_of)
        .def("set_relevance", &set_relevance)
        .def("get_flags", [](const HeldRace& h, std::size_t place) {
            return h.read_with_gil([&] { return nb::make_tuple(h.expert(place).note, h.expert(place).rests); });
        })
        .def("set_flags", [](HeldRace& h, std::size_t place, const std::string& note, bool rests) {
            h.write([&] { h.as<Expert>(place).note = note, h.as<Expert>(place).rests = rests; });
        })
        .def("get_numbers", [](const HeldRace& h, std::size_t place) {
            return h.read_with_gil([&] { return array_of(std::vector<double>(h.as<Baseline>(place).numbers)); });
        })
        .def("set_numbers", [](HeldRace& h, std::size_t place, Array1<double> numbers) {
            h.write([&] { h.as<Baseline>(place).numbers.assign(numbers.data(), numbers.data() + numbers.size()); });
        })
        .def("get_line", [](const HeldRace& h, std::size_t place) {
            return h.read_with_gil([&] {
                const auto& e = h.as<LinearExpert>(place);
                nb::object line = e.line ? nb::cast(LeastSquares(*e.line)) : nb::none();
                return nb::make_tuple(line, e.first, e.last, e.seen, array_of(std::vector<double>(e.row)));
            });
        })
        .def("set_line", [](HeldRace& h, std::size_t place, nb::object line, double first, double last, std::uint64_t seen, Array1<double> row) {
            std::optional<LeastSquares> found;
            if (!line.is_none()) found.emplace(nb::cast<const LeastSquares&>(line));
            h.write([&] {
                auto& e = h.as<LinearExpert>(place);
                e.line = std::move(found);
                e.first = first;
                e.last = last;
                e.seen = seen;
                e.row.assign(row.data(), row.data() + row.size());
            });
        }, nb::arg("place"), nb::arg("line").none(), nb::arg("first"), nb::arg("last"), nb::arg("seen"), nb::arg("row"))
        .def("get_target", [](const HeldRace& h) {
            return h.read_with_gil([&]() -> nb::object {
                const auto& t = h.race.state.target;
                if (!t) return nb::none();
                return nb::make_tuple(t->first, t->count, t->sum, t->squares, t->centre, t->spread, t->next);
            });
        })
        .def("set_target", [](HeldRace& h, std::tuple<double, std::uint64_t, double, double, double, double, std::uint64_t> v) {
            TargetScale t;
            std::tie(t.first, t.count, t.sum, t.squares, t.centre, t.spread, t.next) = v;
            h.write([&] { h.race.state.target = t; });
        })
        .def("set_intervals", [](HeldRace& h, const Intervals& errors) { h.write([&] { h.race.state.errors = errors; }); })
        .def("get_shares", [](const HeldRace& h) {
            return h.read_with_gil([&] {
                nb::list shares;
                for (const auto& one : h.race.state.shares.shares) shares.append(nb::make_tuple(one.first, one.second));
                return nb::make_tuple(shares, h.race.state.shares.tried, h.race.state.shares.begun);
            });
        })
        .def("set_shares", [](HeldRace& h, nb::list shares, std::vector<std::size_t> tried, std::size_t begun) {
            std::vector<MemoryShares::Share> found;
            for (const nb::handle item : shares) {
                const auto pair = nb::cast<nb::tuple>(item);
                found.emplace_back(nb::cast<std::size_t>(pair[0]), nb::cast<std::size_t>(pair[1]));
            }
            h.write([&] {
                h.race.state.shares.shares = std::move(found);
                h.race.state.shares.tried = std::move(tried);
                h.race.state.shares.begun = begun;
                h.race.state.quiet = 0;
            });
        })
        .def("snapshot", [](const HeldRace& h) {
            return h.read_with_gil([&] { return nb::cast(new HeldRace(h.race.state), nb::rv_policy::take_ownership); });
        }, "A copy of one moment.");
}

}  // namespace gristmill::bind
