// Random maps and the linear learner over mapped rows.
#include <atomic>
#include <cmath>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "bind/bind.hpp"
#include "core/linear.hpp"
#include "core/maps.hpp"

namespace gristmill::bind {

namespace {

template <class T>
nb::ndarray<nb::numpy, T> new_array(std::vector<std::size_t> shape) {
    std::size_t total = 1;
    for (const std::size_t n : shape) total *= n;
    auto* data = new T[total > 0 ? total : 1];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::ndarray<nb::numpy, T>(data, shape.size(), shape.data(), owner);
}

template <class T>
nb::object array_of(const std::vector<T>& values, std::vector<std::size_t> shape) {
    auto out = new_array<T>(std::move(shape));
    std::copy(values.begin(), values.end(), out.data());
    return nb::cast(out);
}

// ---- the map ------------------------------------------------------------------------------------------------------

Features features_from(Array1<std::int32_t> degrees, Array1<double> weights) {
    return {{degrees.data(), degrees.data() + degrees.shape(0)}, {weights.data(), weights.data() + weights.shape(0)}};
}

// Fills the last columns of `out`, which NumPy allocates (in huge pages) and whose first ones are the caller's.
template <class T>
void transform(const MaclaurinMap<T>& map, nb::handle source, nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu> out) {
    const Rows rows = rows_from(source);
    if (!std::holds_alternative<DenseRows<T>>(rows.batch) && !std::holds_alternative<SparseRows<T>>(rows.batch))
        throw nb::type_error("the rows do not have the precision of the map");
    if (rows.width != map.width())
        throw nb::value_error(("X has " + std::to_string(rows.width) + " features, but the map was drawn for " +
                               std::to_string(map.width())).c_str());
    const std::size_t count = batch_count(rows.batch), stride = out.shape(1);
    if (out.shape(0) != count || stride < map.columns()) throw nb::value_error("the output does not fit");
    try {
        nb::gil_scoped_release release;
        map.transform(rows.batch, 0, count, out.data() + (stride - map.columns()), stride);
    } catch (const RowError&) {
        check_rows(rows, Kernel());  // a NaN in the input shows in the features; its own message is the better one
        throw;
    }
}

template <class T>
void bind_map(nb::module_& m, const char* name) {
    using Map = MaclaurinMap<T>;
    nb::class_<Map>(m, name)
        .def("__init__", [](Map* self, std::size_t width, Array1<std::int32_t> degrees, Array1<double> weights,
                            Array1<std::int32_t> pair_degrees, Array1<double> pair_weights, bool structured,
                            std::uint64_t seed) {
            new (self) Map(width, features_from(degrees, weights), features_from(pair_degrees, pair_weights), structured,
                           seed);
        })
        .def("transform", &transform<T>, nb::arg("rows"), nb::arg("out"))
        .def_prop_ro("columns", &Map::columns)
        .def_prop_ro("memory_bytes", &Map::bytes);
}

// ---- the learner --------------------------------------------------------------------------------------------------

class PyLinear {
  public:
    PyLinear(std::size_t width, nb::handle rule, const std::string& task, std::size_t outputs, bool average)
        : learner_(width, rule_from(rule, task), task_from(task, outputs), outputs, average) {}

    nb::object learn(nb::handle source, Array1<double> labels, std::optional<Array1<double>> weights, bool want) {
        const Rows rows = checked(source);
        const std::size_t count = batch_count(rows.batch);
        const std::span<const double> y(labels.data(), labels.shape(0));
        const std::span<const double> w = weights ? std::span(weights->data(), weights->shape(0)) : std::span<const double>();
        std::vector<double> scores(want ? count * learner_.outputs() : 0);
        refuse_reentry();
        {
            nb::gil_scoped_release release;
            std::unique_lock lock(mutex_);
            writer_ = std::this_thread::get_id();
            struct Leave {
                std::atomic<std::thread::id>& writer;
                ~Leave() { writer = std::thread::id(); }
            } leave{writer_};
            dense(rows, [&](const auto& d) { learner_.learn(d, y, w, want ? scores.data() : nullptr); });
        }
        if (!want) return nb::none();
        return nb::cast(doubles(scores.data(), {count, learner_.outputs()}));
    }

    Doubles score(nb::handle source) const {
        const Rows rows = checked(source);
        const std::size_t count = batch_count(rows.batch);
        std::vector<double> scores;
        refuse_reentry();
        {
            nb::gil_scoped_release release;
            std::shared_lock lock(mutex_);
            scores.resize(count * learner_.outputs());
            dense(rows, [&](const auto& d) { learner_.score(d, scores.data()); });
        }
        return doubles(scores.data(), {count, learner_.outputs()});
    }

    nb::dict state() const;
    void restore(nb::dict state);
    LinearLearner& learner() { return learner_; }
    const LinearLearner& learner() const { return learner_; }

  private:
    static Task task_from(const std::string& name, std::size_t outputs) {
        if (name == "regression") return Task::regression;
        if (name == "novelty") return Task::novelty;
        return outputs > 1 ? Task::multiclass : Task::binary;
    }
    Rows checked(nb::handle source) const {
        Rows rows = rows_from(source);
        if (!std::holds_alternative<DenseRows<double>>(rows.batch) && !std::holds_alternative<DenseRows<float>>(rows.batch))
            throw nb::type_error("mapped rows must be a C-ordered float array");
        if (rows.width != learner_.weights().width())
            throw nb::value_error(("the map gave " + std::to_string(rows.width) + " features, but the model was started with " +
                                   std::to_string(learner_.weights().width())).c_str());
        return rows;
    }
    template <class F>
    static void dense(const Rows& rows, F f) {
        if (const auto* d = std::get_if<DenseRows<double>>(&rows.batch)) return f(*d);
        f(std::get<DenseRows<float>>(rows.batch));
    }
    void refuse_reentry() const {
        if (writer_.load() == std::this_thread::get_id())
            throw std::runtime_error("the model is learning: a rule must not call the model that calls it");
    }

    LinearLearner learner_;
    mutable std::shared_mutex mutex_;
    std::atomic<std::thread::id> writer_{};
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

nb::dict PyLinear::state() const {
    const auto now = learner_.weights().state();
    const std::size_t width = learner_.weights().width();
    const auto& counts = learner_.counts();
    nb::dict out;
    out["weights"] = array_of(flat(now.values, width), {now.values.size(), width});
    out["sum"] = array_of(flat(now.sum, width), {now.sum.size(), width});
    out["scale"] = array_of(std::vector<double>{now.scale, counts.margins}, {2});
    out["counters"] = array_of(std::vector<std::uint64_t>{now.ticks, counts.seen, counts.steps}, {3});
    const auto rule = learner_.rule_state();
    out["rule"] = array_of(rule, {rule.size()});
    out["intercept"] = array_of(counts.intercept, {counts.intercept.size()});
    out["intercept_sum"] = array_of(counts.intercept_sum, {counts.intercept_sum.size()});
    return out;
}

void PyLinear::restore(nb::dict state) {
    const auto weights = nb::cast<Array2<double>>(state["weights"]), sum = nb::cast<Array2<double>>(state["sum"]);
    const auto scale = nb::cast<Array1<double>>(state["scale"]), rule = nb::cast<Array1<double>>(state["rule"]),
               intercept = nb::cast<Array1<double>>(state["intercept"]),
               intercept_sum = nb::cast<Array1<double>>(state["intercept_sum"]);
    const auto counters = nb::cast<Array1<std::uint64_t>>(state["counters"]);
    const std::size_t width = learner_.weights().width();
    if (weights.shape(1) != width || (sum.shape(0) > 0 && sum.shape(1) != width) || scale.shape(0) != 2 ||
        counters.shape(0) != 3)
        throw nb::value_error("the saved arrays do not fit together");
    auto finite = [](const auto& a) {
        return std::all_of(a.data(), a.data() + a.size(), [](double x) { return std::isfinite(x); });
    };
    if (!finite(weights) || !finite(sum) || !finite(scale) || !finite(rule) || !finite(intercept) || !finite(intercept_sum))
        throw nb::value_error("a saved number is not finite");
    learner_.restore({counters.data()[1], counters.data()[2],
                      {intercept.data(), intercept.data() + intercept.shape(0)},
                      {intercept_sum.data(), intercept_sum.data() + intercept_sum.shape(0)}, scale.data()[1]},
                     {rule.data(), rule.shape(0)}, {unflat(weights), unflat(sum), scale.data()[0], 0, counters.data()[0]});
}

}  // namespace

void bind_features(nb::module_& m) {
    bind_map<double>(m, "MaclaurinMap64");
    bind_map<float>(m, "MaclaurinMap32");
    nb::class_<PyLinear>(m, "LinearLearner")
        .def(nb::init<std::size_t, nb::handle, const std::string&, std::size_t, bool>(), nb::arg("width"), nb::arg("rule"),
             nb::arg("task"), nb::arg("outputs"), nb::arg("average"))
        .def("learn", &PyLinear::learn, nb::arg("rows"), nb::arg("labels"), nb::arg("weights").none(), nb::arg("want_scores"))
        .def("score", &PyLinear::score)
        .def("add_class", [](PyLinear& l) { l.learner().add_class(); })
        .def("state", &PyLinear::state)
        .def("restore", &PyLinear::restore)
        .def("coef", [](const PyLinear& l) {
            const Weights& w = l.learner().weights();
            std::vector<double> values;
            for (std::size_t o = 0; o < w.outputs(); ++o)
                for (std::size_t i = 0; i < w.width(); ++i) values.push_back(w.averages() ? w.average_at(o, i) : w.at(o, i));
            return doubles(values.data(), {w.outputs(), w.width()});
        })
        .def("intercept", [](const PyLinear& l) {
            std::vector<double> b(l.learner().intercept().begin(), l.learner().intercept().end());
            if (l.learner().weights().averages())
                for (std::size_t o = 0; o < b.size(); ++o) b[o] = l.learner().average_intercept(o);
            return doubles(b.data(), {b.size()});
        })
        .def("rule_state", [](const PyLinear& l) { return l.learner().rule_state(); })
        .def_prop_ro("outputs", [](const PyLinear& l) { return l.learner().outputs(); })
        .def_prop_ro("width", [](const PyLinear& l) { return l.learner().weights().width(); })
        .def_prop_ro("seen", [](const PyLinear& l) { return l.learner().counts().seen; })
        .def_prop_ro("memory_bytes", [](const PyLinear& l) { return l.learner().bytes(); })
        .def_prop_ro("norm2", [](const PyLinear& l) { return l.learner().weights().exact_norm2(); })
        .def_prop_ro("margin", [](const PyLinear& l) { return l.learner().margin(); });
}

}  // namespace gristmill::bind
