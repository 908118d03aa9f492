// The learner over additive kernels as Python sees it: the same methods as Learner, so that the estimators need not know.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "bind/bind.hpp"
#include "bind/guarded.hpp"
#include "core/additive_learner.hpp"

namespace gristmill::bind {

namespace {

std::vector<Coordinate> coordinates_from(nb::handle specs) {
    std::vector<Coordinate> coordinates;
    for (const nb::handle item : specs) {
        const auto spec = nb::cast<nb::tuple>(item);
        const auto other = nb::cast<std::optional<std::size_t>>(spec[3]);
        coordinates.push_back({nb::cast<int>(spec[0]), nb::cast<double>(spec[1]), nb::cast<std::size_t>(spec[2]),
                               other.value_or(Coordinate::kNone), nb::cast<double>(spec[4])});
    }
    return coordinates;
}

// Lets Ctrl-C through during a long chunk, at most ten times a second.
struct Interrupts {
    std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
    void operator()() {
        const auto now = std::chrono::steady_clock::now();
        if (now - last < std::chrono::milliseconds(100)) return;
        last = now;
        nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
};

template <class T>
nb::object array(std::vector<T> values, std::vector<std::size_t> shape) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.data(), owner));
}

nb::object points_of(const Terms& terms) {
    std::vector<double> rows(terms.size() * terms.width());
    for (std::size_t s = 0; s < terms.size(); ++s) terms.row(s, rows.data() + s * terms.width());
    if (!terms.single()) return array(std::move(rows), {terms.size(), terms.width()});
    return array(std::vector<float>(rows.begin(), rows.end()), {terms.size(), terms.width()});
}

std::vector<std::int64_t> ids_of(const Terms& terms) {
    std::vector<std::int64_t> ids;
    for (std::size_t s = 0; s < terms.size(); ++s) ids.push_back(terms.id(s));
    return ids;
}

nb::dict state_of(const AdditiveLearner& learner);

class PyAdditiveLearner {
  public:
    PyAdditiveLearner(nb::handle coordinates, std::size_t width, bool single, bool skip_missing, nb::handle rule,
                      nb::handle budget, const std::string& task, std::size_t outputs, std::uint64_t seed)
        : guarded_(coordinates_from(coordinates), width, single, skip_missing, rule_from(rule, task), budget_from(budget),
                   task == "regression" ? Task::regression
                   : task == "novelty"  ? Task::novelty
                   : outputs > 1        ? Task::multiclass
                                        : Task::binary,
                   outputs, seed) {}

    PyAdditiveLearner(const PyAdditiveLearner&) = delete;

    template <class F>
    auto look(F f) const { return guarded_.as_looker(f); }
    template <class F>
    void change(F f) { guarded_.as_writer(f); }

    void check(const Rows& rows) const {
        const AdditiveLearner& learner = guarded_.constant();
        if (rows.width != learner.width())
            throw nb::value_error(("X has " + std::to_string(rows.width) + " features, but the model was started with " +
                                   std::to_string(learner.width())).c_str());
        learner.check(rows.batch);
    }

    nb::object learn(nb::handle source, Array1<double> labels, std::optional<Array1<double>> weights, bool want) {
        const Rows rows = rows_from(source);
        check(rows);
        const std::size_t count = batch_count(rows.batch);
        const std::span<const double> y(labels.data(), labels.shape(0));
        const std::span<const double> w = weights ? std::span(weights->data(), weights->shape(0)) : std::span<const double>();
        std::vector<double> scores;
        guarded_.as_writer([&](AdditiveLearner& learner) {
            if (want) scores.resize(count * learner.outputs());
            learner.poll = Interrupts();
            learner.learn(rows.batch, y, w, want ? scores.data() : nullptr);
        });
        if (!want) return nb::none();
        return nb::cast(doubles(scores.data(), {count, scores.size() / std::max<std::size_t>(count, 1)}));
    }
    void learn_one(Array1<double> x, double label, double weight) {
        const Rows rows = one(x);
        guarded_.as_writer([&](AdditiveLearner& learner) { learner.learn(rows.batch, {&label, 1}, {&weight, 1}, nullptr); });
    }
    double score_one(Array1<double> x) const {
        const Rows rows = one(x);
        double score = 0;
        guarded_.as_reader([&](const AdditiveLearner& learner) { learner.score(rows.batch, &score); });
        return score;
    }
    Doubles score(nb::handle source) const {
        const Rows rows = rows_from(source);
        check(rows);
        const std::size_t count = batch_count(rows.batch);
        std::vector<double> scores;
        guarded_.as_reader([&](const AdditiveLearner& learner) {
            scores.resize(count * learner.outputs());
            learner.score(rows.batch, scores.data());
        });
        return doubles(scores.data(), {count, scores.size() / std::max<std::size_t>(count, 1)});
    }
    Doubles components(nb::handle source) const {
        const Rows rows = rows_from(source);
        check(rows);
        const std::size_t count = batch_count(rows.batch), coordinates = guarded_.constant().sum().coordinates().size();
        std::vector<double> parts;
        guarded_.as_reader([&](const AdditiveLearner& learner) {
            parts.resize(count * learner.outputs() * coordinates);
            learner.components(rows.batch, parts.data());
        });
        return doubles(parts.data(), {count, parts.size() / std::max<std::size_t>(count * coordinates, 1), coordinates});
    }

    Doubles dual_coef() const {
        return look([](const AdditiveLearner& learner) {
            const std::size_t n = learner.terms().size(), outputs = learner.outputs();
            std::vector<double> coefs;
            for (std::size_t s = 0; s < n; ++s)
                for (std::size_t o = 0; o < outputs; ++o) coefs.push_back(learner.coef(s, o));
            return doubles(coefs.data(), {n, outputs});
        });
    }
    nb::object points() const { return look([](const AdditiveLearner& learner) { return points_of(learner.terms()); }); }
    std::vector<std::int64_t> ids() const { return look([](const AdditiveLearner& l) { return ids_of(l.terms()); }); }
    std::vector<std::size_t> order() const {  // slots by age, oldest first
        return look([](const AdditiveLearner& learner) {
            const Terms& terms = learner.terms();
            std::vector<std::size_t> slots;
            if (terms.size() == 0) return slots;
            for (std::size_t s = terms.oldest(); s != Terms::kNone; s = terms.newer(s)) slots.push_back(s);
            return slots;
        });
    }
    // Dense doubles and no Python inside: an event can take the short way.
    bool is_plain() const {
        return !guarded_.constant().terms().single() && !std::holds_alternative<Foreign>(guarded_.constant().rule());
    }

    nb::dict state() const { return look([](const AdditiveLearner& learner) { return state_of(learner); }); }
    void restore(nb::dict state);
    const AdditiveLearner& constant() const { return guarded_.constant(); }

  private:
    Rows one(const Array1<double>& x) const {
        Rows rows;
        rows.batch = DenseRows<double>{x.data(), 1, x.shape(0)};
        rows.width = x.shape(0);
        check(rows);
        return rows;
    }
    Guarded<AdditiveLearner> guarded_;
};

nb::dict state_of(const AdditiveLearner& learner) {
    const auto now = learner.state();
    const Terms& terms = learner.terms();
    const std::size_t n = terms.size(), outputs = learner.outputs(), coordinates = learner.sum().coordinates().size();
    std::vector<double> coefs;
    for (std::size_t o = 0; o < outputs; ++o)
        for (std::size_t s = 0; s < n; ++s) coefs.push_back(terms.coefs(s)[o]);
    std::vector<std::uint8_t> shapes;
    std::vector<std::int64_t> shape_ends, odd_at;
    for (std::size_t tree = 0; tree < outputs * coordinates; ++tree) {
        const auto shape = learner.sum().shape(tree / coordinates, tree % coordinates);
        shapes.insert(shapes.end(), shape.begin(), shape.end());
        shape_ends.push_back(static_cast<std::int64_t>(shapes.size()));
    }
    std::vector<double> odd_values;
    for (const auto& odd : learner.odd_entries()) {
        odd_at.insert(odd_at.end(), {static_cast<std::int64_t>(odd.tree), static_cast<std::int64_t>(odd.entry)});
        odd_values.insert(odd_values.end(), {odd.coef, odd.rest});
    }
    nb::dict out;
    out["points"] = points_of(terms);
    out["ids"] = array(ids_of(terms), {n});
    out["coef"] = doubles(coefs.data(), {outputs, n});
    const double scalars[] = {now.scale, now.norm2, now.doubt, now.floor};
    out["scalars"] = doubles(scalars, {4});
    const auto& m = now.mutables;
    out["counters"] = array(std::vector<std::uint64_t>{m.seen, m.steps, m.random.seed, m.random.counter}, {4});
    out["rule"] = doubles(now.rule.data(), {now.rule.size()});
    out["intercept"] = doubles(now.intercept.data(), {outputs});
    const std::size_t bytes = shapes.size(), trees = shape_ends.size(), odds = odd_at.size() / 2;
    out["shapes"] = array(std::move(shapes), {bytes});
    out["shape_ends"] = array(std::move(shape_ends), {trees});
    out["odd_at"] = array(std::move(odd_at), {odds, 2});
    out["odd_values"] = doubles(odd_values.data(), {odds, 2});
    return out;
}

void PyAdditiveLearner::restore(nb::dict state) {
    auto refuse = [](const char* what) { throw nb::value_error(what); };
    const Rows rows = rows_from(state["points"]);
    check(rows);
    const auto* dense = std::get_if<DenseRows<double>>(&rows.batch);
    const auto* floats = std::get_if<DenseRows<float>>(&rows.batch);
    if (!dense && !floats) refuse("the saved points are not rows of numbers");
    std::vector<double> widened;
    if (floats) widened.assign(floats->data, floats->data + floats->count * floats->width);
    const double* points = dense ? dense->data : widened.data();
    const auto ids = nb::cast<Array1<std::int64_t>>(state["ids"]), ends = nb::cast<Array1<std::int64_t>>(state["shape_ends"]);
    const auto coef = nb::cast<Array2<double>>(state["coef"]), odd_values = nb::cast<Array2<double>>(state["odd_values"]);
    const auto odd_at = nb::cast<Array2<std::int64_t>>(state["odd_at"]);
    const auto scalars = nb::cast<Array1<double>>(state["scalars"]), rule = nb::cast<Array1<double>>(state["rule"]),
               intercept = nb::cast<Array1<double>>(state["intercept"]);
    const auto counters = nb::cast<Array1<std::uint64_t>>(state["counters"]);
    const auto bytes = nb::cast<Array1<std::uint8_t>>(state["shapes"]);
    AdditiveLearner& learner = guarded_.unguarded();
    const std::size_t n = ids.shape(0), outputs = learner.outputs(), trees = ends.shape(0);
    if (learner.terms().size() != 0) refuse("only a fresh learner can be restored");
    if (batch_count(rows.batch) != n || coef.shape(0) != outputs || coef.shape(1) != n || scalars.shape(0) != 4 ||
        counters.shape(0) != 4 || odd_at.shape(1) != 2 || odd_values.shape(1) != 2 || odd_at.shape(0) != odd_values.shape(0))
        refuse("the saved arrays do not fit together");
    constexpr std::uint64_t longest = std::uint64_t{1} << 62;  // no stream is that long
    if (counters.data()[0] > longest || counters.data()[1] > counters.data()[0])
        refuse("the saved counters are not those of a stream");
    auto finite = [](const auto& a) {
        return std::all_of(a.data(), a.data() + a.size(), [](double x) { return std::isfinite(x); });
    };
    if (!finite(coef) || !finite(scalars) || !finite(rule) || !finite(intercept) || !finite(odd_values) || scalars.data()[0] == 0)
        refuse("a saved number is not finite");
    std::vector<std::int64_t> sorted(ids.data(), ids.data() + n);
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end() || (n > 0 && sorted[0] < 0) ||
        (n > 0 && static_cast<std::uint64_t>(sorted.back()) >= counters.data()[0]))
        refuse("the saved stream positions are not distinct positions of the stream");
    std::vector<std::vector<std::uint8_t>> shapes;
    for (std::size_t t = 0, from = 0; t < trees; ++t) {
        const auto to = static_cast<std::size_t>(ends.data()[t]);
        if (to < from || to > bytes.shape(0)) refuse("the saved trees are damaged");
        shapes.emplace_back(bytes.data() + from, bytes.data() + to);
        from = to;
    }
    std::vector<std::vector<double>> coefs;
    for (std::size_t o = 0; o < outputs; ++o) coefs.emplace_back(coef.data() + o * n, coef.data() + (o + 1) * n);
    std::vector<AdditiveLearner::Odd> odd;
    for (std::size_t k = 0; k < odd_at.shape(0); ++k)
        odd.push_back({static_cast<std::size_t>(odd_at.data()[2 * k]), static_cast<std::size_t>(odd_at.data()[2 * k + 1]),
                       odd_values.data()[2 * k], odd_values.data()[2 * k + 1]});
    const double* s = scalars.data();
    const std::uint64_t* c = counters.data();
    learner.restore({s[0], s[1], s[2], s[3], {.seen = c[0], .steps = c[1], .random = {c[2], c[3]}}, {rule.data(), rule.data() + rule.shape(0)},
                      {intercept.data(), intercept.data() + intercept.shape(0)}},
                     points, {ids.data(), n}, coefs, shapes, odd);
}

}  // namespace

void bind_additive(nb::module_& m) {
    using Py = PyAdditiveLearner;
    nb::class_<Py>(m, "AdditiveLearner")
        .def(nb::init<nb::handle, std::size_t, bool, bool, nb::handle, nb::handle, const std::string&, std::size_t,
                      std::uint64_t>(),
             nb::arg("coordinates"), nb::arg("width"), nb::arg("single"), nb::arg("skip_missing"), nb::arg("rule"), nb::arg("budget"),
             nb::arg("task"), nb::arg("outputs"), nb::arg("seed"))
        .def("learn", &Py::learn, nb::arg("rows"), nb::arg("labels"), nb::arg("weights").none(), nb::arg("want_scores"))
        .def("learn_one", &Py::learn_one)
        .def("score_one", &Py::score_one)
        .def("score", &Py::score)
        .def("components", &Py::components)
        .def("compile", [](Py& l) { l.change([](AdditiveLearner& learner) { learner.compile(); }); })
        .def("check", [](const Py& l, nb::handle source) { l.check(rows_from(source)); })
        .def("add_class", [](Py& l) { l.change([](AdditiveLearner& learner) { learner.add_class(); }); })
        .def("state", &Py::state)
        .def("restore", &Py::restore)
        .def("dual_coef", [](const Py& l) { return nb::make_tuple(l.dual_coef(), l.order()); })
        .def("intercept", [](const Py& l) {
            return l.look([](const AdditiveLearner& learner) {
                return doubles(learner.intercept().data(), {learner.outputs()});
            });
        })
        .def("points", [](const Py& l) { return nb::make_tuple(l.points(), l.order()); })
        .def("ids", [](const Py& l) { return nb::make_tuple(l.ids(), l.order()); })
        .def("rule_state", [](const Py& l) { return l.look([](const AdditiveLearner& x) { return x.rule_state(); }); })
        .def("budget_state", [](const Py&) { return std::vector<double>(); })
        .def_prop_ro("size", [](const Py& l) { return l.look([](const AdditiveLearner& x) { return x.terms().size(); }); })
        .def_prop_ro("outputs", [](const Py& l) { return l.constant().outputs(); })
        .def_prop_ro("seen", [](const Py& l) { return l.look([](const AdditiveLearner& x) { return x.seen(); }); })
        .def_prop_ro("width", [](const Py& l) { return l.constant().width(); })
        .def_prop_ro("is_sparse", [](const Py&) { return false; })
        .def_prop_ro("is_single", [](const Py& l) { return l.constant().terms().single(); })
        .def_prop_ro("is_plain", &Py::is_plain)
        .def_prop_ro("is_compiled", [](const Py& l) { return l.look([](const AdditiveLearner& x) { return x.compiled(); }); })
        .def_prop_ro("memory_bytes", [](const Py& l) { return l.look([](const AdditiveLearner& x) { return x.bytes(); }); })
        .def_prop_ro("norm2", [](const Py& l) { return l.look([](const AdditiveLearner& x) { return x.norm2(); }); })
        .def_prop_ro("margin", [](const Py& l) {
            return l.look([](const AdditiveLearner& x) { return novelty_margin(x.rule()); });
        });
}

}  // namespace gristmill::bind
