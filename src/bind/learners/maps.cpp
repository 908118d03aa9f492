// Bindings of random feature maps.
#include "core/features/maps.hpp"
#include "bind/bind.hpp"
#include "core/kernels/check.hpp"

namespace gristmill::bind {

namespace {

Features features_from(Array1<std::int32_t> degrees, Array1<double> weights) {
    return {{degrees.data(), degrees.data() + degrees.shape(0)}, {weights.data(), weights.data() + weights.shape(0)}};
}

// Fills the last columns of `out`, which NumPy allocates (in huge pages); the caller fills the first ones.
template <class T>
void transform(const MaclaurinMap<T>& map, nb::handle source,
               nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu> out) {
    const Rows rows = rows_from(source);
    if (!std::holds_alternative<DenseRows<T>>(rows.batch) && !std::holds_alternative<SparseRows<T>>(rows.batch))
        throw nb::type_error("the rows do not have the precision of the map");
    if (rows.width != map.width())
        throw nb::value_error(("X has " + std::to_string(rows.width) + " features, but the map was drawn for " +
                               std::to_string(map.width()))
                                  .c_str());
    const std::size_t count = batch_count(rows.batch), stride = out.shape(1);
    if (out.shape(0) != count || stride < map.columns()) throw nb::value_error("the output does not fit");
    try {
        nb::gil_scoped_release release;
        map.transform(rows.batch, 0, count, out.data() + (stride - map.columns()), stride);
    } catch (const RowError&) {
        check_rows(rows.batch, Kernel());  // NaN in the input makes features NaN; this message names the cause
        throw;
    }
}

// Gradient of weighted sums of the features. weights: (outputs, columns) for all rows, or (rows, outputs, columns).
template <class T>
Doubles gradient(const MaclaurinMap<T>& map, nb::handle source, ArrayN<double> weights) {
    const Rows rows = rows_from(source);
    if (!std::holds_alternative<DenseRows<T>>(rows.batch) && !std::holds_alternative<SparseRows<T>>(rows.batch))
        throw nb::type_error("the rows do not have the precision of the map");
    const std::size_t count = batch_count(rows.batch), axes = weights.ndim();
    const bool each = axes == 3 && weights.shape(0) == count;
    if (rows.width != map.width() || !(axes == 2 || each) || weights.shape(axes - 1) != map.columns())
        throw nb::value_error("rows or weights do not fit the map");
    const std::size_t outputs = weights.shape(axes - 2);
    std::vector<double> out(count * outputs * map.width());
    {
        nb::gil_scoped_release release;
        map.gradients(rows.batch, weights.data(), each ? outputs * map.columns() : 0, outputs, out.data());
    }
    return array_of(std::move(out), {count, outputs, map.width()});
}

template <class T>
void bind_map(nb::module_& m, const char* name) {
    using Map = MaclaurinMap<T>;
    nb::class_<Map>(m, name)
        .def("__init__",
             [](Map* self, std::size_t width, Array1<std::int32_t> degrees, Array1<double> weights,
                Array1<std::int32_t> pair_degrees, Array1<double> pair_weights, bool structured, std::uint64_t seed) {
                 new (self) Map(width, features_from(degrees, weights), features_from(pair_degrees, pair_weights),
                                structured, seed);
             })
        .def("transform", &transform<T>, nb::arg("rows"), nb::arg("out"))
        .def("gradient", &gradient<T>, nb::arg("rows"), nb::arg("weights"))
        .def_prop_ro("columns", &Map::columns)
        .def_prop_ro("memory_bytes", &Map::bytes);
}

}  // namespace

void bind_maps(nb::module_& m) {
    bind_map<double>(m, "MaclaurinMap64");
    bind_map<float>(m, "MaclaurinMap32");
}

}  // namespace gristmill::bind
