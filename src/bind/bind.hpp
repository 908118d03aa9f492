// Folder bind: the Python module `gristmill._core`, one file per topic of the core; it includes every folder of core/.
// Begin with this file: conversions between Python and the core, shared by all binding files. No logic.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "core/base/batch.hpp"
#include "core/kernels/kernels.hpp"
#include "core/learner/learner.hpp"
#include "core/parts/budgets.hpp"
#include "core/parts/rules.hpp"

namespace nb = nanobind;

namespace gristmill::bind {

template <class T>
using Array1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using ArrayN = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<nb::numpy, double>;

// Rows passed by Python: a C-ordered float array, (indptr, indices, data, width), or a list of objects.
struct Rows {
    Batch batch;
    std::size_t width = 0;
    nb::object keep;  // owner of the viewed data
};
Rows rows_from(nb::handle source);

Kernel kernel_from(nb::handle program);
Task task_from(const std::string& name);
Rule rule_from(nb::handle spec, const std::string& task);
Budget budget_from(nb::handle spec);

// Points compared by a Python function, which the caller keeps alive.
std::unique_ptr<Points> foreign_points(nb::handle function);
// Stored points for Python: a table, (indptr, indices, data, width), or a list of objects.
nb::object points_of(const Points& points);

// A NumPy array that owns its data.
template <class T>
nb::ndarray<nb::numpy, T> array_of(std::vector<T> values, std::vector<std::size_t> shape) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.data(), owner);
}
template <class T>
nb::ndarray<nb::numpy, T> array_of(std::vector<T> values) {
    const std::size_t n = values.size();
    return array_of(std::move(values), {n});
}

template <class T>
T get(nb::dict spec, const char* name) {
    return nb::cast<T>(spec[name]);
}

void bind_learner(nb::module_& m);
void bind_expansion(nb::module_& m);
void bind_pairwise(nb::module_& m);
void bind_maps(nb::module_& m);

}  // namespace gristmill::bind
