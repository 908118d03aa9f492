// Calibration and prediction intervals alone: for learners implemented in Python, and replayed along the errors of a stream.
#include "core/adapt/intervals.hpp"
#include "bind/archive.hpp"
#include "bind/bind.hpp"
#include "core/adapt/calibration.hpp"

namespace gristmill::bind {

namespace {

Doubles halves(const Intervals& intervals, double coverage) {
    std::vector<double> out;
    for (std::size_t o = 0; o < intervals.targets(); ++o) out.push_back(intervals.half(o, coverage));
    return array_of(std::move(out));
}

// The half widths before each event is learned; events of weight 0 are skipped.
Doubles follow(Intervals& intervals, Array2<double> predicted, Array2<double> targets,
               std::optional<Array1<double>> weights, double coverage) {
    const std::size_t rows = predicted.shape(0), columns = intervals.targets();
    if (predicted.shape(1) != columns || targets.shape(1) != columns || targets.shape(0) != rows ||
        (weights && weights->shape(0) != rows))
        throw nb::value_error("answers, targets and weights do not fit the intervals");
    std::vector<double> out;
    out.reserve(rows * columns);
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t o = 0; o < columns; ++o) out.push_back(intervals.half(o, coverage));
        if (!weights || weights->data()[r] != 0)
            intervals.learn({predicted.data() + r * columns, columns}, targets.data() + r * columns);
    }
    return array_of(std::move(out), {rows, columns});
}

}  // namespace

void bind_calibration(nb::module_& m) {
    nb::class_<Calibration>(m, "Calibration")
        .def(nb::init<bool>(), nb::arg("shifts") = true)
        .def("learn", [](Calibration& c, Array1<double> scores,
                         std::size_t label) { c.learn({scores.data(), scores.shape(0)}, label); })
        .def("probabilities",
             [](const Calibration& c, Array2<double> scores, std::size_t classes) {
                 std::vector<double> shares(scores.shape(0) * classes);
                 for (std::size_t r = 0; r < scores.shape(0); ++r)
                     c.probabilities({scores.data() + r * scores.shape(1), scores.shape(1)}, classes,
                                     shares.data() + r * classes);
                 return array_of(std::move(shares), {scores.shape(0), classes});
             })
        .def("split", &Calibration::split)
        .def("add", &Calibration::add)
        .def("copy", [](const Calibration& c) { return Calibration(c); })
        .def("state",
             [](Calibration& c) {
                 Archive archive;
                 c.visit(archive);
                 return to_dict(std::move(archive));
             })
        .def("restore", [](Calibration& c, nb::dict state) {
            Archive archive = from_dict(state);
            c.visit(archive);
        });
}

void bind_intervals(nb::module_& m) {
    nb::class_<Intervals>(m, "Intervals")
        .def(nb::init<std::size_t>(), nb::arg("targets"))
        .def("copy", [](const Intervals& i) { return Intervals(i); })
        .def_prop_ro("bytes", &Intervals::bytes)
        .def("state",
             [](Intervals& i) {
                 Archive archive;
                 i.visit(archive);
                 return to_dict(std::move(archive));
             })
        .def("restore",
             [](Intervals& i, nb::dict state) {
                 Archive archive = from_dict(state);
                 i.visit(archive);
             })
        .def_static(
            "united",
            [](const std::vector<const Intervals*>& parts, const std::vector<double>& shares) {
                if (parts.empty() || parts.size() != shares.size()) throw nb::value_error("a share for each part");
                Intervals whole(parts[0]->targets());
                whole.unite(parts, shares);
                return whole;
            },
            nb::arg("parts"), nb::arg("shares"))
        .def("halves", &halves, nb::arg("coverage"))
        .def("follow", &follow, nb::arg("predicted"), nb::arg("targets"), nb::arg("weights").none(),
             nb::arg("coverage"));
}

}  // namespace gristmill::bind
