// Buffers, projections and the pairwise learners over vectors, as Python sees them.
#include "bind/pairwise.hpp"

#include <cmath>
#include <map>
#include <optional>

#include "core/pairwise_matrix.hpp"

namespace gristmill::bind {

namespace {

template <class T>
T get(nb::dict spec, const char* name) { return nb::cast<T>(spec[name]); }

template <class T>
nb::object array(const std::vector<T>& values) {
    auto* kept = new std::vector<T>(values);
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    const std::size_t n = kept->size();
    return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), 1, &n, owner));
}

// A policy written in Python: offer(step, x, label, filled) -> None, a position, or several.
class PythonPolicy final : public ForeignPolicy {
  public:
    explicit PythonPolicy(nb::object policy) : policy_(std::move(policy)) {}
    ~PythonPolicy() override {
        nb::gil_scoped_acquire gil;
        policy_.reset();
    }
    void offer(std::uint64_t step, std::span<const double> x, double label, std::size_t filled,
               std::vector<std::size_t>& slots) override {
        nb::gil_scoped_acquire gil;
        nb::object row = nb::none();
        if (!x.empty()) row = nb::cast(doubles(x.data(), {x.size()}));
        const nb::object answer = policy_.attr("offer")(step, row, label, filled);
        if (answer.is_none()) return;
        auto add = [&](nb::handle position) {
            std::int64_t slot = -1;
            if (!nb::try_cast(position, slot)) refuse(answer);
            if (slot < 0) throw nb::index_error("the buffer's offer() must return positions >= 0");
            slots.push_back(static_cast<std::size_t>(slot));
        };
        if (PyIndex_Check(answer.ptr())) return add(answer);
        if (!nb::isinstance<nb::iterable>(answer)) refuse(answer);
        for (const nb::handle position : answer) add(position);
    }
    std::shared_ptr<ForeignPolicy> clone() const override {
        nb::gil_scoped_acquire gil;
        return std::make_shared<PythonPolicy>(nb::module_::import_("copy").attr("deepcopy")(policy_));
    }

  private:
    [[noreturn]] static void refuse(nb::handle answer) {
        const std::string got = nb::cast<std::string>(nb::repr(answer));
        throw nb::value_error(("the buffer's offer() must return None, a position >= 0 or several, got " + got).c_str());
    }

    nb::object policy_;
};

// One learner behind one lock.
template <class L>
struct Held : Gate {
    L learner;
    std::size_t width;
    template <class... A>
    explicit Held(std::size_t width, A&&... args) : learner(std::forward<A>(args)...), width(width) {}

    nb::object learn(Array2<double> x, Array1<double> labels, bool want) {
        const auto rows = dense_rows(x, width);
        if (labels.shape(0) != rows.count) throw nb::value_error("X and y must have one length");
        std::vector<double> scores(want ? rows.count : 0);
        const std::span<const double> y(labels.data(), labels.shape(0));
        write([&] { learner.learn(rows, y, want ? scores.data() : nullptr, interrupts()); });
        if (!want) return nb::none();
        return nb::cast(doubles(scores.data(), {rows.count}));
    }
    void learn_one(Array1<double> x, double label) {
        if (x.shape(0) != width) dense_rows({}, width);
        const Kernel kernel({Node{Op::linear}});
        Rows rows;
        rows.batch = DenseRows<double>{x.data(), 1, width};
        check_rows(rows, kernel);
        write([&] { learner.learn({x.data(), 1, width}, {&label, 1}, nullptr, nullptr); });
    }
    // A copy of what is learned so far, to be looked at in peace while learning goes on.
    L snapshot() const {
        std::optional<L> copy;
        read([&] { copy.emplace(learner); });
        return std::move(*copy);
    }
    nb::dict state() const {
        Saver saver;
        L copy = snapshot();
        copy.visit(saver);
        return saver.finish();
    }
    void restore(nb::dict state) {
        Loader loader(state);
        learner.visit(loader);
        loader.finish();
    }
};

template <class L>
Doubles score(const Held<L>& held, Array2<double> x) {
    const auto rows = dense_rows(x, held.width);
    std::vector<double> scores(rows.count);
    held.read([&] { held.learner.score(rows, scores.data()); });
    return doubles(scores.data(), {rows.count});
}

template <class L>
Doubles weights(const Held<L>& held) {
    std::vector<double> w(held.width);
    held.read([&] { held.learner.weights(w.data()); });
    return doubles(w.data(), {held.width});
}

template <class L, class C>
void bind_common(C& c) {
    c.def("learn", &Held<L>::learn, nb::arg("X"), nb::arg("labels"), nb::arg("want_scores"))
        .def("learn_one", &Held<L>::learn_one)
        .def("state", &Held<L>::state)
        .def("restore", &Held<L>::restore)
        .def_prop_ro("width", [](const Held<L>& h) { return h.width; })
        .def_prop_ro("memory_bytes", [](const Held<L>& h) { return h.learner.bytes(); });
}

nb::dict stream_report(const PairStream& stream) {
    nb::dict out;
    bind_stream(out, stream);
    return out;
}

void bind_linear(nb::module_& m) {
    using H = Held<LinearRanker>;
    auto c = nb::class_<H>(m, "LinearRanker");
    c.def("__init__", [](H* self, nb::dict loss, double rate, double reg, nb::handle ball, bool average,
                         bool opposite_only, nb::handle buffer, std::size_t width, std::uint64_t seed) {
        new (self) H(width, LinearRanker::Settings{margin_loss_from(loss), {rate, reg}, ball_from(ball), average, opposite_only},
                     buffer_from(buffer), width, seed);
    }, nb::arg("loss"), nb::arg("rate"), nb::arg("reg"), nb::arg("ball").none(), nb::arg("average"),
       nb::arg("opposite_only"), nb::arg("buffer"), nb::arg("width"), nb::arg("seed"));
    bind_common<LinearRanker>(c);
    c.def("score", &score<LinearRanker>)
        .def("weights", &weights<LinearRanker>)
        .def("report", [](const H& h) {
            const LinearRanker now = h.snapshot();
            nb::dict out = stream_report(now.stream());
            const std::size_t filled = now.stream().filled();
            std::vector<double> points(filled * h.width);
            for (std::size_t j = 0; j < filled; ++j) now.rows().copy_out(j, points.data() + j * h.width);
            out["points"] = doubles(points.data(), {filled, h.width});
            return out;
        });
}

void bind_two_reservoirs(nb::module_& m) {
    using H = Held<TwoReservoirRanker>;
    auto c = nb::class_<H>(m, "TwoReservoirRanker");
    c.def("__init__", [](H* self, double aggressiveness, bool sequential, std::size_t size, std::size_t width,
                         std::uint64_t seed) {
        new (self) H(width, TwoReservoirRanker::Settings{aggressiveness, sequential}, size, width, seed);
    }, nb::arg("C"), nb::arg("sequential"), nb::arg("size"), nb::arg("width"), nb::arg("seed"));
    bind_common<TwoReservoirRanker>(c);
    c.def("score", &score<TwoReservoirRanker>)
        .def("weights", &weights<TwoReservoirRanker>)
        .def("report", [](const H& h) {
            const TwoReservoirRanker now = h.snapshot();
            nb::list sides;
            sides.append(stream_report(now.stream(0)));
            sides.append(stream_report(now.stream(1)));
            return sides;
        });
}

void bind_matrix(nb::module_& m) {
    using H = Held<MatrixLearner>;
    static const std::map<std::string, MatrixLearner::Form> forms = {{"metric", MatrixLearner::Form::metric},
                                                                     {"alignment", MatrixLearner::Form::alignment},
                                                                     {"goodness", MatrixLearner::Form::goodness}};
    auto c = nb::class_<H>(m, "MatrixLearner");
    c.def("__init__", [](H* self, const std::string& form, nb::dict loss, double rate, double reg, nb::handle ball,
                         bool psd, bool average, bool identity, nb::handle buffer, std::size_t width, std::uint64_t seed) {
        const MatrixLearner::Settings settings{forms.at(form), margin_loss_from(loss), {rate, reg}, ball_from(ball), psd,
                                               average, identity};
        new (self) H(width, settings, buffer_from(buffer), width, seed);
    }, nb::arg("form"), nb::arg("loss"), nb::arg("rate"), nb::arg("reg"), nb::arg("ball").none(), nb::arg("psd"),
       nb::arg("average"), nb::arg("identity"), nb::arg("buffer"), nb::arg("width"), nb::arg("seed"));
    bind_common<MatrixLearner>(c);
    c.def("matrix", [](const H& h) {
        std::vector<double> w(h.width * h.width);
        h.read([&] { h.learner.matrix(w.data()); });
        return doubles(w.data(), {h.width, h.width});
    });
    c.def_prop_ro("projections", [](const H& h) { return h.learner.projections(); })
        .def("report", [](const H& h) { return stream_report(h.snapshot().stream()); });
}

// The bare policy, for learners written in Python and for the tests of its law.
struct HeldBuffer {
    Buffer buffer;
    Random random;
};

void bind_buffer(nb::module_& m) {
    nb::class_<HeldBuffer>(m, "BufferPolicy")
        .def("__init__", [](HeldBuffer* self, nb::handle spec, std::uint64_t seed) {
            new (self) HeldBuffer{buffer_from(spec), {seed, 0}};
        })
        .def("offer", [](HeldBuffer& h, std::optional<Array1<double>> x, double label) {
            Change change;
            h.buffer.offer(h.random, change, x ? std::span(x->data(), x->shape(0)) : std::span<const double>(), label);
            return std::tuple(change.slots, change.sources);
        }, nb::arg("x").none(), nb::arg("label"))
        .def("run", [](HeldBuffer& h, std::size_t steps) {  // places in the stream after so many events
            std::vector<std::int64_t> ids(h.buffer.size(), -1);
            BufferRows rows(h.buffer.size(), 0);
            Change change;
            for (std::size_t t = 0; t < steps; ++t) {
                h.buffer.offer(h.random, change);
                rows.apply(change, nullptr, 0, static_cast<std::int64_t>(t));
            }
            return array(std::vector<std::int64_t>(rows.ids().begin(), rows.ids().end()));
        })
        .def("copy", [](const HeldBuffer& h) { return HeldBuffer{h.buffer.separate(), h.random}; })
        .def("state", [](const HeldBuffer& h) {
            const auto s = h.buffer.state();
            return std::vector<std::uint64_t>{s.offered, s.filled, s.next, h.random.seed, h.random.counter};
        })
        .def("restore", [](HeldBuffer& h, std::vector<std::uint64_t> s) {
            if (s.size() != 5) throw nb::value_error("a buffer's state is five whole numbers");
            h.buffer.restore({s[0], s[1], s[2]});
            h.random = {s[3], s[4]};
        })
        .def_prop_ro("filled", [](const HeldBuffer& h) { return h.buffer.filled(); })
        .def_prop_ro("offered", [](const HeldBuffer& h) { return h.buffer.offered(); });
}

// A vector or a square matrix moved to the nearest point of a set.
Doubles project(nb::handle source, nb::handle spec, bool psd) {
    const Ball ball = ball_from(spec);
    Array1<double> vector;
    if (nb::try_cast<Array1<double>>(source, vector, false)) {
        const std::size_t n = vector.shape(0);
        Lines<double> v(padded(n));
        std::copy(vector.data(), vector.data() + n, v.begin());
        if (ball.kind == BallKind::l1) project_l1(v.data(), n, ball.radius);
        if (ball.kind == BallKind::simplex) project_simplex(v.data(), n, ball.radius);
        if (ball.kind == BallKind::l2)
            if (const double norm = norm_of(v); norm > ball.radius) isa_score().scale(ball.radius / norm, v.data(), v.size());
        return doubles(v.data(), {n});
    }
    const auto matrix = nb::cast<Array2<double>>(source);
    const std::size_t n = matrix.shape(0), stride = padded(n);
    if (matrix.shape(1) != n) throw nb::value_error("the matrix must be square");
    Lines<double> a(n * stride);
    for (std::size_t i = 0; i < n; ++i) std::copy(matrix.data() + i * n, matrix.data() + (i + 1) * n, a.begin() + static_cast<std::ptrdiff_t>(i * stride));
    Spectrum spectrum;
    if (psd) {
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < i; ++j)
                a[i * stride + j] = a[j * stride + i] = 0.5 * (a[i * stride + j] + a[j * stride + i]);
        project_psd(a.data(), n, ball, spectrum);
    } else {
        project_ball(a.data(), n, ball, spectrum);
    }
    std::vector<double> out(n * n);
    for (std::size_t i = 0; i < n; ++i) std::copy(a.begin() + static_cast<std::ptrdiff_t>(i * stride), a.begin() + static_cast<std::ptrdiff_t>(i * stride + n), out.begin() + static_cast<std::ptrdiff_t>(i * n));
    return doubles(out.data(), {n, n});
}

}  // namespace

// ---- shared by the pairwise bindings --------------------------------------------------------------------------------

MarginLoss margin_loss_from(nb::dict spec) {
    static const std::map<std::string, MarginKind> kinds = {{"Hinge", MarginKind::hinge},
                                                            {"SquaredHinge", MarginKind::squared_hinge},
                                                            {"Logistic", MarginKind::logistic},
                                                            {"ExponentialLoss", MarginKind::exponential}};
    MarginLoss loss;
    loss.kind = kinds.at(get<std::string>(spec, "loss"));
    if (spec.contains("width")) loss.margin = get<double>(spec, "width");
    return loss;
}

Buffer buffer_from(nb::handle source) {
    if (!nb::isinstance<nb::dict>(source))
        return Buffer(std::make_shared<PythonPolicy>(nb::borrow(source)), nb::cast<std::size_t>(source.attr("size")));
    static const std::map<std::string, Policy> policies = {
        {"Fifo", Policy::fifo}, {"Reservoir", Policy::reservoir}, {"ReservoirX", Policy::reservoir_x}};
    static const std::map<std::string, Draw> draws = {
        {"skip", Draw::skip}, {"binomial", Draw::binomial}, {"bernoulli", Draw::bernoulli}};
    const auto spec = nb::borrow<nb::dict>(source);
    const Draw draw = spec.contains("method") ? draws.at(get<std::string>(spec, "method")) : Draw::skip;
    return Buffer(policies.at(get<std::string>(spec, "buffer")), get<std::size_t>(spec, "size"), draw);
}

Ball ball_from(nb::handle source) {
    static const std::map<std::string, BallKind> kinds = {{"none", BallKind::none}, {"l2", BallKind::l2},
                                                          {"l1", BallKind::l1}, {"simplex", BallKind::simplex},
                                                          {"group", BallKind::group}, {"trace", BallKind::trace}};
    if (source.is_none()) return {};
    const auto parts = nb::cast<nb::tuple>(source);
    return {kinds.at(nb::cast<std::string>(parts[0])), nb::cast<double>(parts[1])};
}

Poll interrupts() {
    return [] {
        nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    };
}

DenseRows<double> dense_rows(Array2<double> x, std::size_t width) {
    if (!x.is_valid() || x.shape(1) != width) {
        const std::string got = x.is_valid() ? std::to_string(x.shape(1)) : "another number of";
        throw nb::value_error(("X has " + got + " features, but the model was started with " + std::to_string(width)).c_str());
    }
    Rows rows;
    rows.batch = DenseRows<double>{x.data(), x.shape(0), x.shape(1)};
    check_rows(rows, Kernel({Node{Op::linear}}));
    return {x.data(), x.shape(0), x.shape(1)};
}

void bind_stream(nb::dict out, const PairStream& stream) {
    const std::size_t filled = stream.filled(), width = stream.rows.width();
    std::vector<double> points(filled * width);
    for (std::size_t j = 0; j < filled; ++j) stream.rows.copy_out(j, points.data() + j * width);
    out["seen"] = stream.seen;
    out["pairs"] = stream.pairs;
    out["auc"] = stream.auc();
    out["points"] = doubles(points.data(), {filled, width});
    out["labels"] = doubles(stream.rows.labels().data(), {filled});
    out["ids"] = array(std::vector<std::int64_t>(stream.rows.ids().begin(), stream.rows.ids().begin() + static_cast<std::ptrdiff_t>(filled)));
}

void Saver::numbers(const char* name, Lines<double>& values) {
    out[(scope + name).c_str()] = doubles(values.data(), {values.size()});
}
void Saver::places(const char* name, std::vector<std::int64_t>& values) { out[(scope + name).c_str()] = array(values); }
nb::dict Saver::finish() {
    out["scalars"] = doubles(scalars.data(), {scalars.size()});
    out["counts"] = array(counts);
    return out;
}

Loader::Loader(nb::dict state) : from(state) {
    const auto s = nb::cast<Array1<double>>(state["scalars"]);
    const auto c = nb::cast<Array1<std::uint64_t>>(state["counts"]);
    scalars.assign(s.data(), s.data() + s.shape(0));
    counts.assign(c.data(), c.data() + c.shape(0));
}
void Loader::numbers(const char* name, Lines<double>& values) {
    const auto saved = nb::cast<Array1<double>>(from[(scope + name).c_str()]);
    if (saved.shape(0) != values.size()) throw nb::value_error("the saved arrays do not fit together");
    for (std::size_t i = 0; i < values.size(); ++i)
        if (!std::isfinite(saved.data()[i])) throw nb::value_error("a saved number is not finite");
    std::copy(saved.data(), saved.data() + values.size(), values.begin());
}
void Loader::places(const char* name, std::vector<std::int64_t>& values) {
    const auto saved = nb::cast<Array1<std::int64_t>>(from[(scope + name).c_str()]);
    if (saved.shape(0) != values.size()) throw nb::value_error("the saved arrays do not fit together");
    values.assign(saved.data(), saved.data() + saved.shape(0));
}
void Loader::number(const char*, double& value) {
    if (scalar_at >= scalars.size() || !std::isfinite(scalars[scalar_at]))
        throw nb::value_error("a saved number is missing or not finite");
    value = scalars[scalar_at++];
}
void Loader::count(std::uint64_t& value) {
    if (count_at >= counts.size()) throw nb::value_error("a saved count is missing");
    value = counts[count_at++];
}
void Loader::finish() const {
    if (scalar_at != scalars.size() || count_at != counts.size())
        throw nb::value_error("the saved state does not fit the learner");
}

void bind_pairwise(nb::module_& m) {
    bind_buffer(m);
    bind_linear(m);
    bind_two_reservoirs(m);
    bind_matrix(m);
    bind_kernel_ranker(m);
    m.def("project", &project, nb::arg("array"), nb::arg("ball").none(), nb::arg("psd"));
}

}  // namespace gristmill::bind
