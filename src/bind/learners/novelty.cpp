// The detector of anomalies, as Python sees it.
#include "bind/bind.hpp"
#include "bind/learners/bound_learner.hpp"
#include "core/novelty/detector.hpp"

namespace gristmill::bind {

namespace {

using novelty::Detector;
using Py = BoundLearner<Detector>;

Doubles scores_of(const Py& bound, const Rows& rows) {
    std::vector<double> scores(batch_count(rows.batch));
    bound.read([&] { bound.learner.score(rows.batch, scores.data()); });
    const std::size_t count = scores.size();
    return array_of(std::move(scores), {count, 1});
}

nb::tuple explain(const Py& bound, nb::handle source) {
    const Rows rows = bound.checked(source);
    const std::size_t count = batch_count(rows.batch), width = bound.learner.width();
    std::vector<double> columns(count * width), usual(count * width), views(count * Detector::kViews);
    bound.read([&] { bound.learner.explain(rows.batch, columns.data(), usual.data(), views.data()); });
    return nb::make_tuple(array_of(std::move(columns), {count, width}), array_of(std::move(usual), {count, width}),
                          array_of(std::move(views), {count, Detector::kViews}));
}

}  // namespace

void bind_novelty(nb::module_& m) {
    bind_bound_learner<Detector>(m, "Detector")
        .def(
            "__init__",
            [](Py* self, std::size_t width, std::size_t memory, double rate, std::uint64_t seed, std::size_t outside) {
                new (self) Py({}, width, memory, rate, seed, outside);
            },
            nb::arg("width"), nb::arg("memory"), nb::arg("rate"), nb::arg("seed"), nb::arg("outside") = 0)
        .def("score", [](const Py& bound,
                         nb::handle source) { return nb::make_tuple(scores_of(bound, bound.checked(source)), 0); })
        .def("score_one",
             [](const Py& bound, Array1<double> x) { return scores_of(bound, bound.checked(x)).data()[0]; })
        .def("explain", &explain, "Part of each column in the distance, usual values, and views, by row.")
        .def(
            "widen",
            [](Py& bound, std::size_t width, std::size_t outside) {
                bound.write([&] { bound.learner.widen(width, outside); });
            },
            nb::arg("width"), nb::arg("outside") = 0)
        .def_static(
            "merged",
            [](const std::vector<const Py*>& parts, const std::vector<double>& shares, std::size_t memory,
               std::size_t outside) {
                std::vector<Detector> copies;
                copies.reserve(parts.size());
                for (const Py* part : parts) part->read([&] { copies.push_back(part->learner); });
                std::vector<const Detector*> found;
                for (const Detector& copy : copies) found.push_back(&copy);
                if (found.empty() || shares.size() != found.size()) throw nb::value_error("as many shares as parts");
                return new Py({}, Detector::merged(found, shares, memory, outside));
            },
            nb::arg("parts"), nb::arg("shares"), nb::arg("memory"), nb::arg("outside") = 0,
            nb::rv_policy::take_ownership)
        .def_prop_ro("outside",
                     [](const Py& bound) { return bound.read_with_gil([&] { return bound.learner.plan().outside; }); })
        .def_prop_ro("plan",
                     [](const Py& bound) {
                         return bound.read_with_gil([&] {
                             const novelty::Plan& plan = bound.learner.plan();
                             nb::dict found;
                             found["events"] = plan.events, found["first"] = plan.first, found["trees"] = plan.trees;
                             found["window"] = plan.window, found["as_bytes"] = plan.as_bytes;
                             return found;
                         });
                     })
        .def_prop_ro("outputs", [](const Py&) { return 1; })
        .def_prop_ro("seen", [](const Py& bound) { return bound.read_with_gil([&] { return bound.learner.seen(); }); })
        .def_prop_ro("size", [](const Py& bound) { return bound.read_with_gil([&] { return bound.learner.size(); }); })
        .def_prop_ro("margin",
                     [](const Py& bound) { return bound.read_with_gil([&] { return bound.learner.margin(); }); })
        .def_prop_ro("alarms",
                     [](const Py& bound) { return bound.read_with_gil([&] { return bound.learner.alarms(); }); });
}

}  // namespace gristmill::bind
