// Bindings of running means and column scaling, with undo of one event.
#include "core/adapt/scaling.hpp"
#include "bind/archive.hpp"
#include "bind/bind.hpp"
#include "core/adapt/rank_scaling.hpp"

namespace gristmill::bind {
namespace {

bool finite(const double* values, std::size_t n) {
    // x - x is 0 unless x is not finite; the sum needs no branch.
    double zero = 0;
    for (std::size_t i = 0; i < n; ++i) zero += values[i] - values[i];
    return zero == 0;
}

template <class T>
void same_width(const T& columns, std::size_t width) {
    if (width != columns.width())
        throw nb::value_error(
            ("there are " + std::to_string(columns.width()) + " columns, got " + std::to_string(width)).c_str());
}

Doubles stacked(std::initializer_list<const std::vector<double>*> lines) {
    std::vector<double> all;
    for (const auto* line : lines) all.insert(all.end(), line->begin(), line->end());
    const std::size_t columns = all.size() / lines.size();
    return array_of(std::move(all), {lines.size(), columns});
}

void unstack(const Array2<double>& table, std::initializer_list<std::vector<double>*> lines) {
    // Sums may have overflowed, so only the first values must be finite.
    if (table.shape(0) != lines.size() || !finite(table.data(), table.shape(1)))
        throw nb::value_error("its scaling is damaged");
    const double* line = table.data();
    for (auto* to : lines) {
        to->assign(line, line + table.shape(1));
        line += table.shape(1);
    }
}

// Refuses column indices out of range.
void in_columns(const ColumnScaling& scaling, const Array1<std::int32_t>& columns, const Array1<double>& values) {
    if (columns.size() != values.size()) throw nb::value_error("as many columns as values");
    for (std::size_t at = 0; at < columns.size(); ++at)
        if (columns.data()[at] < 0 || static_cast<std::size_t>(columns.data()[at]) >= scaling.width())
            throw nb::value_error("there is no such column");
}

// Rows of the same shape by `call(rows, count, out)`.
template <class S, class Call>
Doubles mapped(const S& scaling, const Array2<double>& rows, Call call) {
    same_width(scaling, rows.shape(1));
    std::vector<double> out(rows.size());
    call(rows.data(), rows.shape(0), out.data());
    return array_of(std::move(out), {rows.shape(0), rows.shape(1)});
}

// A class with the methods of every scaling of columns.
template <class S>
nb::class_<S> scaling_class(nb::module_& m, const char* name) {
    return nb::class_<S>(m, name)
        .def_prop_ro("width", &S::width)
        .def_prop_ro("seen", [](const S& scaling) { return scaling.seen; })
        .def("widen", [](S& scaling, Array1<double> first,
                         std::uint64_t events) { scaling.widen({first.data(), first.size()}, events); })
        .def(
            "learn",
            [](S& scaling, Array2<double> rows) {
                return mapped(scaling, rows, [&](auto... given) { scaling.learn(given...); });
            },
            "Learn rows; each is scaled by what was known before it.")
        .def("scale",
             [](const S& scaling, Array2<double> rows) {
                 return mapped(scaling, rows, [&](auto... given) { scaling.scale(given...); });
             })
        .def("slopes", [](const S& scaling) { return array_of(scaling.slopes()); })
        .def("copy", [](const S& scaling) { return S(scaling); });
}

using Gaps = nb::ndarray<const bool, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

}  // namespace

void bind_scaling(nb::module_& m) {
    nb::class_<Means>(m, "Means")
        .def(nb::init<>())
        .def_prop_ro("width", &Means::width)
        .def_prop_ro(
            "first", [](const Means& means) { return array_of(std::vector<double>(means.first)); }, nb::rv_policy::move)
        .def("widen", [](Means& means, Array1<double> first) { means.widen({first.data(), first.size()}); })
        .def(
            "learn",
            [](Means& means, Array2<double> rows) {
                same_width(means, rows.shape(1));
                means.learn(rows.data(), rows.shape(0));
            },
            "Rows without gaps.")
        .def(
            "fill",
            [](Means& means, Array2<double> rows, Gaps missing, bool learn) {
                same_width(means, rows.shape(1));
                same_width(means, missing.shape(1));
                if (missing.shape(0) != rows.shape(0)) throw nb::value_error("as many rows of gaps as of values");
                std::vector<double> out(rows.size());
                if (learn) {
                    means.learn(rows.data(), missing.data(), rows.shape(0), out.data());
                } else {
                    for (std::size_t at = 0; at < rows.size(); ++at)
                        out[at] = missing.data()[at] ? means.mean(at % means.width()) : rows.data()[at];
                }
                return array_of(std::move(out), {rows.shape(0), rows.shape(1)});
            },
            "Rows with the mean so far in place of each gap; taken in or not.")
        .def("copy", [](const Means& means) { return Means(means); })
        .def("state", [](const Means& means) { return stacked({&means.first, &means.total, &means.count}); })
        .def("restore", [](Means& means, Array2<double> state) {
            Means read;
            unstack(state, {&read.first, &read.total, &read.count});
            means = std::move(read);
        });

    scaling_class<ColumnScaling>(m, "Scaling")
        .def(
            "__init__",
            [](ColumnScaling* self, bool by_range, std::optional<std::uint64_t> warmup) {
                new (self) ColumnScaling(by_range, warmup.value_or(std::numeric_limits<std::uint64_t>::max()));
            },
            nb::arg("by_range"), nb::arg("warmup").none())
        .def(
            "learn_sparse",
            [](ColumnScaling& scaling, Array1<std::int64_t> starts, Array1<std::int32_t> columns,
               Array1<double> values) {
                in_columns(scaling, columns, values);
                const std::int64_t end = starts.size() ? starts.data()[starts.size() - 1] : -1;
                if (end < 0 || static_cast<std::size_t>(end) != values.size() || starts.data()[0] != 0 ||
                    !std::is_sorted(starts.data(), starts.data() + starts.size()))
                    throw nb::value_error("rows must begin where the one before ends");
                std::vector<double> out(values.size());
                scaling.learn_sparse({starts.data(), starts.size()}, columns.data(), values.data(), out.data());
                return array_of(std::move(out));
            },
            "The same of CSR rows, without centring: their values.")
        .def("scale_sparse",
             [](const ColumnScaling& scaling, Array1<std::int32_t> columns, Array1<double> values) {
                 in_columns(scaling, columns, values);
                 std::vector<double> out(values.size());
                 scaling.scale_sparse(values.size(), columns.data(), values.data(), out.data());
                 return array_of(std::move(out));
             })
        .def("state",
             [](const ColumnScaling& scaling) { return stacked({&scaling.first, &scaling.low, &scaling.high}); })
        .def("restore", [](ColumnScaling& scaling, Array2<double> state, std::uint64_t seen) {
            ColumnScaling read(scaling.by_range, scaling.warmup);
            unstack(state, {&read.first, &read.low, &read.high});
            read.seen = seen;
            scaling = std::move(read);
        });

    scaling_class<RankScaling>(m, "RankScaling")
        .def(
            "__init__",
            [](RankScaling* self, std::optional<std::uint64_t> warmup) {
                new (self) RankScaling(warmup.value_or(std::numeric_limits<std::uint64_t>::max()));
            },
            nb::arg("warmup").none())
        .def_prop_ro("due", &RankScaling::due)
        .def_prop_ro("renewals", &RankScaling::renewals)
        .def_prop_ro("bytes", &RankScaling::bytes)
        .def(
            "follow",
            [](const RankScaling& scaling, Array2<double> rows) {
                return mapped(scaling, rows, [&](auto... given) { scaling.follow(given...); });
            },
            "Rows that were scaled before the last renewal, as they are scaled now.")
        .def(
            "values",
            [](const RankScaling& scaling, Array2<double> rows) {
                return mapped(scaling, rows, [&](auto... given) { scaling.values(given...); });
            },
            "Values that are scaled to these numbers.")
        .def_static("merged",
                    [](const std::vector<const RankScaling*>& parts) {
                        for (const RankScaling* part : parts)
                            if (part->seen == 0 || part->width() != parts[0]->width())
                                throw nb::value_error("scalings of one width that have seen events");
                        if (parts.empty()) throw nb::value_error("at least one scaling");
                        return RankScaling::merged(parts);
                    })
        .def_prop_ro(
            "sample",
            [](const RankScaling& scaling) {
                const auto rows = scaling.sample();
                const std::size_t width = scaling.width();
                return array_of(std::vector<double>(rows.begin(), rows.end()),
                                {width ? rows.size() / width : 0, width});
            },
            "Rows of the sample that the maps are measured from.")
        .def(
            "maps",
            [](const RankScaling& scaling) {
                nb::list found;
                for (std::size_t c = 0; c < scaling.width(); ++c) {
                    const auto knots = scaling.map(c).knots(), scores = scaling.map(c).scores();
                    found.append(nb::make_tuple(array_of(std::vector<double>(knots.begin(), knots.end())),
                                                array_of(std::vector<double>(scores.begin(), scores.end()))));
                }
                return found;
            },
            "The knots of each column's map, and what they are scaled to.")
        .def("state",
             [](RankScaling& scaling) {
                 Archive archive;
                 scaling.visit(archive);
                 return to_dict(std::move(archive));
             })
        .def("restore", [](RankScaling& scaling, nb::dict state) {
            Archive archive = from_dict(state);
            RankScaling read(scaling.warmup);
            read.visit(archive);
            scaling = std::move(read);
        });

    m.def("normal_quantile", [](Array1<double> shares) {
        std::vector<double> found(shares.data(), shares.data() + shares.size());
        for (double& share : found) share = normal_quantile(share);
        return array_of(std::move(found));
    });
    m.def("is_finite", [](Array2<double> rows) { return finite(rows.data(), rows.size()); });
}

}  // namespace gristmill::bind
