// Compression: rows and coefficients in, the chosen rows and their coefficients out.
#include "bind/bound_learner.hpp"
#include "core/kernels/check.hpp"
#include "core/expansion/compress.hpp"

namespace gristmill::bind {

namespace {

std::unique_ptr<Points> stored_points(nb::handle kernel, const Rows& rows) {
    if (PyCallable_Check(kernel.ptr())) return foreign_points(kernel);
    const bool single = std::holds_alternative<DenseRows<float>>(rows.batch) || std::holds_alternative<SparseRows<float>>(rows.batch);
    const bool sparse = std::holds_alternative<SparseRows<double>>(rows.batch) || std::holds_alternative<SparseRows<float>>(rows.batch);
    return make_points(rows.width, sparse, single);
}

nb::object table_of(const std::vector<std::vector<double>>& lines, std::size_t columns) {
    std::vector<double> all;
    for (const auto& line : lines) all.insert(all.end(), line.begin(), line.end());
    return nb::cast(array_of(std::move(all), {lines.size(), columns}));
}

nb::tuple compressed(nb::handle program, nb::handle source, Array2<double> coefs, std::size_t visible, std::size_t size) {
    const bool foreign = PyCallable_Check(program.ptr());
    const Kernel kernel = foreign ? Kernel() : kernel_from(program);
    const Rows rows = rows_from(source);
    check_rows(rows.batch, kernel);
    const std::size_t n = batch_count(rows.batch), outputs = coefs.shape(0);
    if (coefs.shape(1) != n || visible > outputs) throw nb::value_error("one line of coefficients an output, one number a point");
    Compression found;
    {
        nb::gil_scoped_release release;
        const auto points = stored_points(program, rows);
        points->kernel_rows(kernel, rows.batch)->load(0, n);  // refuses rows that are too large
        points->reserve(n);
        for (std::size_t s = 0; s < n; ++s) points->put(s, static_cast<std::int64_t>(s), rows.batch, s);
        std::vector<Lines<double>> lines(outputs, Lines<double>(padded(n)));
        for (std::size_t o = 0; o < outputs; ++o) std::copy_n(coefs.data() + o * n, n, lines[o].begin());
        found = compress(kernel, *points, lines, visible, size, Interrupts());
    }
    const std::size_t chosen = found.slots.size();
    return nb::make_tuple(array_of(std::vector<std::int64_t>(found.slots.begin(), found.slots.end())), table_of(found.coefs, chosen),
                          table_of(found.coordinates, chosen), found.norm2, found.left2);
}

}  // namespace

void bind_compress(nb::module_& m) {
    m.def("compress", &compressed, nb::arg("kernel"), nb::arg("rows"), nb::arg("coefs"), nb::arg("visible"), nb::arg("size"));
}

}  // namespace gristmill::bind
