// Kernel matrices, compression, and the plain expansion for tests of its invariant.
#include "core/expansion/expansion.hpp"
#include "bind/bind.hpp"
#include "bind/learners/bound_learner.hpp"
#include "core/expansion/compress.hpp"
#include "core/kernels/check.hpp"

namespace gristmill::bind {

namespace {

std::unique_ptr<Points> points_for(const Rows& rows) {
    const bool single =
        std::holds_alternative<DenseRows<float>>(rows.batch) || std::holds_alternative<SparseRows<float>>(rows.batch);
    const bool sparse =
        std::holds_alternative<SparseRows<double>>(rows.batch) || std::holds_alternative<SparseRows<float>>(rows.batch);
    return make_points(rows.width, sparse, single);
}

nb::ndarray<nb::numpy, double> kernel_matrix(nb::handle program, nb::handle left, nb::handle right) {
    const Kernel kernel = kernel_from(program);
    const Rows x = rows_from(left), y = rows_from(right);
    if (x.width != y.width)
        throw nb::value_error(("X and Y must have the same number of features, got " + std::to_string(x.width) +
                               " and " + std::to_string(y.width))
                                  .c_str());
    if (x.batch.index() != y.batch.index()) throw nb::type_error("X and Y must be of the same kind");
    check_rows(x.batch, kernel);
    check_rows(y.batch, kernel);
    const std::size_t rows = batch_count(x.batch), columns = batch_count(y.batch);
    auto result = array_of(std::vector<double>(rows * columns), {rows, columns});
    {
        nb::gil_scoped_release release;
        const auto points = points_for(y);
        points->kernel_rows(kernel, y.batch)->load(0, columns);  // refuses rows that are too large
        points->reserve(columns);
        for (std::size_t s = 0; s < columns; ++s) points->put(s, static_cast<std::int64_t>(s), y.batch, s);
        const auto kernel_rows = points->kernel_rows(kernel, x.batch);
        constexpr std::size_t block = 128;
        const std::size_t stride = padded(columns);
        Lines<double> values(block * stride);
        for (std::size_t first = 0; first < rows; first += block) {
            const std::size_t count = std::min(block, rows - first);
            kernel_rows->load(first, count);
            kernel_rows->rows(values.data(), stride);
            for (std::size_t r = 0; r < count; ++r)
                std::copy(values.data() + r * stride, values.data() + r * stride + columns,
                          result.data() + (first + r) * columns);
        }
    }
    return result;
}

nb::ndarray<nb::numpy, double> kernel_diagonal(nb::handle program, nb::handle source) {
    const Kernel kernel = kernel_from(program);
    const Rows x = rows_from(source);
    check_rows(x.batch, kernel);
    const auto points = points_for(x);
    const auto kernel_rows = points->kernel_rows(kernel, x.batch);
    const std::size_t rows = batch_count(x.batch);
    auto result = array_of(std::vector<double>(rows));
    for (std::size_t i = 0; i < rows; ++i) {
        kernel_rows->load(i, 1);
        result.data()[i] = kernel_rows->self(0);
    }
    return result;
}

// An Expansion with one method per operation.
class PyExpansion {
  public:
    PyExpansion(nb::handle program, std::size_t width, std::size_t outputs, bool norm, bool average)
        : f_(kernel_from(program), make_points(width, false, false), outputs, norm, average) {}

    void add(Array2<double> x, std::vector<double> coefs, std::int64_t id, std::optional<std::size_t> slot) {
        const Batch batch = DenseRows<double>{x.data(), 1, x.shape(1)};
        if (x.shape(0) != 1 || coefs.size() != f_.outputs())
            throw nb::value_error("one row, one coefficient an output");
        if (slot) {
            check_slot(*slot);
            f_.release(*slot, row_of(*slot).data());
        }
        f_.reserve(f_.size() + 1);
        const auto row = kernel_row(batch);
        const auto kernel_rows = f_.points().kernel_rows(f_.kernel(), batch);
        kernel_rows->load(0, 1);
        f_.add(slot.value_or(f_.size()), id, batch, 0, coefs, row.data(), kernel_rows->self(0));
    }
    void remove(std::size_t slot) { check_slot(slot), f_.remove(slot, row_of(slot).data()); }
    void shrink(double factor) { f_.shrink(factor); }
    void stay_inside(double radius) { f_.stay_inside(radius); }
    void tick() { f_.tick(); }
    void repair_norm() { f_.repair_norm(); }
    std::vector<double> score(Array2<double> x, bool average) const {
        const auto row = kernel_row(DenseRows<double>{x.data(), 1, x.shape(1)});
        std::vector<double> scores;
        for (std::size_t o = 0; o < f_.outputs(); ++o)
            scores.push_back(average ? f_.average_score(o, row.data()) : f_.score(o, row.data()));
        return scores;
    }
    Expansion& expansion() { return f_; }

  private:
    void check_slot(std::size_t slot) const {
        if (slot >= f_.size()) throw nb::index_error("no such slot");
    }
    Lines<double> kernel_row(const Batch& batch) const {
        Lines<double> row(padded(f_.size()));
        const auto kernel_rows = f_.points().kernel_rows(f_.kernel(), batch);
        kernel_rows->load(0, 1);
        kernel_rows->rows(row.data(), row.size());
        return row;
    }
    Lines<double> row_of(std::size_t slot) const {
        Lines<double> row(padded(f_.size()));
        f_.points().stored_row(f_.kernel(), slot, row.data());
        return row;
    }

    Expansion f_;
};

}  // namespace

void bind_expansion(nb::module_& m) {
    m.def("kernel_matrix", &kernel_matrix);
    m.def("kernel_diagonal", &kernel_diagonal);
    nb::class_<PyExpansion>(m, "Expansion")
        .def(nb::init<nb::handle, std::size_t, std::size_t, bool, bool>())
        .def("add", &PyExpansion::add, nb::arg("x"), nb::arg("coefs"), nb::arg("id"), nb::arg("slot").none())
        .def("remove", &PyExpansion::remove)
        .def("shrink", &PyExpansion::shrink)
        .def("stay_inside", &PyExpansion::stay_inside)
        .def("tick", &PyExpansion::tick)
        .def("repair_norm", &PyExpansion::repair_norm)
        .def("score", &PyExpansion::score)
        .def_prop_ro("norm2", [](PyExpansion& e) { return e.expansion().norm2(); })
        .def_prop_ro("size", [](PyExpansion& e) { return e.expansion().size(); });
}

namespace {

std::unique_ptr<Points> stored_points(nb::handle kernel, const Rows& rows) {
    return PyCallable_Check(kernel.ptr()) ? foreign_points(kernel) : points_for(rows);
}

nb::object table_of(const std::vector<std::vector<double>>& lines, std::size_t columns) {
    std::vector<double> all;
    for (const auto& line : lines) all.insert(all.end(), line.begin(), line.end());
    return nb::cast(array_of(std::move(all), {lines.size(), columns}));
}

nb::tuple compressed(nb::handle program, nb::handle source, Array2<double> coefs, std::size_t visible,
                     std::size_t size) {
    const bool foreign = PyCallable_Check(program.ptr());
    const Kernel kernel = foreign ? Kernel() : kernel_from(program);
    const Rows rows = rows_from(source);
    check_rows(rows.batch, kernel);
    const std::size_t n = batch_count(rows.batch), outputs = coefs.shape(0);
    if (coefs.shape(1) != n || visible > outputs)
        throw nb::value_error("one line of coefficients an output, one number a point");
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
    return nb::make_tuple(array_of(std::vector<std::int64_t>(found.slots.begin(), found.slots.end())),
                          table_of(found.coefs, chosen), table_of(found.coordinates, chosen), found.norm2, found.left2);
}

}  // namespace

void bind_compress(nb::module_& m) {
    m.def("compress", &compressed, nb::arg("kernel"), nb::arg("rows"), nb::arg("coefs"), nb::arg("visible"),
          nb::arg("size"));
}

}  // namespace gristmill::bind
