// Bindings of a race: learning and scores without Python in between, copies of its parts, saved state, and merging.
#include "bind/learners/bound_learner.hpp"
#include "bind/race/python_expert.hpp"
#include "core/race/merging.hpp"
#include "core/race/wide_linear.hpp"

namespace gristmill::bind {

namespace {

using PyLearner = BoundLearner<PointLearner>;
constexpr std::uint64_t kNeverFrozen = std::numeric_limits<std::uint64_t>::max();

RaceScaling::Method method_from(const std::string& name) {
    if (name == "standard") return RaceScaling::Method::standard;
    if (name == "minmax") return RaceScaling::Method::minmax;
    if (name == "rank") return RaceScaling::Method::rank;
    throw nb::value_error(("there is no scaling " + name).c_str());
}

class BoundRace final : public EventCore {
  public:
    BoundRace(const std::string& task, std::size_t experts, double share, std::size_t memory, double quantile)
        : race(task_from(task), experts, share, memory, quantile) {}
    explicit BoundRace(const RaceState& state) : race(state.task, 1, 0.5, 0) { race.state = RaceState(state); }
    BoundRace(const BoundRace&) = delete;
    Race race;

    template <class E = Expert>
    E& expert(std::size_t place) const {
        if (place >= race.state.experts.size()) throw nb::index_error("there is no such expert");
        auto* found = dynamic_cast<E*>(race.state.experts[place].get());
        if (!found) throw nb::type_error("an expert of another kind");
        return *found;
    }

    void learn_event(std::span<const double> x, double label, double weight) override {
        write([&] {
            race.poll = nullptr;
            race.learn_one(x.data(), x.size(), label, weight);
        });
    }
    bool score_event(std::span<const double> x, std::vector<double>& scores, std::size_t& classes) const override {
        read([&] {
            scores.resize(race.state.outputs());
            classes = race.state.classes();
            race.score({x.data(), 1, x.size()}, scores.data());
        });
        return true;
    }
    bool share_event(std::span<const double> scores, std::vector<double>& shares) const override {
        bool whole = false;
        read([&] {
            whole = scores.size() == race.state.outputs();
            shares.assign(std::max<std::size_t>(race.state.classes(), 1), 1.0);
        });
        if (whole && shares.size() > 1) probabilities(scores, shares);
        return whole;
    }
    // Of two classes or more: log odds, or logarithms, as probabilities.
    static void probabilities(std::span<const double> scores, std::span<double> shares) {
        if (scores.size() == 1) {
            shares[0] = Loss::sigmoid(-scores[0]);
            shares[1] = Loss::sigmoid(scores[0]);
            return;
        }
        double sum = 0;
        for (std::size_t c = 0; c < shares.size(); ++c) sum += shares[c] = elementary::exp(scores[c]);
        for (double& share : shares) share /= sum;
    }
    // The position of a scaling in ScaledRows; 0 is none.
    std::size_t scaling(const std::optional<std::string>& method, std::optional<std::uint64_t> warmup) {
        return method ? race.scaling(method_from(*method), warmup.value_or(kNeverFrozen)) : 0;
    }
    RaceScaling& found_scaling(const std::string& method, std::optional<std::uint64_t> warmup) {
        for (auto& s : race.state.scalings)
            if (s.method == method_from(method) && s.warmup == warmup.value_or(kNeverFrozen)) return s;
        throw nb::value_error("there is no such scaling");
    }
    void add(std::unique_ptr<TrainedExpert> expert) {
        if (expert->scales_target && !race.state.target) race.state.target.emplace(race.state.shares.memory > 0);
        race.state.experts.push_back(std::move(expert));
    }
};

nb::object copy_of(const RaceScaling& scaling) {
    return scaling.rank() ? nb::cast(RankScaling(*scaling.rank())) : nb::cast(ColumnScaling(*scaling.columns()));
}

RaceRows view(const Array2<double>& rows) { return {{rows.data(), rows.shape(0), rows.shape(1)}}; }

SparseRows<double> sparse(const Rows& rows) { return std::get<SparseRows<double>>(rows.batch); }

using Weights = std::optional<Array1<double>>;

const double* read_weights(const Weights& weights, std::size_t count) {
    if (weights && weights->shape(0) != count) throw nb::value_error("a weight for each row");
    return weights ? weights->data() : nullptr;
}

nb::object learn(BoundRace& h, Array2<double> rows, Array1<double> labels, Weights weights, bool want,
                 std::size_t known) {
    if (labels.shape(0) != rows.shape(0)) throw nb::value_error("rows and labels must have one length");
    std::vector<double> scores;
    std::size_t outputs = 1;
    h.write([&] {
        h.race.poll = Interrupts();
        RaceRows all = view(rows);
        all.weights = read_weights(weights, all.count);
        scores = h.race.learn(all, {labels.data(), labels.shape(0)}, want, known);
        outputs = h.race.state.outputs();
    });
    return want ? nb::cast(array_of(std::move(scores), {rows.shape(0), outputs})) : nb::none();
}

nb::object learn_sparse(BoundRace& h, nb::tuple rows, Array1<double> labels, Weights weights, bool want,
                        std::size_t known) {
    const Rows read = rows_from(rows);
    const SparseRows<double> view = sparse(read);
    if (labels.shape(0) != view.count) throw nb::value_error("rows and labels must have one length");
    std::vector<double> scores;
    std::size_t outputs = 1;
    h.write([&] {
        h.race.poll = Interrupts();
        scores = h.race.learn(view, {labels.data(), labels.shape(0)}, want, known, read_weights(weights, view.count));
        outputs = h.race.state.outputs();
    });
    return want ? nb::cast(array_of(std::move(scores), {view.count, outputs})) : nb::none();
}

nb::tuple score_sparse(const BoundRace& h, nb::tuple rows) {
    const Rows read = rows_from(rows);
    const SparseRows<double> view = sparse(read);
    std::vector<double> scores;
    std::size_t outputs = 1, classes = 0;
    h.read([&] {
        outputs = h.race.state.outputs();
        classes = h.race.state.classes();
        scores.resize(view.count * outputs);
        h.race.score(view, scores.data());
    });
    return nb::make_tuple(array_of(std::move(scores), {view.count, outputs}), classes);
}

nb::tuple score(const BoundRace& h, Array2<double> rows) {
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

Doubles score_expert(const BoundRace& h, std::size_t place, Array2<double> rows) {
    std::vector<double> scores;
    std::size_t outputs = 1;
    h.read([&] {
        outputs = h.race.state.outputs();
        scores.resize(rows.shape(0) * outputs);
        h.race.score_expert(h.expert(place), view(rows), scores.data());
    });
    return array_of(std::move(scores), {rows.shape(0), outputs});
}

// None if there is one score per class: a class may have been added since the caller checked.
std::optional<double> score_one(const BoundRace& h, Array1<double> x) {
    double found = 0;
    bool one = true;
    h.read([&] {
        one = h.race.state.outputs() == 1;
        if (one) h.race.score(RaceRows{{x.data(), 1, x.shape(0)}}, &found);
    });
    return one ? std::optional(found) : std::nullopt;
}

Doubles probabilities(const BoundRace& h, Array2<double> scores) {
    const std::size_t rows = scores.shape(0), outputs = scores.shape(1);
    std::size_t k = 1;
    h.read([&] {
        k = std::max<std::size_t>(h.race.state.classes(), 1);
        if (outputs != h.race.state.outputs())
            throw std::runtime_error("a class came between scores and probabilities");
    });
    std::vector<double> shares(rows * k, 1.0);
    for (std::size_t r = 0; r < rows && k > 1; ++r)
        BoundRace::probabilities({scores.data() + r * outputs, outputs}, {shares.data() + r * k, k});
    return array_of(std::move(shares), {rows, k});
}

nb::object relevance_of(const BoundRace& h, std::size_t place) {
    return h.read_with_gil([&]() -> nb::object {
        const auto* learner = dynamic_cast<const LearnerExpert*>(&h.expert(place));
        if (!learner || !learner->relevance) return nb::none();
        nb::list history;
        for (const auto& r : learner->relevance->history)
            history.append(nb::make_tuple(r.position, array_of(std::vector<double>(r.shares)), r.taken));
        return nb::make_tuple(array_of(std::vector<double>(learner->relevance->weights)), history);
    });
}

void set_relevance(BoundRace& h, std::size_t place, Array1<double> weights, nb::list history) {
    Relevance fresh;
    fresh.weights.assign(weights.data(), weights.data() + weights.size());
    for (const nb::handle item : history) {
        const auto line = nb::cast<nb::tuple>(item);
        const auto shares = nb::cast<Array1<double>>(line[1]);
        fresh.history.push_back({nb::cast<std::uint64_t>(line[0]),
                                 {shares.data(), shares.data() + shares.size()},
                                 nb::cast<bool>(line[2])});
        fresh.history.back().shares.resize(fresh.weights.size());
    }
    h.write([&] { h.expert<LearnerExpert>(place).relevance = std::move(fresh); });
}

nb::object learner_of(const BoundRace& h, std::size_t place) {
    return h.read_with_gil([&]() -> nb::object {
        if (const auto* python = dynamic_cast<const PythonExpert*>(&h.expert(place))) return python->learner();
        return nb::cast(new PyLearner(std::vector<nb::object>(), h.expert<LearnerExpert>(place).learner),
                        nb::rv_policy::take_ownership);
    });
}

nb::object mixture_of(const BoundRace& h) {
    return h.read_with_gil([&]() -> nb::object {
        if (const auto* mixture = std::get_if<Mixture>(&h.race.state.mixed)) return nb::cast(Mixture(*mixture));
        return nb::cast(NoveltyMixture(std::get<NoveltyMixture>(h.race.state.mixed)));
    });
}

// Parts of a merge: copies, which no other thread changes.
using Races = std::vector<const BoundRace*>;
using Codes = std::vector<std::vector<std::size_t>>;

std::vector<RacePart> parts_from(const Races& races, const std::vector<double>& shares, const Codes& codes) {
    if (races.empty() || shares.size() != races.size() || codes.size() != races.size())
        throw nb::value_error("a share and codes for each race");
    std::vector<RacePart> parts;
    for (std::size_t at = 0; at < races.size(); ++at) parts.push_back({&races[at]->race.state, shares[at], codes[at]});
    return parts;
}

}  // namespace

void bind_race(nb::module_& m) {
    using Py = BoundRace;
    nb::class_<Baseline>(m, "Baseline")
        .def("__init__", [](Baseline* self, int kind) { new (self) Baseline(static_cast<Baseline::Kind>(kind)); })
        .def(
            "learn",
            [](Baseline& baseline, Array1<double> labels, std::size_t classes) {
                ScaledRows rows;
                rows.count = labels.size();
                const std::size_t outputs = outputs_of(classes);
                std::vector<double> scores(rows.count * outputs);
                baseline.learn(rows, {labels.data(), rows.count}, classes, scores.data());
                return array_of(std::move(scores), {rows.count, outputs});
            },
            nb::arg("labels"), nb::arg("classes"),
            "Scores before each sample; labels: class codes below `classes`, or targets.");
    nb::class_<Py, EventCore>(m, "Race")
        .def(nb::init<const std::string&, std::size_t, double, std::size_t, double>(), nb::arg("task"),
             nb::arg("experts"), nb::arg("share"), nb::arg("memory"), nb::arg("quantile") = 0.0,
             "quantile: of the targets, which a regression predicts; 0: their centre.")
        // ---- experts, before `begin`; `scale` and `warmup` say by which scaling an expert sees its columns
        .def(
            "add_learner",
            [](Py& h, const PyLearner& fresh, std::optional<std::string> scale, std::optional<std::uint64_t> warmup,
               bool weighs, bool scales_target) {
                h.add(std::make_unique<LearnerExpert>(fresh.learner, h.scaling(scale, warmup), weighs, scales_target));
            },
            nb::arg("fresh"), nb::arg("scale").none(), nb::arg("warmup").none(), nb::arg("weighs"),
            nb::arg("scales_target"))
        .def(
            "add_python",
            [](Py& h, nb::object learner, std::optional<std::string> scale, std::optional<std::uint64_t> warmup,
               bool scales_target) {
                h.add(std::make_unique<PythonExpert>(std::move(learner), h.scaling(scale, warmup), scales_target));
            },
            nb::arg("learner"), nb::arg("scale").none(), nb::arg("warmup").none(), nb::arg("scales_target"))
        .def("add_baseline",
             [](Py& h, int kind) {
                 h.race.state.experts.push_back(std::make_unique<Baseline>(static_cast<Baseline::Kind>(kind)));
             })
        .def("add_line",
             [](Py& h, bool changes) {
                 h.race.state.experts.push_back(
                     std::make_unique<LinearExpert>(changes, h.scaling("standard", std::nullopt)));
             })
        .def(
            "set_columns",
            [](Py& h, std::size_t columns) {
                const std::size_t most = h.race.state.shares.memory / 4 / WideLinear::kWeightBytes;
                h.race.state.wide_columns.emplace(columns, std::max<std::size_t>(1, std::min(columns, most)));
            },
            "Rows are sparse, and experts that store points take them hashed.")
        .def("add_wide",
             [](Py& h, int kind) {
                 const std::size_t most = h.race.state.shares.memory / 4 / WideLinear::kWeightBytes;
                 h.race.state.experts.push_back(std::make_unique<WideLinear>(
                     static_cast<WideLinear::Kind>(kind), h.race.state.wide_columns->places(), most));
             })
        .def(
            "allow_class_means", [](Py& h) { h.race.state.means_scaling = h.scaling("standard", std::nullopt); },
            "Class means come as one more expert once there are many classes.")
        .def(
            "balance_classes", [](Py& h) { h.race.state.balance.on = true; },
            "Samples are weighed by how rare their class is.")
        .def("drop_class_means", [](Py& h) { h.write([&] { h.race.state.drop_class_means(); }); })
        .def_prop_ro("n_experts",
                     [](const Py& h) { return h.read_with_gil([&] { return h.race.state.experts.size(); }); })
        .def(
            "begin",
            [](Py& h, std::size_t width, std::size_t outside) { h.write([&] { h.race.begin(width, outside); }); },
            nb::arg("width"), nb::arg("outside") = 0)
        // ---- learning and scores
        .def("learn", &learn, nb::arg("rows"), nb::arg("labels"), nb::arg("weights").none(), nb::arg("want_scores"),
             nb::arg("classes") = 0)
        .def("learn", &learn_sparse, nb::arg("rows"), nb::arg("labels"), nb::arg("weights").none(),
             nb::arg("want_scores"), nb::arg("classes") = 0)
        .def("score", &score_sparse)
        .def("learn_one", [](Py& h, Array1<double> x, double label,
                             double weight) { h.learn_event({x.data(), x.shape(0)}, label, weight); })
        .def(
            "learn_batch",
            [](Py& h, Array2<double> rows, Array1<double> labels, Weights weights, std::size_t known,
               std::size_t passes) {
                if (labels.shape(0) != rows.shape(0)) throw nb::value_error("rows and labels must have one length");
                h.write([&] {
                    h.race.poll = Interrupts();
                    RaceRows all = view(rows);
                    all.weights = read_weights(weights, all.count);
                    h.race.learn_batch(all, {labels.data(), labels.shape(0)}, known, passes);
                });
            },
            nb::arg("rows"), nb::arg("labels"), nb::arg("weights").none(), nb::arg("known"), nb::arg("passes"),
            "passes: 0 for as many as help.")
        .def(
            "widen",
            [](Py& h, std::size_t width, std::size_t outside) { h.write([&] { h.race.widen(width, outside); }); },
            nb::arg("width"), nb::arg("outside") = 0)
        .def("score", &score)
        .def("score_one", &score_one)
        .def("score_expert", &score_expert, "Scores of one expert, in the units of the targets.")
        .def("probabilities", &probabilities)
        // ---- its parts, as copies
        .def("intervals", [](const Py& h) { return h.read_with_gil([&] { return h.race.state.errors; }); })
        .def_prop_ro("seen", [](const Py& h) { return h.read_with_gil([&] { return h.race.state.seen(); }); })
        .def_prop_ro("classes", [](const Py& h) { return h.read_with_gil([&] { return h.race.state.classes(); }); })
        .def_prop_ro("outputs", [](const Py& h) { return h.read_with_gil([&] { return h.race.state.outputs(); }); })
        .def_prop_ro("width",
                     [](const Py& h) {
                         return h.read_with_gil([&] {
                             return h.race.state.wide_columns ? h.race.state.wide_columns->width : h.race.state.width;
                         });
                     })
        .def_prop_ro(
            "is_wide", [](const Py& h) { return h.race.state.wide_columns.has_value(); },
            "Whether rows are sparse and are hashed for experts that store points.")
        .def_prop_ro("outside",
                     [](const Py& h) { return h.read_with_gil([&] { return h.race.state.shares.outside; }); })
        .def_prop_ro("memory_bytes", [](const Py& h) { return h.read_with_gil([&] { return h.race.state.bytes(); }); })
        .def_prop_ro(
            "sizes",
            [](const Py& h) {
                return h.read_with_gil([&] {
                    std::vector<std::size_t> sizes;
                    for (const auto& e : h.race.state.experts) {
                        const auto* trained = dynamic_cast<const TrainedExpert*>(e.get());
                        sizes.push_back(trained && e->runs() ? trained->size() : 0);
                    }
                    return sizes;
                });
            },
            "Stored points of each expert.")
        .def_prop_ro(
            "notes",
            [](const Py& h) {
                return h.read_with_gil([&] {
                    std::vector<std::string> notes;
                    for (const auto& e : h.race.state.experts) notes.push_back(e->note);
                    return notes;
                });
            },
            "Why each expert has left.")
        .def_prop_ro("resting",
                     [](const Py& h) {
                         return h.read_with_gil([&] {
                             std::vector<bool> resting;
                             for (const auto& e : h.race.state.experts) resting.push_back(e->rests);
                             return resting;
                         });
                     })
        .def_prop_ro(
            "shares",
            [](const Py& h) {
                return h.read_with_gil([&] {
                    nb::dict shares;
                    for (const auto& [place, bytes] : h.race.state.shares.shares) shares[nb::cast(place)] = bytes;
                    return shares;
                });
            },
            "Bytes by position of the expert, the best first.")
        .def_prop_ro("mixture", &mixture_of)
        .def("learner", &learner_of, "A copy of an expert's learner, or the Python object itself.")
        .def("relevance", &relevance_of)
        .def("line",
             [](const Py& h, std::size_t place) {
                 return h.read_with_gil([&] {
                     const auto& e = h.expert<LinearExpert>(place);
                     nb::object line = e.line ? nb::cast(LeastSquares(*e.line)) : nb::none();
                     return nb::make_tuple(line, e.first, e.last, array_of(std::vector<double>(e.row)));
                 });
             })
        .def("baseline_scores",
             [](const Py& h, std::size_t place) {
                 return h.read_with_gil([&] {
                     std::vector<double> scores(h.race.state.outputs());
                     ScaledRows row;
                     row.count = 1;
                     h.expert<Baseline>(place).score(row, h.race.state.classes(), scores.data());
                     return array_of(std::move(scores));
                 });
             })
        .def(
            "scaling",
            [](Py& h, const std::string& method, std::optional<std::uint64_t> warmup) {
                return h.read_with_gil([&] { return copy_of(h.found_scaling(method, warmup)); });
            },
            nb::arg("method"), nb::arg("warmup").none())
        .def_prop_ro(
            "target",
            [](const Py& h) {
                return h.read_with_gil([&] {
                    const auto& target = h.race.state.target;
                    return target ? std::optional(target->as_plain()) : std::nullopt;
                });
            },
            nb::rv_policy::move)
        .def(
            "snapshot",
            [](const Py& h) {
                return h.read_with_gil(
                    [&] { return nb::cast(new BoundRace(h.race.state), nb::rv_policy::take_ownership); });
            },
            "A copy of one moment.")
        .def("state",
             [](const Py& h) {
                 return h.read_with_gil([&] {
                     Archive archive;
                     const_cast<Py&>(h).race.state.visit(archive);  // saving changes nothing that is learned
                     return to_dict(std::move(archive));
                 });
             })
        .def(
            "restore",
            [](Py& h, nb::dict state) {
                Archive archive = from_dict(state);
                h.write([&] { h.race.state.visit(archive); });
            },
            "requires: the experts of the state, which have begun and learned nothing.")
        // ---- merging: scalings, target and column weights are set, then all else is united but the learners
        .def(
            "set_scaling",
            [](Py& h, const std::string& method, std::optional<std::uint64_t> warmup, const ColumnScaling& scaling) {
                h.write([&] { h.found_scaling(method, warmup).set(scaling); });
            },
            nb::arg("method"), nb::arg("warmup").none(), nb::arg("scaling"))
        .def("set_target",
             [](Py& h, const TargetScale& target) {
                 h.write([&] {
                     if (TargetScale* scale = h.race.state.target ? h.race.state.target->plain() : nullptr)
                         *scale = target;
                 });
             })
        .def(
            "set_scaling",
            [](Py& h, const std::string& method, std::optional<std::uint64_t> warmup, const RankScaling& scaling) {
                h.write([&] { h.found_scaling(method, warmup).set(scaling); });
            },
            nb::arg("method"), nb::arg("warmup").none(), nb::arg("scaling"))
        .def(
            "unite_targets",
            [](Py& h, const Races& races) {
                std::vector<const RobustTarget*> parts;
                for (const BoundRace* race : races)
                    if (race->race.state.target && race->race.state.target->robust())
                        parts.push_back(race->race.state.target->robust());
                h.write([&] {
                    if (h.race.state.target && h.race.state.target->robust())
                        h.race.state.target->robust()->unite(parts);
                });
            },
            "Where targets are measured robustly.")
        .def("set_relevance", &set_relevance)
        .def("set_learner",
             [](Py& h, std::size_t place, const PyLearner& core) {
                 h.write([&] { h.expert<LearnerExpert>(place).learner = PointLearner(core.learner); });
             })
        .def_static(
            "parts_that_ran",
            [](const Races& races, const std::vector<double>& shares) {
                return parts_that_ran(parts_from(races, shares, Codes(races.size())));
            },
            "The races in which each expert runs and has learned.")
        .def(
            "unite",
            [](Py& h, const Races& races, const std::vector<double>& shares, const Codes& codes, std::size_t classes) {
                const auto parts = parts_from(races, shares, codes);
                std::vector<std::pair<std::size_t, std::vector<std::size_t>>> found;
                h.write([&] {
                    for (auto& one : unite(h.race.state, parts, classes))
                        found.emplace_back(one.place, std::move(one.parts));
                });
                nb::list out;
                for (const auto& [place, ran] : found) out.append(nb::make_tuple(place, ran));
                return out;
            },
            "The experts that go on, and the races in which each has learned.")
        .def("resize_to_shares", [](Py& h) { h.write([&] { resize_to_shares(h.race.state); }); });
}

}  // namespace gristmill::bind
