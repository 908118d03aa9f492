// The learner as Python sees it: one lock, the GIL released, state in and out as plain arrays.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "bind/bind.hpp"
#include "bind/guarded.hpp"
#include "core/learner.hpp"
#include "core/sparse_points.hpp"

namespace gristmill::bind {

namespace {

Task task_from(const std::string& name, std::size_t outputs) {
    if (name == "regression") return Task::regression;
    if (name == "novelty") return Task::novelty;
    return outputs > 1 ? Task::multiclass : Task::binary;
}

// Lets Ctrl-C through during a long chunk, at most ten times a second.
struct Interrupts {
    std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
    void operator()() {
        const auto now = std::chrono::steady_clock::now();
        if (now - last < std::chrono::milliseconds(100)) return;
        last = now;
        nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
};

// Learning is single-writer, predicting may run beside other predicting.
class PyLearner : public Guarded<Learner> {
  public:
    PyLearner(nb::handle kernel, nb::handle rule, nb::handle budget, const std::string& task, std::size_t outputs,
              std::size_t width, bool sparse, bool single, bool average, std::uint64_t seed)
        : Guarded(is_foreign(kernel) ? Kernel() : kernel_from(kernel),
                  is_foreign(kernel) ? foreign_points(nb::borrow(kernel)) : make_points(width, sparse, single),
                  rule_from(rule, task), budget_from(budget), task_from(task, outputs), outputs, average, seed),
          foreign_(is_foreign(kernel)), sparse_(!foreign_ && sparse && width > 1024), single_(single), average_(average),
          width_(width) {}
    PyLearner(const PyLearner&) = delete;

    void check(const Rows& rows) const {
        if (!std::holds_alternative<ForeignRows>(rows.batch) && rows.width != width_)
            throw nb::value_error(("X has " + std::to_string(rows.width) + " features, but the model was started with " +
                                   std::to_string(width_)).c_str());
        check_rows(rows, learner_.expansion().kernel());
    }

    nb::object learn(nb::handle source, Array1<double> labels, std::optional<Array1<double>> weights, bool want) {
        const Rows rows = rows_from(source);
        check(rows);
        const std::size_t count = batch_count(rows.batch);
        const std::span<const double> y(labels.data(), labels.shape(0));
        const std::span<const double> w = weights ? std::span(weights->data(), weights->shape(0)) : std::span<const double>();
        std::vector<double> scores(want ? count * learner_.outputs() : 0);
        as_writer([&](Learner& learner) {
            learner.poll = Interrupts();
            learner.learn(rows.batch, y, w, want ? scores.data() : nullptr);
            learner.poll = nullptr;
        });
        if (!want) return nb::none();
        return nb::cast(doubles(scores.data(), {count, learner_.outputs()}));
    }

    void revisit(nb::handle source, Array1<double> labels, std::optional<Array1<double>> weights, std::int64_t start) {
        const Rows rows = rows_from(source);
        check(rows);
        const std::span<const double> w = weights ? std::span(weights->data(), weights->shape(0)) : std::span<const double>();
        as_writer([&](Learner& learner) {
            learner.poll = Interrupts();
            learner.revisit(rows.batch, {labels.data(), labels.shape(0)}, w, start);
            learner.poll = nullptr;
        });
    }

    // The short way for one event: no chunk, no copies.
    void learn_one(Array1<double> x, double label, double weight) {
        Rows rows;
        rows.batch = DenseRows<double>{x.data(), 1, x.shape(0)};
        rows.width = x.shape(0);
        check(rows);
        as_writer([&](Learner& learner) { learner.learn(rows.batch, {&label, 1}, {&weight, 1}, nullptr); });
    }
    double score_one(Array1<double> x) const {
        Rows rows;
        rows.batch = DenseRows<double>{x.data(), 1, x.shape(0)};
        rows.width = x.shape(0);
        check(rows);
        double score = 0;
        as_reader([&](const Learner& learner) { learner.score(rows.batch, &score); });
        return score;
    }

    Doubles score(nb::handle source) const {
        const Rows rows = rows_from(source);
        check(rows);
        const std::size_t count = batch_count(rows.batch);
        std::vector<double> scores;
        as_reader([&](const Learner& learner) {
            scores.resize(count * learner.outputs());
            learner.score(rows.batch, scores.data());
        });
        return doubles(scores.data(), {count, learner_.outputs()});
    }

    Doubles dual_coef() const {
        const auto& f = learner_.expansion();
        std::vector<double> coefs;
        for (std::size_t s = 0; s < f.size(); ++s)
            for (std::size_t o = 0; o < f.visible(); ++o)
                coefs.push_back(f.averages() ? f.average_coef(s, o) : f.coef(s, o));
        return doubles(coefs.data(), {f.size(), f.visible()});
    }
    Doubles intercept() const {
        std::vector<double> b(learner_.intercept().begin(), learner_.intercept().end());
        if (average_)
            for (std::size_t o = 0; o < b.size(); ++o) b[o] = learner_.average_intercept(o);
        return doubles(b.data(), {b.size()});
    }

    nb::object points() const {
        const Points& points = learner_.expansion().points();
        if (foreign_) return foreign_objects(points);
        return single_ ? points_as<float>(points) : points_as<double>(points);
    }

    nb::dict state() const;
    void restore(nb::dict state);
    void restore_spans(nb::dict state, std::size_t n);

    bool is_sparse() const { return sparse_; }
    // Dense doubles and no Python inside: an event can take the short way.
    bool is_plain() const {
        return !foreign_ && !sparse_ && !single_ && !std::holds_alternative<Foreign>(learner_.rule()) &&
               !std::holds_alternative<ForeignBudgetPart>(learner_.budget());
    }
    bool is_single() const { return single_; }
    std::size_t width() const { return width_; }
    const Learner& learner() const { return learner_; }
    Learner& learner() { return learner_; }

  private:
    template <class T>
    static nb::object array(std::vector<T> values, std::vector<std::size_t> shape) {
        auto* kept = new std::vector<T>(std::move(values));
        nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
        return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.data(), owner));
    }

    template <class T>
    nb::object points_as(const Points& points) const {
        if (!sparse_) {
            std::vector<T> values(points.size() * width_);
            for (std::size_t s = 0; s < points.size(); ++s)
                static_cast<const DensePoints<T>&>(points).copy_out(s, values.data() + s * width_);
            return array(std::move(values), {points.size(), width_});
        }
        std::vector<std::int64_t> start{0};
        std::vector<std::int32_t> column;
        std::vector<T> value;
        for (std::size_t s = 0; s < points.size(); ++s) {
            const auto& row = static_cast<const SparsePoints<T>&>(points).row(s);
            column.insert(column.end(), row.columns.begin(), row.columns.end());
            value.insert(value.end(), row.values.begin(), row.values.end());
            start.push_back(static_cast<std::int64_t>(column.size()));
        }
        const std::size_t rows = start.size(), nonzeros = column.size();
        return nb::make_tuple(array(std::move(start), {rows}), array(std::move(column), {nonzeros}),
                              array(std::move(value), {nonzeros}), width_);
    }

    static bool is_foreign(nb::handle kernel) { return PyCallable_Check(kernel.ptr()); }

    bool foreign_, sparse_, single_, average_;
    std::size_t width_;
};

std::vector<double> flat(const std::vector<Lines<double>>& lines, std::size_t n) {
    std::vector<double> all;
    for (const auto& line : lines) all.insert(all.end(), line.begin(), line.begin() + static_cast<std::ptrdiff_t>(n));
    return all;
}

std::vector<Lines<double>> unflat(Array2<double> values) {
    std::vector<Lines<double>> lines;
    for (std::size_t o = 0; o < values.shape(0); ++o) {
        Lines<double> line(padded(values.shape(1)));
        std::copy(values.data() + o * values.shape(1), values.data() + (o + 1) * values.shape(1), line.begin());
        lines.push_back(std::move(line));
    }
    return lines;
}

nb::dict PyLearner::state() const {
    const auto& f = learner_.expansion();
    const auto now = f.state();
    const auto& m = learner_.mutables();
    auto listed = [](const std::vector<double>& values) { return doubles(values.data(), {values.size()}); };
    nb::dict out;
    out["points"] = points();
    out["ids"] = array(std::vector<std::int64_t>(f.points().ids().begin(), f.points().ids().end()), {f.size()});
    out["coef"] = doubles(flat(now.coef, f.size()).data(), {now.coef.size(), f.size()});
    out["lag"] = doubles(flat(now.lag, f.size()).data(), {now.lag.size(), f.size()});
    out["sum"] = doubles(flat(now.sum, f.size()).data(), {now.sum.size(), f.size()});
    out["inner"] = listed(now.inner);
    out["scalars"] = listed({now.scale, now.doubt, now.floor, now.weight, m.margins});
    out["counters"] = array(std::vector<std::uint64_t>{now.ticks, m.seen, m.steps, m.ticks, m.random.seed, m.random.counter}, {6});
    out["rule"] = listed(learner_.rule_state());
    out["budget"] = listed(learner_.budget_state());
    out["intercept"] = doubles(learner_.intercept().data(), {learner_.outputs()});
    out["intercept_sum"] = doubles(learner_.intercept_sum().data(), {learner_.outputs()});
    // The factor of a projecting budget is not kept: the points give it again, bit for bit.
    std::vector<std::int64_t> members, sizes;
    std::vector<double> coordinates, coordinate_sums;
    if (learner_.projections())
        for (const Span& span : learner_.projections()->spans()) {
            const auto n = static_cast<std::ptrdiff_t>(span.size());
            sizes.push_back(n);
            members.insert(members.end(), span.members().begin(), span.members().end());
            coordinates.insert(coordinates.end(), span.coordinates().begin(), span.coordinates().begin() + n);
            coordinate_sums.insert(coordinate_sums.end(), span.coordinate_sum().begin(), span.coordinate_sum().begin() + n);
        }
    const std::size_t n_members = members.size(), n_spans = sizes.size();
    out["members"] = array(std::move(members), {n_members});
    out["span_sizes"] = array(std::move(sizes), {n_spans});
    out["coordinates"] = listed(coordinates);
    out["coordinate_sums"] = listed(coordinate_sums);
    return out;
}

void PyLearner::restore(nb::dict state) {
    auto refuse = [](const char* what) { throw nb::value_error(what); };
    auto numbers = [&](const char* name) { return nb::cast<Array1<double>>(state[name]); };
    auto table = [&](const char* name) { return nb::cast<Array2<double>>(state[name]); };
    auto view = [](const Array1<double>& a) { return std::span<const double>(a.data(), a.shape(0)); };
    const Rows rows = rows_from(state["points"]);
    if (!foreign_) check(rows);
    const auto ids = nb::cast<Array1<std::int64_t>>(state["ids"]);
    const auto coef = table("coef"), lag = table("lag"), sum = table("sum");
    const auto inner = numbers("inner"), scalars = numbers("scalars"), rule = numbers("rule"), budget = numbers("budget"),
               intercept = numbers("intercept"), intercept_sum = numbers("intercept_sum");
    const auto counters = nb::cast<Array1<std::uint64_t>>(state["counters"]);
    Expansion& f = learner_.expansion_to_restore();
    const std::size_t n = ids.shape(0), averaged = f.averages() ? f.outputs() : 0;
    if (f.size() != 0) refuse("only a fresh learner can be restored");
    if (batch_count(rows.batch) != n || coef.shape(0) != f.outputs() || coef.shape(1) != n || lag.shape(0) != averaged ||
        sum.shape(0) != averaged || (averaged && (lag.shape(1) != n || sum.shape(1) != n)) ||
        inner.shape(0) != (f.tracks_norm() ? f.outputs() * f.outputs() : 0) || scalars.shape(0) != 5 ||
        counters.shape(0) != 6)
        refuse("the saved arrays do not fit together");
    constexpr std::uint64_t longest = std::uint64_t{1} << 62;  // no stream is that long
    const bool revisits = std::holds_alternative<Adatron>(learner_.rule());  // more steps than events, in several passes
    const auto* counted = counters.data();
    if (counted[1] > longest || counted[2] > (revisits ? longest : counted[1]) || counted[0] > longest || counted[3] > longest)
        refuse("the saved counters are not those of a stream");
    auto finite = [](const auto& a) {
        return std::all_of(a.data(), a.data() + a.size(), [](double x) { return std::isfinite(x); });
    };
    for (const auto& a : {coef, lag, sum})
        if (!finite(a)) refuse("a saved number is not finite");
    for (const auto& a : {inner, scalars, rule, budget, intercept, intercept_sum})
        if (!finite(a)) refuse("a saved number is not finite");
    if (scalars.data()[0] == 0) refuse("the saved scale is 0");
    std::vector<std::int64_t> sorted(ids.data(), ids.data() + n);
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end() || (n > 0 && sorted[0] < 0) ||
        (n > 0 && static_cast<std::uint64_t>(sorted.back()) >= counters.data()[1]))
        refuse("the saved stream positions are not distinct positions of the stream");
    f.reserve(n);
    for (std::size_t s = 0; s < n; ++s) f.points_to_restore().put(s, ids.data()[s], rows.batch, s);
    f.points_to_restore().order_by_id();
    const auto* c = counters.data();
    learner_.restore({c[1], c[2], c[3], {c[4], c[5]}, scalars.data()[4]}, view(rule), view(budget), view(intercept), view(intercept_sum));
    const double* s = scalars.data();
    f.restore({unflat(coef), unflat(lag), unflat(sum), {inner.data(), inner.data() + inner.shape(0)}, s[0], s[1], s[2], s[3],
               c[0]});
    if (learner_.projections()) restore_spans(state, n);
}

void PyLearner::restore_spans(nb::dict state, std::size_t n) {
    const auto members = nb::cast<Array1<std::int64_t>>(state["members"]);
    const auto sizes = nb::cast<Array1<std::int64_t>>(state["span_sizes"]);
    const auto g = nb::cast<Array1<double>>(state["coordinates"]), sums = nb::cast<Array1<double>>(state["coordinate_sums"]);
    auto refuse = [] { throw nb::value_error("the saved coordinates do not fit together"); };
    if (sizes.shape(0) != learner_.outputs() || g.shape(0) != members.shape(0) || sums.shape(0) != members.shape(0)) refuse();
    std::vector<std::vector<std::size_t>> slots;
    std::vector<std::vector<double>> coordinates, coordinate_sums;
    std::size_t at = 0;
    for (std::size_t o = 0; o < sizes.shape(0); ++o) {
        const auto size = sizes.data()[o];
        if (size < 0 || static_cast<std::size_t>(size) > n || at + static_cast<std::size_t>(size) > members.shape(0)) refuse();
        const std::size_t end = at + static_cast<std::size_t>(size);
        slots.emplace_back();
        for (std::size_t k = at; k < end; ++k) {
            const auto slot = members.data()[k];
            if (slot < 0 || static_cast<std::size_t>(slot) >= n || !std::isfinite(g.data()[k]) || !std::isfinite(sums.data()[k]))
                refuse();
            slots.back().push_back(static_cast<std::size_t>(slot));
        }
        coordinates.emplace_back(g.data() + at, g.data() + end);
        coordinate_sums.emplace_back(sums.data() + at, sums.data() + end);
        at = end;
    }
    if (at != members.shape(0)) refuse();
    learner_.projections()->restore(learner_.expansion(), slots, coordinates, coordinate_sums);
}

}  // namespace

static std::vector<std::size_t> by_age(const Learner& learner) {  // slots, oldest first
    const Points& points = learner.expansion().points();
    std::vector<std::size_t> slots;
    for (std::size_t s = points.oldest(); s != Points::npos; s = points.newer(s)) slots.push_back(s);
    return slots;
}

void bind_learner(nb::module_& m) {
    nb::class_<PyLearner>(m, "Learner")
        .def(nb::init<nb::handle, nb::handle, nb::handle, const std::string&, std::size_t, std::size_t, bool, bool, bool,
                      std::uint64_t>(),
             nb::arg("kernel"), nb::arg("rule"), nb::arg("budget"), nb::arg("task"), nb::arg("outputs"),
             nb::arg("width"), nb::arg("sparse"), nb::arg("single"), nb::arg("average"), nb::arg("seed"))
        .def("learn", &PyLearner::learn, nb::arg("rows"), nb::arg("labels"), nb::arg("weights").none(), nb::arg("want_scores"))
        .def("revisit", &PyLearner::revisit, nb::arg("rows"), nb::arg("labels"), nb::arg("weights").none(), nb::arg("start"))
        .def("learn_one", &PyLearner::learn_one)
        .def("score_one", &PyLearner::score_one)
        .def("score", &PyLearner::score)
        .def("check", [](const PyLearner& l, nb::handle source) { l.check(rows_from(source)); })
        .def("add_class", [](PyLearner& l) { l.as_writer([](Learner& learner) { learner.add_class(); }); })
        .def("state", [](const PyLearner& l) { return l.as_looker([&](const Learner&) { return l.state(); }); })
        .def("restore", &PyLearner::restore)
        // What is kept a slot, with the slots by age: one look, so that both are of the same moment.
        .def("dual_coef", [](const PyLearner& l) {
            return l.as_looker([&](const Learner& f) { return nb::make_tuple(l.dual_coef(), by_age(f)); });
        })
        .def("points", [](const PyLearner& l) {
            return l.as_looker([&](const Learner& f) { return nb::make_tuple(l.points(), by_age(f)); });
        })
        .def("ids", [](const PyLearner& l) {
            return l.as_looker([](const Learner& f) {
                const auto ids = f.expansion().points().ids();
                return nb::make_tuple(std::vector<std::int64_t>(ids.begin(), ids.end()), by_age(f));
            });
        })
        .def("intercept", [](const PyLearner& l) { return l.as_looker([&](const Learner&) { return l.intercept(); }); })
        .def("rule_state", [](const PyLearner& l) {
            return l.as_looker([](const Learner& learner) { return learner.rule_state(); });
        })
        .def_prop_ro("size", [](const PyLearner& l) { return l.learner().expansion().size(); })
        .def_prop_ro("outputs", [](const PyLearner& l) { return l.learner().outputs(); })
        .def_prop_ro("seen", [](const PyLearner& l) { return l.learner().seen(); })
        .def_prop_ro("width", &PyLearner::width)
        .def_prop_ro("is_sparse", &PyLearner::is_sparse)
        .def_prop_ro("is_single", &PyLearner::is_single)
        .def_prop_ro("is_plain", &PyLearner::is_plain)
        .def_prop_ro("memory_bytes", [](const PyLearner& l) {
            return l.as_looker([](const Learner& learner) { return learner.bytes(); });
        })
        .def_prop_ro("norm2", [](const PyLearner& l) {
            return l.as_looker([](const Learner& learner) { return learner.norm2(); });
        })
        .def("budget_state", [](const PyLearner& l) {
            return l.as_looker([](const Learner& learner) { return learner.budget_state(); });
        })
        .def_prop_ro("margin", [](const PyLearner& l) {
            return l.as_looker([](const Learner& learner) { return learner.margin(); });
        });
}

}  // namespace gristmill::bind
