// Bindings of hypotheses over (input, label) pairs.
#include "bind/bind.hpp"
#include "bind/learners/bound_learner.hpp"
#include "core/kernels/check.hpp"
#include "core/structured/viterbi.hpp"

namespace gristmill::bind {

namespace {

using Symbols = Array1<std::int32_t>;
using Starts = Array1<std::int64_t>;

Label label_of(const Symbols& symbols) { return {symbols.data(), symbols.shape(0)}; }

JointSettings settings_from(nb::dict spec) {
    using Rule = JointSettings::Rule;
    using Drop = JointSettings::Drop;
    JointSettings s;
    const auto rule = get<std::string>(spec, "rule"), drop = get<std::string>(spec, "drop");
    s.rule = rule == "Implicit"           ? Rule::implicit
             : rule == "MarginProjection" ? Rule::margin_projection
                                          : Rule::perceptron;
    s.drop = drop == "DropOldest"     ? Drop::oldest
             : drop == "DropSmallest" ? Drop::smallest
             : drop == "DropRandom"   ? Drop::random
                                      : Drop::nothing;
    s.squared = get<bool>(spec, "squared");
    s.C = get<double>(spec, "C");
    s.rate = get<double>(spec, "rate");
    s.reg = get<double>(spec, "reg");
    s.size = s.drop == Drop::nothing ? Points::npos : get<std::size_t>(spec, "size");
    s.uniform = get<bool>(spec, "uniform");
    s.projects = drop == "Project";
    s.tolerance = get<double>(spec, "tolerance");
    s.average = get<bool>(spec, "average");
    s.transitions = get<double>(spec, "transitions");
    return s;
}

// A sample whose kernel values come from Python: `row(label)` at all functions, `cross(a, b)`.
class GivenSample final : public JointSample {
  public:
    GivenSample(nb::handle row, nb::handle cross) : row_(row), cross_(cross) {}
    void row(Label label, double* out) override {
        const auto values = nb::cast<Array1<double>>(row_(label[0]));
        std::copy_n(values.data(), values.shape(0), out);
    }
    double cross(Label a, Label b) override { return nb::cast<double>(cross_(a[0], b[0])); }
    std::vector<std::size_t> store() override { return {0}; }
    void removed(std::size_t) override {}

  private:
    nb::handle row_, cross_;
};

template <class T>
nb::ndarray<nb::numpy, T> array_from(std::span<const T> values) {
    return array_of(std::vector<T>(values.begin(), values.end()));
}
nb::ndarray<nb::numpy, std::int64_t> array_from(std::span<const std::size_t> values) {
    return array_of(std::vector<std::int64_t>(values.begin(), values.end()));
}

struct PyJoint {
    JointExpansion f;

    Rows checked(nb::handle source) const {
        Rows rows = rows_from(source);
        if (rows.width != f.points().width())
            throw nb::value_error(("X has " + std::to_string(rows.width) + " features, but the model expects " +
                                   std::to_string(f.points().width()))
                                      .c_str());
        check_rows(rows.batch, f.kernel());
        return rows;
    }
};

std::vector<std::int64_t> starts_of(const Starts& given, const Rows& rows) {
    std::vector<std::int64_t> start(given.data(), given.data() + given.shape(0));
    if (start.empty() || start.front() != 0 || start.back() != static_cast<std::int64_t>(batch_count(rows.batch)))
        throw nb::value_error("the samples do not cover the rows");
    for (std::size_t i = 1; i < start.size(); ++i)
        if (start[i] <= start[i - 1]) throw nb::value_error("a sample has no rows");
    return start;
}

// Samples of a chunk, one after the other, for a search in Python.
class PySamples {
  public:
    PySamples(PyJoint& joint, nb::handle source, Starts start)
        : f_(joint.f), rows_(joint.checked(source)), start_(starts_of(start, rows_)) {
        samples_.emplace(f_, rows_.batch, start_);
    }
    void at(std::size_t i) {
        if (i + 1 >= start_.size()) throw nb::index_error("no such sample");
        samples_->at(i);
    }
    nb::ndarray<nb::numpy, double> row_scores(std::size_t symbols, bool average) {
        check(symbols);
        std::vector<double> out(samples_->rows() * symbols);
        f_.row_scores(f_.weights(average), samples_->values(), samples_->stride(), samples_->rows(), symbols,
                      out.data());
        const std::size_t rows = samples_->rows();
        return array_of(std::move(out), {rows, symbols});
    }
    void learn(Symbols y, Symbols rival, double margin, double cost, double weight) {
        if (y.shape(0) != samples_->rows() || rival.shape(0) != samples_->rows())
            throw nb::value_error("a label must have one symbol per row");
        f_.learn(*samples_, label_of(y), label_of(rival), margin, cost, weight);
    }

  private:
    void check(std::size_t symbols) const {
        for (const std::int32_t symbol : f_.symbols())
            if (static_cast<std::size_t>(symbol) >= symbols)
                throw nb::value_error("fewer symbols than the hypothesis has");
    }
    JointExpansion& f_;
    Rows rows_;
    std::vector<std::int64_t> start_;
    std::optional<JointLookahead> samples_;
};

nb::object learn_all_classes(PyJoint& joint, nb::handle source, Symbols labels, std::optional<Array1<double>> weights,
                             std::optional<Array2<double>> costs, std::size_t classes, bool want) {
    const Rows rows = joint.checked(source);
    const std::size_t count = batch_count(rows.batch);
    const Label y = label_of(labels);
    const bool fits = y.size() == count && classes >= 2 && (!weights || weights->shape(0) == count) &&
                      (!costs || (costs->shape(0) == classes && costs->shape(1) == classes)) &&
                      std::all_of(y.begin(), y.end(),
                                  [&](std::int32_t c) { return c >= 0 && static_cast<std::size_t>(c) < classes; });
    if (!fits) throw nb::value_error("rows, labels, weights and costs do not fit together");
    std::vector<double> scores(want ? count * classes : 0);
    {
        nb::gil_scoped_release release;
        Interrupts interrupts;
        const auto span_of = [](const auto& a) {
            return a ? std::span(a->data(), a->size()) : std::span<const double>();
        };
        learn_classes(joint.f, rows.batch, y, span_of(weights), span_of(costs), classes, want ? scores.data() : nullptr,
                      [&] { interrupts(); });
    }
    return want ? nb::cast(array_of(std::move(scores), {count, classes})) : nb::none();
}

// cost: None, or a function of the position of a sample and the symbols of a rival.
nb::object learn_all_sequences(PyJoint& joint, nb::handle source, Starts starts, Symbols labels,
                               std::optional<Array1<double>> weights, nb::object cost, std::size_t symbols, bool want) {
    const Rows rows = joint.checked(source);
    const auto start = starts_of(starts, rows);
    const Label y = label_of(labels);
    const bool fits = y.size() == batch_count(rows.batch) && symbols >= 2 &&
                      (!weights || weights->shape(0) + 1 == start.size()) &&
                      std::all_of(y.begin(), y.end(),
                                  [&](std::int32_t c) { return c >= 0 && static_cast<std::size_t>(c) < symbols; });
    if (!fits) throw nb::value_error("rows, labels and weights do not fit together");
    std::vector<std::int32_t> best(want ? y.size() : 0);
    std::function<double(std::size_t, Label)> price;
    if (!cost.is_none())
        price = [&](std::size_t i, Label rival) { return nb::cast<double>(cost(i, array_from(rival))); };
    {
        std::optional<nb::gil_scoped_release> release;
        if (cost.is_none()) release.emplace();
        Interrupts interrupts;
        learn_sequences(joint.f, rows.batch, start, y,
                        weights ? std::span(weights->data(), weights->size()) : std::span<const double>(), symbols,
                        price, want ? best.data() : nullptr, [&] { interrupts(); });
    }
    return want ? nb::cast(array_of(std::move(best))) : nb::none();
}

nb::ndarray<nb::numpy, std::int32_t> all_best_sequences(PyJoint& joint, nb::handle source, Starts starts,
                                                        std::size_t symbols, bool average) {
    const Rows rows = joint.checked(source);
    const auto start = starts_of(starts, rows);
    std::vector<std::int32_t> out;
    {
        nb::gil_scoped_release release;
        out = best_sequences(joint.f, rows.batch, start, symbols, average);
    }
    return array_of(std::move(out));
}

nb::ndarray<nb::numpy, double> all_row_scores(PyJoint& joint, nb::handle source, std::size_t symbols, bool average) {
    const Rows rows = joint.checked(source);
    const std::size_t count = batch_count(rows.batch);
    std::vector<double> out(count * symbols);
    {
        nb::gil_scoped_release release;
        std::vector<std::int64_t> start(count + 1);
        for (std::size_t i = 0; i <= count; ++i) start[i] = static_cast<std::int64_t>(i);
        JointLookahead samples(joint.f, rows.batch, start);
        const auto weights = joint.f.weights(average);
        for (std::size_t i = 0; i < count; ++i) {
            samples.at(i);
            joint.f.row_scores(weights, samples.values(), samples.stride(), 1, symbols, out.data() + i * symbols);
            for (std::size_t c = 0; c < symbols; ++c)
                if (!std::isfinite(out[i * symbols + c]))
                    throw RowError(i, "row " + std::to_string(i) + ": a score is not finite; scale the inputs");
        }
    }
    return array_of(std::move(out), {count, symbols});
}

nb::dict state_of(const PyJoint& joint) {
    const JointExpansion& f = joint.f;
    const auto s = f.state();
    nb::dict out;
    out["ids"] = array_from(std::span<const std::int64_t>(s.ids));
    out["first_row"] = array_from(std::span<const std::size_t>(s.first_row));
    out["of"] = array_from(std::span<const std::size_t>(s.of));
    out["first_symbol"] = array_from(std::span<const std::size_t>(s.first_symbol));
    out["symbols"] = array_from(std::span<const std::int32_t>(s.symbols));
    out["coef"] = array_from(std::span<const double>(s.coef));
    out["total"] = array_from(std::span<const double>(s.total));
    const std::size_t side = f.settings().projects ? f.functions() : 0;
    out["factor"] = array_of(std::vector<double>(s.factor), {side, side});
    out["counters"] = array_of(std::vector<std::uint64_t>{s.seen, s.ticks, s.draws, s.random.seed, s.random.counter});
    return out;
}

// requires: the arrays fit together, which Python has checked.
void restore(PyJoint& joint, nb::handle source, Starts ids, Starts first_row, Starts of, Starts first_symbol,
             Symbols symbols, Array1<double> coef, Array1<double> total, Array2<double> factor,
             Array1<std::uint64_t> counters) {
    JointExpansion& f = joint.f;
    if (f.has_points()) {
        const Rows rows = joint.checked(source);
        const std::size_t count = batch_count(rows.batch);
        f.points().kernel_rows(f.kernel(), rows.batch)->load(0, count);  // refuses rows that are too large
        f.points().reserve(count);
        for (std::size_t i = 0; i < ids.shape(0); ++i)
            for (std::int64_t r = first_row.data()[i]; r < first_row.data()[i + 1]; ++r)
                f.points().put(static_cast<std::size_t>(r), ids.data()[i], rows.batch, static_cast<std::size_t>(r));
    }
    JointExpansion::State s;
    const auto sizes = [](const Starts& a) { return std::vector<std::size_t>(a.data(), a.data() + a.shape(0)); };
    s.ids.assign(ids.data(), ids.data() + ids.shape(0));
    s.first_row = sizes(first_row);
    s.of = sizes(of);
    s.first_symbol = sizes(first_symbol);
    s.symbols.assign(symbols.data(), symbols.data() + symbols.shape(0));
    s.coef.assign(coef.data(), coef.data() + coef.shape(0));
    s.total.assign(total.data(), total.data() + total.shape(0));
    s.factor.assign(factor.data(), factor.data() + factor.size());
    const std::uint64_t* c = counters.data();
    s.seen = c[0];
    s.ticks = c[1];
    s.draws = c[2];
    s.random = {c[3], c[4]};
    f.restore(s);
}

}  // namespace

void bind_structured(nb::module_& m) {
    nb::class_<PyJoint>(m, "JointExpansion")
        .def(
            "__init__",
            [](PyJoint* self, nb::dict settings, nb::object program, std::size_t width, bool sparse, bool single,
               std::uint64_t seed) {
                const bool given = program.is_none();
                new (self) PyJoint{JointExpansion(settings_from(settings), given ? Kernel() : kernel_from(program),
                                                  given ? nullptr : make_points(width, sparse, single), seed)};
            },
            nb::arg("settings"), nb::arg("program").none(), nb::arg("width"), nb::arg("sparse"), nb::arg("single"),
            nb::arg("seed"))
        .def("copy", [](const PyJoint& self) { return PyJoint{JointExpansion(self.f)}; })
        .def("learn_classes", &learn_all_classes, nb::arg("rows"), nb::arg("labels"), nb::arg("weights").none(),
             nb::arg("costs").none(), nb::arg("classes"), nb::arg("want_scores"))
        .def("learn_sequences", &learn_all_sequences, nb::arg("rows"), nb::arg("start"), nb::arg("labels"),
             nb::arg("weights").none(), nb::arg("cost").none(), nb::arg("symbols"), nb::arg("want_best"))
        .def("best_sequences", &all_best_sequences, nb::arg("rows"), nb::arg("start"), nb::arg("symbols"),
             nb::arg("average"))
        .def("learn_given",
             [](PyJoint& self, nb::handle row, nb::handle cross, std::int32_t y, std::int32_t rival, double margin,
                double cost, double weight) {
                 GivenSample sample(row, cross);
                 self.f.learn(sample, Label(&y, 1), Label(&rival, 1), margin, cost, weight);
             })
        .def("skip", [](PyJoint& self) { self.f.pass(); })
        .def("row_scores", &all_row_scores, nb::arg("rows"), nb::arg("symbols"), nb::arg("average"))
        .def(
            "transition_scores",
            [](const PyJoint& self, std::size_t symbols, bool average) {
                std::vector<double> out(symbols * symbols);
                self.f.transition_scores(self.f.weights(average), symbols, out.data());
                return array_of(std::move(out), {symbols, symbols});
            },
            nb::arg("symbols"), nb::arg("average"))
        .def(
            "weights", [](const PyJoint& self, bool average) { return array_of(self.f.weights(average)); },
            nb::arg("average"))
        .def("compact", [](PyJoint& self) { return array_of(self.f.compact()); })
        .def("state", &state_of)
        .def("restore", &restore, nb::arg("points").none(), nb::arg("ids"), nb::arg("first_row"), nb::arg("of"),
             nb::arg("first_symbol"), nb::arg("symbols"), nb::arg("coef"), nb::arg("total"), nb::arg("factor"),
             nb::arg("counters"))
        .def_prop_ro("points", [](const PyJoint& self) { return points_of(self.f.points()); })
        .def_prop_ro(
            "slots", [](const PyJoint& self) { return array_from(self.f.slots()); }, nb::rv_policy::move)
        .def_prop_ro(
            "ids", [](const PyJoint& self) { return array_from(self.f.ids()); }, nb::rv_policy::move)
        .def_prop_ro(
            "first_row", [](const PyJoint& self) { return array_from(self.f.first_row()); }, nb::rv_policy::move)
        .def_prop_ro(
            "of", [](const PyJoint& self) { return array_from(self.f.of()); }, nb::rv_policy::move)
        .def_prop_ro(
            "symbols", [](const PyJoint& self) { return array_from(self.f.symbols()); }, nb::rv_policy::move)
        .def_prop_ro("width", [](const PyJoint& self) { return self.f.has_points() ? self.f.points().width() : 0; })
        .def_prop_ro("is_sparse",
                     [](const PyJoint& self) {
                         const Points* p = self.f.has_points() ? &self.f.points() : nullptr;
                         return dynamic_cast<const SparsePoints<double>*>(p) ||
                                dynamic_cast<const SparsePoints<float>*>(p);
                     })
        .def_prop_ro("is_single",
                     [](const PyJoint& self) {
                         const Points* p = self.f.has_points() ? &self.f.points() : nullptr;
                         return dynamic_cast<const DensePoints<float>*>(p) ||
                                dynamic_cast<const SparsePoints<float>*>(p);
                     })
        .def_prop_ro("size", [](const PyJoint& self) { return self.f.size(); })
        .def_prop_ro("seen", [](const PyJoint& self) { return self.f.seen(); })
        .def_prop_ro("memory_bytes", [](const PyJoint& self) { return self.f.bytes(); });
    nb::class_<PySamples>(m, "JointSamples")
        .def(nb::init<PyJoint&, nb::handle, Starts>(), nb::keep_alive<1, 2>(), nb::arg("hypothesis"), nb::arg("rows"),
             nb::arg("start"))
        .def("at", &PySamples::at, nb::arg("sample"))
        .def("row_scores", &PySamples::row_scores, nb::arg("symbols"), nb::arg("average"))
        .def("learn", &PySamples::learn, nb::arg("label"), nb::arg("rival"), nb::arg("margin"), nb::arg("cost"),
             nb::arg("weight"));
}

}  // namespace gristmill::bind
