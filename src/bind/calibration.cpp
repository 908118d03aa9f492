// The calibration alone, for learners implemented in Python.
#include "bind/archive.hpp"
#include "bind/bind.hpp"
#include "core/adapt/calibration.hpp"

namespace gristmill::bind {

void bind_calibration(nb::module_& m) {
    nb::class_<Calibration>(m, "Calibration")
        .def(nb::init<bool>(), nb::arg("shifts") = true)
        .def("learn", [](Calibration& c, Array1<double> scores, std::size_t label) {
            c.learn({scores.data(), scores.shape(0)}, label);
        })
        .def("probabilities", [](const Calibration& c, Array2<double> scores, std::size_t classes) {
            std::vector<double> shares(scores.shape(0) * classes);
            for (std::size_t r = 0; r < scores.shape(0); ++r)
                c.probabilities({scores.data() + r * scores.shape(1), scores.shape(1)}, classes, shares.data() + r * classes);
            return array_of(std::move(shares), {scores.shape(0), classes});
        })
        .def("split", &Calibration::split)
        .def("add", &Calibration::add)
        .def("copy", [](const Calibration& c) { return Calibration(c); })
        .def("state", [](Calibration& c) {
            Archive archive;
            c.visit(archive);
            return to_dict(std::move(archive));
        })
        .def("restore", [](Calibration& c, nb::dict state) {
            Archive archive = from_dict(state);
            c.visit(archive);
        });
}

}  // namespace gristmill::bind
