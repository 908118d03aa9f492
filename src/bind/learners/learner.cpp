// Bindings of the learners over stored points, spans, trees and explicit weights.
#include "bind/learners/bound_learner.hpp"
#include "core/adapt/rank_scaling.hpp"
#include "core/additive/widening.hpp"
#include "core/features/weights.hpp"

namespace gristmill::bind {

namespace {

bool is_foreign(nb::handle kernel) { return PyCallable_Check(kernel.ptr()); }

// Those of the parts that are written in Python.
std::vector<nb::object> python_parts(std::initializer_list<nb::handle> sources) {
    std::vector<nb::object> parts;
    for (const nb::handle source : sources)
        if (!nb::isinstance<nb::dict>(source) && !nb::isinstance<nb::list>(source) &&
            !nb::isinstance<nb::tuple>(source))
            parts.push_back(nb::borrow(source));
    return parts;
}

template <class H>
Doubles score_of(const BoundLearner<Learner<H>>& bound, nb::handle source, std::size_t& classes) {
    const Rows rows = bound.checked(source);
    const std::size_t count = batch_count(rows.batch);
    std::vector<double> scores;
    std::size_t outputs = 0;
    bound.read([&] {
        outputs = bound.learner.outputs();
        classes = bound.learner.classes();
        scores.resize(count * outputs);
        bound.learner.score(rows.batch, scores.data());
    });
    return array_of(std::move(scores), {count, outputs});
}

// The gradient (rows, outputs, features), and the number of classes at that time.
template <class H>
nb::tuple gradient_of(const BoundLearner<Learner<H>>& bound, nb::handle source) {
    const Rows rows = bound.checked(source);
    const std::size_t count = batch_count(rows.batch);
    std::unique_ptr<double[]> gradient;  // not zeroed: it may be large, and every number is written
    std::size_t outputs = 0, classes = 0;
    bound.read([&] {
        outputs = bound.learner.outputs();
        classes = bound.learner.classes();
        gradient.reset(new double[count * outputs * bound.learner.width()]);
        bound.learner.gradient(rows.batch, gradient.get());
    });
    const std::size_t shape[] = {count, outputs, bound.learner.width()};
    nb::capsule owner(gradient.get(), [](void* p) noexcept { delete[] static_cast<double*>(p); });
    return nb::make_tuple(Doubles(gradient.release(), 3, shape, owner), classes);
}

// None if there is one score per class: a class may have been added since the caller checked.
template <class H>
std::optional<double> score_one(const BoundLearner<Learner<H>>& bound, Array1<double> x) {
    const Rows rows = bound.checked(x);
    std::vector<double> scores;
    bound.read([&] {
        scores.resize(bound.learner.outputs());
        bound.learner.score(rows.batch, scores.data());
    });
    return scores.size() == 1 ? std::optional(scores[0]) : std::nullopt;
}

// The methods of the learners in this file.
template <class H>
auto bind_loop(nb::module_& m, const char* name) {
    using L = Learner<H>;
    using Py = BoundLearner<L>;
    auto c = bind_bound_learner<L>(m, name);
    c.def("score",
          [](const Py& h, nb::handle source) {
              std::size_t classes = 0;
              auto scores = score_of(h, source, classes);
              return nb::make_tuple(scores, classes);
          })
        .def("score_one", &score_one<H>)
        .def("intervals", [](const Py& h) { return h.read_with_gil([&] { return h.learner.intervals(); }); })
        .def("report_raw_scores", [](Py& h) { h.write([&] { h.learner.report_raw_scores(); }); })
        .def("balance_classes", [](Py& h) { h.write([&] { h.learner.balance_classes(); }); })
        .def("intercept",
             [](const Py& h) {
                 return h.read_with_gil([&] {
                     std::vector<double> b;
                     for (std::size_t o = 0; o < h.learner.outputs(); ++o) b.push_back(h.learner.shown_intercept(o));
                     return array_of(std::move(b));
                 });
             })
        .def(
            "set_targets", [](Py& h, std::size_t targets) { h.write([&] { h.learner.set_targets(targets); }); },
            nb::arg("targets"))
        .def_prop_ro("targets", [](const Py& h) { return h.read_with_gil([&] { return h.learner.targets(); }); })
        .def("rule_state", [](const Py& h) { return h.read_with_gil([&] { return state_of(h.learner.rule()); }); })
        .def("budget_state", [](const Py& h) { return h.read_with_gil([&] { return state_of(h.learner.budget()); }); })
        .def_prop_ro("outputs", [](const Py& h) { return h.read_with_gil([&] { return h.learner.outputs(); }); })
        .def_prop_ro("seen", [](const Py& h) { return h.read_with_gil([&] { return h.learner.seen(); }); })
        .def_prop_ro("norm2",
                     [](const Py& h) { return h.read_with_gil([&] { return h.learner.hypothesis().norm2(); }); })
        .def_prop_ro("margin", [](const Py& h) { return h.read_with_gil([&] { return h.learner.margin(); }); });
    if constexpr (requires(const L& l) { stored(l); }) {
        // Values by slot together with the slots by age, under one lock, so that both are consistent.
        c.def("dual_coef",
              [](const Py& h) {
                  return h.read_with_gil(
                      [&] { return nb::make_tuple(coefs_of(stored(h.learner)), by_age(stored(h.learner))); });
              })
            .def("points",
                 [](const Py& h) {
                     return h.read_with_gil(
                         [&] { return nb::make_tuple(points_of_store(stored(h.learner)), by_age(stored(h.learner))); });
                 })
            .def("ids",
                 [](const Py& h) {
                     return h.read_with_gil(
                         [&] { return nb::make_tuple(ids_of(stored(h.learner)), by_age(stored(h.learner))); });
                 })
            .def_prop_ro("size", [](const Py& h) { return h.read_with_gil([&] { return stored(h.learner).size(); }); })
            .def_prop_ro("is_sparse", [](const Py& h) { return is_sparse(stored(h.learner)); })
            .def_prop_ro("is_single", [](const Py& h) { return is_single(stored(h.learner)); });
    }
    c.def(
        "points_within",
        [](const Py& h, std::size_t bytes, std::size_t outputs) { return h.learner.points_within(bytes, outputs); },
        nb::arg("bytes"), nb::arg("outputs"));
    if constexpr (requires(const L& l, const Batch& batch, double* out) { l.gradient(batch, out); })
        c.def("gradient", &gradient_of<H>);
    if constexpr (requires(L& l, std::span<const double> numbers) { l.rescale_targets(numbers, numbers); })
        c.def(
            "rescale_targets",
            [](Py& h, Array1<double> factors, Array1<double> shifts) {
                const std::size_t n = h.learner.targets();
                bool fine = h.learner.task() == Task::regression && factors.shape(0) == n && shifts.shape(0) == n;
                for (std::size_t o = 0; fine && o < n; ++o)
                    fine = factors.data()[o] > 0 && std::isfinite(factors.data()[o]) && std::isfinite(shifts.data()[o]);
                if (!fine)
                    throw nb::value_error(
                        "targets of a regression can be measured otherwise, by a factor above 0 and a shift each");
                h.write([&] { h.learner.rescale_targets({factors.data(), n}, {shifts.data(), n}); });
            },
            nb::arg("factors"), nb::arg("shifts"));
    if constexpr (requires(L& l, const RowChange& change) { l.change_points(change); })
        c.def(
            "follow_ranks",
            [](Py& h, const RankScaling& scaling, Array1<std::int64_t> places, Array1<double> weights) {
                const std::size_t width = h.learner.width();
                if (places.shape(0) > scaling.width() || weights.shape(0) != width)
                    throw nb::value_error("a place a column, and a weight a column of the rows");
                for (std::size_t c = 0; c < places.shape(0); ++c)
                    if (places.data()[c] < 0 || static_cast<std::size_t>(places.data()[c]) >= width)
                        throw nb::value_error("there is no such column");
                h.write([&] {
                    h.learner.change_points([&](double* row) {
                        for (std::size_t c = 0; c < places.shape(0); ++c) {
                            const auto at = static_cast<std::size_t>(places.data()[c]);
                            row[at] = weights.data()[at] * scaling.followed(c, row[at] / weights.data()[at]);
                        }
                    });
                });
            },
            nb::arg("scaling"), nb::arg("places"), nb::arg("weights"),
            "Stored points follow the last renewal of the maps; places: of the scaled columns in a row.");
    if constexpr (requires(const L& l) { stored(l).label(0, 0); })
        c.def("labels", [](const Py& h) {
            return h.read_with_gil(
                [&] { return nb::make_tuple(labels_of(stored(h.learner)), by_age(stored(h.learner))); });
        });
    if constexpr (std::is_same_v<H, Expansion>)
        c.def(
            "relearn",
            [](Py& h, Array1<double> factors, std::size_t passes, double slack) {
                RelearnResult found;
                h.write([&] {
                    h.learner.poll = Interrupts();
                    found = h.learner.relearn({factors.data(), factors.shape(0)}, passes, slack);
                });
                return nb::make_tuple(found.before, found.after, found.accepted);
            },
            nb::arg("factors"), nb::arg("passes"), nb::arg("slack"));
    if constexpr (requires(L& l) { l.hypothesis().points_within(0, 0); })
        c.def("resize", [](Py& h, std::size_t bytes) { h.write([&] { h.learner.resize(bytes); }); }, nb::arg("bytes"));
    if constexpr (requires(const L& l) { l.widened(std::size_t{}); })
        c.def(
            "widened",
            [](const Py& h, std::size_t width) {
                auto wide = h.read_with_gil([&] { return std::make_unique<Py>(h.parts, h.learner.widened(width)); });
                return nb::cast(wide.release(), nb::rv_policy::take_ownership);
            },
            nb::arg("width"));
    if constexpr (H::kSupports.partners)
        c.def_prop_ro("extra_rows", [](const Py& h) {
            return h.read_with_gil([&] { return h.learner.hypothesis().rows_for_partners(); });
        });
    if constexpr (requires(const H& h, const Batch& batch) { h.make_revisit_lookahead(batch, std::int64_t{}); })
        c.def(
            "revisit",
            [](Py& h, nb::handle source, ArrayN<double> labels, std::optional<Array1<double>> weights,
               std::int64_t start) {
                const Rows rows = h.checked(source);
                const std::span<const double> w =
                    weights ? std::span(weights->data(), weights->shape(0)) : std::span<const double>();
                h.write([&] {
                    h.learner.poll = Interrupts();
                    h.learner.revisit(rows.batch, {labels.data(), labels.size()}, w, start);
                });
            },
            nb::arg("rows"), nb::arg("labels"), nb::arg("weights").none(), nb::arg("start"));
    return c;
}

// A learner over stored points, or in their span if the budget needs it.
nb::object make_learner(nb::handle kernel, nb::handle rule, nb::handle budget, const std::string& task,
                        std::size_t width, bool sparse, bool single, bool average, std::uint64_t seed) {
    const bool foreign = is_foreign(kernel);
    Budget how = budget_from(budget);
    const bool spans = needs_of(how).span;
    auto make = [&]<class H>(H*) {
        return nb::cast(
            new BoundLearner<Learner<H>>(python_parts({kernel, rule, budget}), rule_from(rule, task), std::move(how),
                                         task_from(task), average, seed, foreign ? Kernel() : kernel_from(kernel),
                                         foreign ? foreign_points(kernel) : make_points(width, sparse, single)),
            nb::rv_policy::take_ownership);
    };
    return spans ? make(static_cast<ProjectedExpansion*>(nullptr)) : make(static_cast<Expansion*>(nullptr));
}

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

void bind_trees(nb::module_& m) {
    using Py = BoundLearner<Learner<Trees>>;
    bind_loop<Trees>(m, "TreeLearner")
        .def(
            "__init__",
            [](Py* self, nb::handle coordinates, std::size_t width, bool single, bool skip_missing, nb::handle rule,
               nb::handle budget, const std::string& task, std::uint64_t seed) {
                new (self) Py(python_parts({rule, budget}), rule_from(rule, task), budget_from(budget), task_from(task),
                              false, seed, coordinates_from(coordinates), width, single, skip_missing);
            },
            nb::arg("coordinates"), nb::arg("width"), nb::arg("single"), nb::arg("skip_missing"), nb::arg("rule"),
            nb::arg("budget"), nb::arg("task"), nb::arg("seed"))
        .def("components",
             [](const Py& h, nb::handle source) {
                 const Rows rows = h.checked(source);
                 const std::size_t count = batch_count(rows.batch),
                                   coordinates = h.learner.hypothesis().sum().coordinates().size();
                 std::vector<double> parts;
                 std::size_t outputs = 0;
                 h.read([&] {
                     outputs = h.learner.outputs();
                     parts.resize(count * outputs * coordinates);
                     h.learner.hypothesis().components(rows.batch, parts.data());
                 });
                 return array_of(std::move(parts), {count, outputs, coordinates});
             })
        .def(
            "take_widened", [](Py& h, Py& narrow) { narrow.write([&] { take_widened(h.learner, narrow.learner); }); },
            nb::arg("narrow"))
        .def("compile", [](Py& h) { h.write([&] { h.learner.hypothesis().compile(); }); })
        .def_prop_ro("is_compiled", [](const Py& h) {
            return h.read_with_gil([&] { return h.learner.hypothesis().sum().compiled(); });
        });
}

void bind_weights(nb::module_& m) {
    using Py = BoundLearner<Learner<Weights>>;
    bind_loop<Weights>(m, "WeightLearner")
        .def(
            "__init__",
            [](Py* self, std::size_t width, nb::handle rule, const std::string& task, bool average) {
                new (self)
                    Py(python_parts({rule}), rule_from(rule, task), Unbounded{}, task_from(task), average, 0, width);
            },
            nb::arg("width"), nb::arg("rule"), nb::arg("task"), nb::arg("average"))
        .def("coef", [](const Py& h) {
            return h.read_with_gil([&] {
                const Weights& w = h.learner.hypothesis();
                std::vector<double> values;
                for (std::size_t o = 0; o < w.outputs(); ++o)
                    for (std::size_t i = 0; i < w.width(); ++i) values.push_back(w.shown_coef(o, i));
                return array_of(std::move(values), {w.outputs(), w.width()});
            });
        });
}

}  // namespace

void bind_learner(nb::module_& m) {
    bind_loop<Expansion>(m, "PointLearner");
    bind_loop<ProjectedExpansion>(m, "SpanLearner");
    bind_trees(m);
    bind_weights(m);
    m.def("learner", &make_learner, nb::arg("kernel"), nb::arg("rule"), nb::arg("budget"), nb::arg("task"),
          nb::arg("width"), nb::arg("sparse"), nb::arg("single"), nb::arg("average"), nb::arg("seed"));
}

}  // namespace gristmill::bind
