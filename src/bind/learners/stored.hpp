// Stored points for Python: points, coefficients and ages by slot, for every kind of store.
#pragma once

#include "bind/bind.hpp"
#include "core/additive/hypothesis.hpp"
#include "core/expansion/expansion.hpp"
#include "core/expansion/projected.hpp"
#include "core/kernels/sparse_points.hpp"
#include "core/pairwise/kernel.hpp"

namespace gristmill::bind {

inline const Expansion& stored(const Learner<Expansion>& learner) { return learner.hypothesis(); }
inline const Expansion& stored(const Learner<ProjectedExpansion>& learner) { return learner.hypothesis().expansion(); }
inline const Trees& stored(const Learner<Trees>& learner) { return learner.hypothesis(); }
inline const Expansion& stored(const KernelRanker& ranker) { return ranker.expansion(); }

template <class S>
std::vector<std::int64_t> by_age(const S& store) {  // slots, oldest first
    std::vector<std::int64_t> slots;
    for (std::size_t s = store.oldest(); s != Points::npos; s = store.newer(s))
        slots.push_back(static_cast<std::int64_t>(s));
    return slots;
}

template <class S>
nb::object ids_of(const S& store) {
    std::vector<std::int64_t> ids;
    for (std::size_t s = 0; s < store.size(); ++s) ids.push_back(store.id(s));
    return nb::cast(array_of(std::move(ids)));
}

template <class S>
nb::object coefs_of(const S& store) {
    std::vector<double> coefs;
    for (std::size_t s = 0; s < store.size(); ++s)
        for (std::size_t o = 0; o < store.outputs(); ++o) coefs.push_back(store.shown_coef(s, o));
    return nb::cast(array_of(std::move(coefs), {store.size(), store.outputs()}));
}

// Labels as they were learned, NaN where unknown: a row a slot, a column a target.
template <class S>
nb::object labels_of(const S& store) {
    std::vector<double> labels;
    for (std::size_t s = 0; s < store.size(); ++s)
        for (std::size_t t = 0; t < store.targets(); ++t) labels.push_back(store.label(s, t));
    return nb::cast(array_of(std::move(labels), {store.size(), store.targets()}));
}

inline nb::object points_of_store(const Expansion& f) { return points_of(f.points()); }
inline nb::object points_of_store(const Trees& trees) {
    const Terms& terms = trees.terms();
    std::vector<double> rows(terms.size() * terms.width());
    for (std::size_t s = 0; s < terms.size(); ++s) terms.row(s, rows.data() + s * terms.width());
    if (!terms.single()) return nb::cast(array_of(std::move(rows), {terms.size(), terms.width()}));
    return nb::cast(array_of(std::vector<float>(rows.begin(), rows.end()), {terms.size(), terms.width()}));
}

inline bool is_sparse(const Expansion& f) {
    return dynamic_cast<const SparsePoints<double>*>(&f.points()) ||
           dynamic_cast<const SparsePoints<float>*>(&f.points());
}
inline bool is_sparse(const Trees&) { return false; }
inline bool keeps_doubles(const Expansion& f) {
    return dynamic_cast<const DensePoints<double>*>(&f.points()) != nullptr;
}
inline bool keeps_doubles(const Trees& trees) { return !trees.terms().single(); }
inline bool is_single(const Expansion& f) {
    return dynamic_cast<const DensePoints<float>*>(&f.points()) ||
           dynamic_cast<const SparsePoints<float>*>(&f.points());
}
inline bool is_single(const Trees& trees) { return trees.terms().single(); }

}  // namespace gristmill::bind
