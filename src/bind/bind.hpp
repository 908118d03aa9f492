// What the binding files share: conversions in, errors out. No logic of its own.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "core/batch.hpp"
#include "core/budgets.hpp"
#include "core/kernels.hpp"
#include "core/rules.hpp"

namespace nb = nanobind;

namespace gristmill::bind {

template <class T>
using Array1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<nb::numpy, double>;

// Rows as Python hands them over: a C-ordered float array, (indptr, indices, data, width), or a list of objects.
struct Rows {
    Batch batch;
    std::size_t width = 0;
    nb::object keep;  // what the views look at
};
Rows rows_from(nb::handle source);

// Throws ValueError that names the first row with a NaN or infinity, or that the kernel cannot take.
void check_rows(const Rows& rows, const Kernel& kernel);

Kernel kernel_from(nb::handle program);
Rule rule_from(nb::handle spec, const std::string& task);
Budget budget_from(nb::handle spec);

// Points that only Python understands, compared by a Python function.
std::unique_ptr<Points> foreign_points(nb::object function);
nb::list foreign_objects(const Points& points);

Doubles doubles(const double* data, std::vector<std::size_t> shape);

void bind_learner(nb::module_& m);
void bind_expansion(nb::module_& m);
void bind_pairwise(nb::module_& m);
void bind_kernel_ranker(nb::module_& m);
void bind_features(nb::module_& m);
void bind_additive(nb::module_& m);

}  // namespace gristmill::bind
