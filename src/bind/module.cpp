#include "bind/bind.hpp"
#include "bind/fleet.hpp"

NB_MODULE(_core, m) {
    nb::set_leak_warnings(false);  // a model that is still alive when Python ends is no leak
    m.doc() = "The C++ core of gristmill; private.";
    m.def("isa", [] { return std::string(gristmill::isa_name()); }, "The instruction set chosen at load.");
    nb::exception<gristmill::RowError>(m, "RowError", PyExc_ValueError);
    gristmill::bind::bind_learner(m);
    gristmill::bind::bind_expansion(m);
    gristmill::bind::bind_pairwise(m);
    gristmill::bind::bind_maps(m);
    gristmill::bind::bind_fleet(m);
    gristmill::bind::bind_keyed(m);
}
