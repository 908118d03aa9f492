// Rows and objects from Python as batches of the core, and points compared by a Python function.
#include <cmath>
#include <cstdio>

#include "bind/bind.hpp"
#include "core/kernels/sparse_points.hpp"

namespace gristmill::bind {

namespace {

template <class T>
bool try_dense(nb::handle source, Rows& rows) {
    Array2<T> array;
    if (!nb::try_cast<Array2<T>>(source, array, false)) return false;
    rows.batch = DenseRows<T>{array.data(), array.shape(0), array.shape(1)};
    rows.width = array.shape(1);
    return true;
}

template <class T>
bool try_sparse(nb::tuple parts, Rows& rows) {
    Array1<T> data;
    if (!nb::try_cast<Array1<T>>(parts[2], data, false)) return false;
    const auto start = nb::cast<Array1<std::int64_t>>(parts[0]);
    const auto column = nb::cast<Array1<std::int32_t>>(parts[1]);
    rows.width = nb::cast<std::size_t>(parts[3]);
    // The core relies on the ends of the arrays; the indices in between are checked with the rows.
    const std::size_t n = start.shape(0);
    if (n == 0 || start.data()[0] != 0 || column.shape(0) != data.shape(0) ||
        start.data()[n - 1] != static_cast<std::int64_t>(data.shape(0)))
        throw nb::value_error("the sparse rows are damaged: indptr, indices and data do not fit together");
    rows.batch = SparseRows<T>{start.data(), column.data(), data.data(), start.shape(0) - 1, rows.width};
    return true;
}

// ---- foreign points -----------------------------------------------------------------------------------------------

double call(nb::handle function, nb::handle x, nb::handle y) {
    const double value = nb::cast<double>(nb::float_(function(x, y)));
    if (!std::isfinite(value)) {
        const std::string text = "the kernel returned " + std::to_string(value) + " for " +
                                 nb::cast<std::string>(nb::repr(x)).substr(0, 80) + " and " +
                                 nb::cast<std::string>(nb::repr(y)).substr(0, 80);
        throw RowError(0, text);
    }
    return value;
}

class ForeignPoints final : public Points {
  public:
    explicit ForeignPoints(nb::handle function) : function_(function) {}
    ~ForeignPoints() override {
        nb::gil_scoped_acquire gil;
        objects_.clear();
    }
    std::size_t width() const override { return 0; }
    bool may_fail() const override { return true; }
    std::unique_ptr<KernelRows> kernel_rows(const Kernel&, const Batch& batch) const override;
    void stored_row(const Kernel&, std::size_t slot, double* out) const override {
        nb::gil_scoped_acquire gil;
        row(objects_[slot], out);
    }
    double stored_self(const Kernel&, std::size_t slot) const override {
        nb::gil_scoped_acquire gil;
        return call(function_, objects_[slot], objects_[slot]);
    }
    const std::vector<nb::object>& objects() const { return objects_; }

  protected:
    void put_data(std::size_t slot, const Batch& batch, std::size_t i) override {
        nb::gil_scoped_acquire gil;
        set(slot, object(batch, i));
    }
    void move_data(std::size_t from, std::size_t to) override {
        nb::gil_scoped_acquire gil;
        objects_[to] = objects_[from];
    }
    void drop_last(std::size_t slot) override {
        nb::gil_scoped_acquire gil;
        objects_.resize(slot);
    }
    std::shared_ptr<void> copy_data(std::size_t slot) const override {
        nb::gil_scoped_acquire gil;
        return {new nb::object(objects_[slot]), [](void* p) {
                    nb::gil_scoped_acquire gil;
                    delete static_cast<nb::object*>(p);
                }};
    }
    void restore_data(std::size_t slot, const std::shared_ptr<void>& data) override {
        nb::gil_scoped_acquire gil;
        set(slot, *static_cast<const nb::object*>(data.get()));
    }

  private:
    friend class ForeignKernelRows;
    static nb::object object(const Batch& batch, std::size_t i) {
        const auto& rows = std::get<ForeignRows>(batch);
        return nb::borrow<nb::list>(static_cast<PyObject*>(const_cast<void*>(rows.objects)))[i];
    }
    void set(std::size_t slot, nb::object value) {
        if (slot >= objects_.size()) objects_.resize(slot + 1);
        objects_[slot] = std::move(value);
    }
    void row(nb::handle x, double* out) const {
        for (std::size_t s = 0; s < objects_.size(); ++s) out[s] = call(function_, x, objects_[s]);
        std::fill(out + objects_.size(), out + padded(objects_.size()), 0.0);
    }

    nb::handle function_;  // kept alive by the owner of the learner
    std::vector<nb::object> objects_;
};

class ForeignKernelRows final : public KernelRows {
  public:
    ForeignKernelRows(const ForeignPoints& points, const Batch& batch) : points_(points), batch_(batch) {}
    void load(std::size_t first, std::size_t count) override {
        first_ = first;
        count_ = count;
    }
    void rows(double* out, std::size_t stride) override {
        nb::gil_scoped_acquire gil;
        for (std::size_t r = 0; r < count_; ++r)
            at_row(first_ + r, [&](nb::object x) {
                points_.row(x, out + r * stride);
                if (points_.size() > 0) symmetric(x, (first_ + r) % points_.size(), out + r * stride);
            });
    }
    void among(std::size_t i, double* out) override {
        nb::gil_scoped_acquire gil;
        const nb::object x = ForeignPoints::object(batch_, first_ + i);
        for (std::size_t r = i + 1; r < count_; ++r)
            at_row(first_ + r, [&](nb::object y) { out[r] = call(points_.function_, y, x); });
    }
    double self(std::size_t i) override {
        nb::gil_scoped_acquire gil;
        double value = 0;
        at_row(first_ + i, [&](nb::object x) { value = call(points_.function_, x, x); });
        return value;
    }

  private:
    template <class F>
    void at_row(std::size_t i, F f) {
        try {
            f(ForeignPoints::object(batch_, i));
        } catch (const RowError& error) {
            throw RowError(i, "row " + std::to_string(i) + ": " + error.what());
        }
    }
    // Evaluates one stored point per row in both orders: a function that is not symmetric is detected soon.
    void symmetric(nb::handle x, std::size_t slot, const double* values) const {
        const double back = call(points_.function_, points_.objects_[slot], x);
        const double size = std::max(1.0, std::max(std::abs(back), std::abs(values[slot])));
        if (!(std::abs(back - values[slot]) <= 1e-8 * size))
            throw RowError(0, "the kernel is not symmetric: k(x, y) = " + std::to_string(values[slot]) +
                                  " but k(y, x) = " + std::to_string(back) + " for the stored event " +
                                  std::to_string(points_.id(slot)));
    }

    const ForeignPoints& points_;
    const Batch& batch_;
    std::size_t first_ = 0, count_ = 0;
};

std::unique_ptr<KernelRows> ForeignPoints::kernel_rows(const Kernel&, const Batch& batch) const {
    return std::make_unique<ForeignKernelRows>(*this, batch);
}

}  // namespace

Rows rows_from(nb::handle source) {
    Rows rows;
    rows.keep = nb::borrow(source);
    if (try_dense<double>(source, rows) || try_dense<float>(source, rows)) return rows;
    if (nb::isinstance<nb::tuple>(source)) {
        const auto parts = nb::borrow<nb::tuple>(source);
        if (try_sparse<double>(parts, rows) || try_sparse<float>(parts, rows)) return rows;
    }
    if (nb::isinstance<nb::list>(source)) {
        rows.batch = ForeignRows{source.ptr(), nb::len(source)};
        return rows;
    }
    throw nb::type_error("rows must be a C-ordered float array, (indptr, indices, data, width) or a list");
}

std::unique_ptr<Points> foreign_points(nb::handle function) { return std::make_unique<ForeignPoints>(function); }

namespace {

template <class T>
nb::object dense_table(const DensePoints<T>& points) {
    std::vector<T> values(points.size() * points.width());
    for (std::size_t s = 0; s < points.size(); ++s) points.copy_out(s, values.data() + s * points.width());
    return nb::cast(array_of(std::move(values), {points.size(), points.width()}));
}

template <class T>
nb::object sparse_table(const SparsePoints<T>& points) {
    std::vector<std::int64_t> start{0};
    std::vector<std::int32_t> column;
    std::vector<T> value;
    for (std::size_t s = 0; s < points.size(); ++s) {
        const auto& row = points.row(s);
        column.insert(column.end(), row.columns.begin(), row.columns.end());
        value.insert(value.end(), row.values.begin(), row.values.end());
        start.push_back(static_cast<std::int64_t>(column.size()));
    }
    return nb::make_tuple(array_of(std::move(start)), array_of(std::move(column)), array_of(std::move(value)),
                          points.width());
}

}  // namespace

nb::object points_of(const Points& points) {
    if (const auto* dense = dynamic_cast<const DensePoints<double>*>(&points)) return dense_table(*dense);
    if (const auto* dense = dynamic_cast<const DensePoints<float>*>(&points)) return dense_table(*dense);
    if (const auto* sparse = dynamic_cast<const SparsePoints<double>*>(&points)) return sparse_table(*sparse);
    if (const auto* sparse = dynamic_cast<const SparsePoints<float>*>(&points)) return sparse_table(*sparse);
    nb::list objects;
    for (const auto& object : static_cast<const ForeignPoints&>(points).objects()) objects.append(object);
    return objects;
}

}  // namespace gristmill::bind
