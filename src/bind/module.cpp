#include "bind/bind.hpp"
#include "bind/fleets/fleet.hpp"
#include "core/base/threads.hpp"

namespace gristmill::bind {
void bind_calibration(nb::module_& m);
void bind_mixture(nb::module_& m);
void bind_novelty(nb::module_& m);
void bind_intervals(nb::module_& m);
void bind_compress(nb::module_& m);
void bind_scaling(nb::module_& m);
void bind_race(nb::module_& m);
void bind_structured(nb::module_& m);
void bind_pipeline(nb::module_& m);
}  // namespace gristmill::bind

NB_MODULE(_core, m) {
    nb::set_leak_warnings(false);  // a model alive at the end of Python is not a leak
    m.doc() = "The C++ core of gristmill; private.";
    gristmill::isa_name();  // an unknown GRISTMILL_ISA raises ImportError
    m.def("isa", [] { return std::string(gristmill::isa_name()); }, "The instruction set chosen at load.");
    m.def(
        "isas",
        [] {
            const gristmill::IsaNames names = gristmill::isas();
            return std::vector<std::string>(names.begin(), names.end());
        },
        "The instruction sets that GRISTMILL_ISA may name here, the narrowest first.");
    m.def("allow_threads", &gristmill::allow_threads, nb::arg("count"),
          "How many threads this thread's calls may use.");
    m.def("threads_allowed", &gristmill::threads_allowed);
    nb::exception<gristmill::RowError>(m, "RowError", PyExc_ValueError);
    gristmill::bind::bind_pipeline(m);  // the base of the learners is there first
    gristmill::bind::bind_learner(m);
    gristmill::bind::bind_expansion(m);
    gristmill::bind::bind_pairwise(m);
    gristmill::bind::bind_maps(m);
    gristmill::bind::bind_fleet(m);
    gristmill::bind::bind_keyed(m);
    gristmill::bind::bind_calibration(m);
    gristmill::bind::bind_mixture(m);
    gristmill::bind::bind_novelty(m);
    gristmill::bind::bind_intervals(m);
    gristmill::bind::bind_compress(m);
    gristmill::bind::bind_scaling(m);
    gristmill::bind::bind_race(m);
    gristmill::bind::bind_structured(m);
}
