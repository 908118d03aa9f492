// Bindings of fleets.
#include "bind/fleets/fleet.hpp"

#include "core/fleet/fleet.hpp"

namespace gristmill::bind {

namespace {

template <class T>
using Frames = nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Grid = std::optional<Array2<double>>;
using Mask = std::optional<Array2<std::uint8_t>>;

template <class T>
class FleetCore : public CoreLock {
  public:
    FleetCore(nb::handle program, nb::handle rule, nb::handle budget, const std::string& task, std::size_t width,
              std::size_t count, Array1<std::uint64_t> seeds, const std::string& scale,
              std::optional<std::uint64_t> warmup)
        : fleet(FleetParts{nodes_from(program), rule_from(rule, task), budget_from(budget), task_from(task), width,
                           scaling_from(scale, warmup)},
                count, std::span(seeds.data(), seeds.shape(0))) {}

    FleetChunk<T> chunk(const Frames<T>& rows, const Grid& labels, const Grid& weights, const Mask& present) const {
        if (rows.shape(1) != fleet.count() || rows.shape(2) != fleet.width())
            throw nb::value_error("the rows are not those of this fleet");
        const auto fits = [&](const auto& grid) {
            if (grid && (grid->shape(0) != rows.shape(0) || grid->shape(1) != rows.shape(1)))
                throw nb::value_error("rows, labels, weights and presence must have one shape");
        };
        fits(labels);
        fits(weights);
        fits(present);
        FleetChunk<T> chunk{rows.data(), rows.shape(0), labels ? labels->data() : nullptr,
                            weights ? weights->data() : nullptr, present ? present->data() : nullptr};
        return chunk;
    }
    nb::object shown(std::vector<double> scores, std::size_t frames, std::size_t outputs) const {
        return nb::cast(array_of(std::move(scores), {frames, fleet.count(), outputs}));
    }

    Fleet<T> fleet;
};

template <class T>
void bind_core(nb::module_& m, const char* name) {
    using Core = FleetCore<T>;
    nb::class_<Core> c(m, name);
    bind_members<T>(c, [](const Core& core) -> const Fleet<T>& { return core.fleet; });
    c.def(nb::init<nb::handle, nb::handle, nb::handle, const std::string&, std::size_t, std::size_t,
                   Array1<std::uint64_t>, const std::string&, std::optional<std::uint64_t>>(),
          nb::arg("kernel"), nb::arg("rule"), nb::arg("budget"), nb::arg("task"), nb::arg("width"), nb::arg("count"),
          nb::arg("seeds"), nb::arg("scale") = "none", nb::arg("warmup") = nb::none())
        .def(
            "learn",
            [](Core& c, Frames<T> rows, Grid labels, Grid weights, Mask present, bool want, std::size_t classes,
               std::size_t jobs) -> nb::object {
                const auto chunk = c.chunk(rows, labels, weights, present);
                std::vector<double> scores;
                std::size_t outputs = 0;
                c.write([&] {
                    c.fleet.check(chunk);
                    c.fleet.learn(chunk, classes, want ? &scores : nullptr, jobs);
                    outputs = c.fleet.outputs();
                });
                return want ? c.shown(std::move(scores), chunk.frames, outputs) : nb::none();
            },
            nb::arg("rows"), nb::arg("labels").none(), nb::arg("weights").none(), nb::arg("present").none(),
            nb::arg("want_scores"), nb::arg("classes"), nb::arg("jobs"))
        .def(
            "score",
            [](const Core& c, Frames<T> rows, Mask present, std::size_t jobs, bool shares) {
                const auto chunk = c.chunk(rows, {}, {}, present);
                std::vector<double> scores;
                std::size_t outputs = 0, classes = 0;
                c.read([&] {
                    c.fleet.check(chunk);
                    outputs = c.fleet.outputs();
                    classes = c.fleet.classes();
                    if (shares) outputs = std::max<std::size_t>(classes, 1);
                    scores.resize(chunk.frames * c.fleet.count() * outputs);
                    c.fleet.score(chunk, shares, scores.data(), jobs);
                });
                return nb::make_tuple(c.shown(std::move(scores), chunk.frames, outputs), classes);
            },
            nb::arg("rows"), nb::arg("present").none(), nb::arg("jobs"), nb::arg("shares") = false)
        .def("members",
             [](const Core& c, Array1<std::int64_t> which) {
                 return c.read_with_gil(
                     [&] { return pack_to_dict(c.fleet.members({which.data(), which.shape(0)}), c.fleet.shape()); });
             })
        .def("set_members",
             [](Core& c, Array1<std::int64_t> which, nb::dict state) {
                 const auto pack = pack_from_dict<T>(state);
                 c.write([&] { c.fleet.set_members({which.data(), which.shape(0)}, pack); });
             })
        .def("add_classes", [](Core& c, std::size_t classes) { c.write([&] { c.fleet.add_classes(classes); }); })
        .def("sizes",
             [](const Core& c) {
                 return c.read_with_gil([&] {
                     std::vector<std::int64_t> sizes(c.fleet.count());
                     c.fleet.sizes(sizes.data());
                     return array_of(std::move(sizes));
                 });
             })
        .def("seen",
             [](const Core& c) {
                 return c.read_with_gil([&] {
                     std::vector<std::int64_t> seen(c.fleet.count());
                     c.fleet.seen(seen.data());
                     return array_of(std::move(seen));
                 });
             })
        .def_prop_ro("changes", [](const Core& c) { return c.read_with_gil([&] { return c.fleet.changes(); }); })
        .def_prop_ro("count", [](const Core& c) { return c.fleet.count(); })
        .def_prop_ro("width", [](const Core& c) { return c.fleet.width(); })
        .def_prop_ro("outputs", [](const Core& c) { return c.read_with_gil([&] { return c.fleet.outputs(); }); })
        .def_prop_ro("classes", [](const Core& c) { return c.read_with_gil([&] { return c.fleet.classes(); }); })
        .def_prop_ro("is_single", [](const Core&) { return sizeof(T) == sizeof(float); })
        .def_prop_ro("memory_bytes", [](const Core& c) { return c.read_with_gil([&] { return c.fleet.bytes(); }); });
}

}  // namespace

void bind_fleet(nb::module_& m) {
    m.def(
        "check_members",
        [](nb::handle rule, nb::handle budget, const std::string& task) {
            member_limit(rule_from(rule, task), budget_from(budget));
        },
        nb::arg("rule"), nb::arg("budget"), nb::arg("task"),
        "Raise ValueError if members of a fleet cannot have this rule and budget.");
    bind_core<double>(m, "FleetDouble");
    bind_core<float>(m, "FleetSingle");
}

}  // namespace gristmill::bind
