// Bindings of buffers, projections and pairwise learners.
#include <cmath>
#include <map>
#include <optional>

#include "bind/learners/bound_learner.hpp"
#include "core/pairwise/matrix.hpp"

namespace gristmill::bind {

namespace {

const std::vector<nb::object> no_parts;

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
        if (!x.empty()) row = nb::cast(array_of(std::vector<double>(x.begin(), x.end())));
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
        throw nb::value_error(
            ("the buffer's offer() must return None, a position >= 0 or several, got " + got).c_str());
    }

    nb::object policy_;
};

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
    static const std::map<std::string, BallKind> kinds = {{"none", BallKind::none},   {"l2", BallKind::l2},
                                                          {"l1", BallKind::l1},       {"simplex", BallKind::simplex},
                                                          {"group", BallKind::group}, {"trace", BallKind::trace}};
    if (source.is_none()) return {};
    const auto parts = nb::cast<nb::tuple>(source);
    return {kinds.at(nb::cast<std::string>(parts[0])), nb::cast<double>(parts[1])};
}

nb::dict stream_report(const PairStream& stream) {
    const std::size_t filled = stream.filled(), width = stream.rows.width();
    const auto end = static_cast<std::ptrdiff_t>(filled);
    std::vector<double> points(filled * width);
    for (std::size_t j = 0; j < filled; ++j) stream.rows.copy_out(j, points.data() + j * width);
    nb::dict out;
    out["seen"] = stream.seen;
    out["pairs"] = stream.pairs;
    out["auc"] = stream.auc();
    out["points"] = array_of(std::move(points), {filled, width});
    out["labels"] = array_of(std::vector<double>(stream.rows.labels().begin(), stream.rows.labels().begin() + end));
    out["ids"] = array_of(std::vector<std::int64_t>(stream.rows.ids().begin(), stream.rows.ids().begin() + end));
    return out;
}

template <class L>
std::vector<double> scores_of(const BoundLearner<L>& bound, const Rows& rows, std::size_t& classes) {
    std::vector<double> scores(batch_count(rows.batch));
    bound.read([&] {
        classes = bound.classes();
        if constexpr (requires { bound.learner.score(rows.batch, scores.data()); })
            bound.learner.score(rows.batch, scores.data());
        else bound.learner.score(std::get<DenseRows<double>>(rows.batch), scores.data());
    });
    return scores;
}

template <class L>
nb::tuple score(const BoundLearner<L>& bound, nb::handle source) {
    std::size_t classes = 0;
    auto scores = scores_of(bound, bound.checked(source), classes);
    const std::size_t n = scores.size();
    return nb::make_tuple(array_of(std::move(scores), {n, 1}), classes);
}

template <class L>
double score_one(const BoundLearner<L>& bound, Array1<double> x) {
    std::size_t classes = 0;
    return scores_of(bound, bound.checked(x), classes)[0];
}

// The methods of all rankers: one score per event.
template <class L>
auto bind_ranker(nb::module_& m, const char* name) {
    using H = BoundLearner<L>;
    return bind_bound_learner<L>(m, name)
        .def("score", &score<L>)
        .def("score_one", &score_one<L>)
        .def_prop_ro("outputs", [](const H&) { return 1; });
}

template <class L>
Doubles weights(const BoundLearner<L>& bound) {
    std::vector<double> w(bound.learner.width());
    bound.read([&] { bound.learner.weights(w.data()); });
    return array_of(std::move(w));
}

void bind_linear(nb::module_& m) {
    using H = BoundLearner<LinearRanker>;
    bind_ranker<LinearRanker>(m, "LinearRanker")
        .def(
            "__init__",
            [](H* self, nb::dict loss, double rate, double reg, nb::handle ball, bool average, bool opposite_only,
               nb::handle buffer, std::size_t width, std::uint64_t seed) {
                new (self) H(no_parts,
                             LinearRanker::Settings{
                                 margin_loss_from(loss), {rate, reg}, ball_from(ball), average, opposite_only},
                             buffer_from(buffer), width, seed);
            },
            nb::arg("loss"), nb::arg("rate"), nb::arg("reg"), nb::arg("ball").none(), nb::arg("average"),
            nb::arg("opposite_only"), nb::arg("buffer"), nb::arg("width"), nb::arg("seed"))
        .def("weights", &weights<LinearRanker>)
        .def("report", [](const H& h) {
            return h.read_with_gil([&] {
                nb::dict out = stream_report(h.learner.stream());
                const std::size_t filled = h.learner.stream().filled(), width = h.learner.width();
                std::vector<double> points(filled * width);
                for (std::size_t j = 0; j < filled; ++j) h.learner.rows().copy_out(j, points.data() + j * width);
                out["points"] = array_of(std::move(points), {filled, width});
                return out;
            });
        });
}

void bind_two_reservoirs(nb::module_& m) {
    using H = BoundLearner<TwoReservoirRanker>;
    bind_ranker<TwoReservoirRanker>(m, "TwoReservoirRanker")
        .def(
            "__init__",
            [](H* self, double aggressiveness, bool sequential, std::size_t size, std::size_t width,
               std::uint64_t seed) {
                new (self) H(no_parts, TwoReservoirRanker::Settings{aggressiveness, sequential}, size, width, seed);
            },
            nb::arg("C"), nb::arg("sequential"), nb::arg("size"), nb::arg("width"), nb::arg("seed"))
        .def("weights", &weights<TwoReservoirRanker>)
        .def("report", [](const H& h) {
            return h.read_with_gil([&] {
                nb::list sides;
                sides.append(stream_report(h.learner.stream(0)));
                sides.append(stream_report(h.learner.stream(1)));
                return sides;
            });
        });
}

void bind_matrix(nb::module_& m) {
    using H = BoundLearner<MatrixLearner>;
    static const std::map<std::string, MatrixLearner::Form> forms = {{"metric", MatrixLearner::Form::metric},
                                                                     {"alignment", MatrixLearner::Form::alignment},
                                                                     {"goodness", MatrixLearner::Form::goodness}};
    bind_bound_learner<MatrixLearner>(m, "MatrixLearner")
        .def(
            "__init__",
            [](H* self, const std::string& form, nb::dict loss, double rate, double reg, nb::handle ball, bool psd,
               bool average, bool identity, nb::handle buffer, std::size_t width, std::uint64_t seed) {
                const MatrixLearner::Settings settings{
                    forms.at(form), margin_loss_from(loss), {rate, reg}, ball_from(ball), psd, average, identity};
                new (self) H(no_parts, settings, buffer_from(buffer), width, seed);
            },
            nb::arg("form"), nb::arg("loss"), nb::arg("rate"), nb::arg("reg"), nb::arg("ball").none(), nb::arg("psd"),
            nb::arg("average"), nb::arg("identity"), nb::arg("buffer"), nb::arg("width"), nb::arg("seed"))
        .def("matrix",
             [](const H& h) {
                 const std::size_t width = h.learner.width();
                 std::vector<double> w(width * width);
                 h.read([&] { h.learner.matrix(w.data()); });
                 return array_of(std::move(w), {width, width});
             })
        .def_prop_ro("projections", [](const H& h) { return h.read_with_gil([&] { return h.learner.projections(); }); })
        .def("report", [](const H& h) { return h.read_with_gil([&] { return stream_report(h.learner.stream()); }); });
}

// ---- AUC by kernels ---------------------------------------------------------------------------------------------------

KernelRanker::Settings settings_from(nb::dict loss, double rate, double reg, double radius, bool average,
                                     bool opposite_only, const std::string& drop, std::size_t size) {
    static const std::map<std::string, KernelRanker::Drop> drops = {{"Unbounded", KernelRanker::Drop::nothing},
                                                                    {"DropSmallest", KernelRanker::Drop::smallest},
                                                                    {"DropOldest", KernelRanker::Drop::oldest},
                                                                    {"DropRandom", KernelRanker::Drop::random},
                                                                    {"Merge", KernelRanker::Drop::merge}};
    return {margin_loss_from(loss), {rate, reg}, radius, average, opposite_only, drops.at(drop), size};
}

void bind_kernel_ranker(nb::module_& m) {
    using H = BoundLearner<KernelRanker>;
    bind_ranker<KernelRanker>(m, "KernelRanker")
        .def(
            "__init__",
            [](H* self, nb::handle kernel, nb::dict loss, double rate, double reg, double radius, bool average,
               bool opposite_only, const std::string& drop, std::size_t size, nb::handle buffer, std::size_t width,
               std::uint64_t seed) {
                const bool foreign = PyCallable_Check(kernel.ptr());
                new (self) H(foreign ? std::vector<nb::object>{nb::borrow(kernel)} : no_parts,
                             foreign ? Kernel() : kernel_from(kernel),
                             foreign ? foreign_points(kernel) : make_points(width, false, false),
                             settings_from(loss, rate, reg, radius, average, opposite_only, drop, size),
                             buffer_from(buffer), seed);
            },
            nb::arg("kernel"), nb::arg("loss"), nb::arg("rate"), nb::arg("reg"), nb::arg("radius"), nb::arg("average"),
            nb::arg("opposite_only"), nb::arg("drop"), nb::arg("size"), nb::arg("buffer"), nb::arg("width"),
            nb::arg("seed"))
        .def("points", [](const H& h) { return h.read_with_gil([&] { return points_of_store(stored(h.learner)); }); })
        .def("ids", [](const H& h) { return h.read_with_gil([&] { return ids_of(stored(h.learner)); }); })
        .def("dual_coef", [](const H& h) { return h.read_with_gil([&] { return coefs_of(stored(h.learner)); }); })
        .def("report",
             [](const H& h) {
                 return h.read_with_gil([&] {
                     const auto& now = h.learner.now();
                     nb::dict out = stream_report(now.stream);
                     const auto n = static_cast<std::ptrdiff_t>(now.stream.filled());
                     out["slots"] = array_of(std::vector<std::int64_t>(now.slot.begin(), now.slot.begin() + n));
                     out["scores"] = array_of(std::vector<double>(now.scores.begin(), now.scores.begin() + n));
                     return out;
                 });
             })
        .def_prop_ro("norm2", [](const H& h) { return h.read_with_gil([&] { return h.learner.norm2(); }); });
}

// The plain buffer policy, for learners written in Python and for tests of its law.
struct BoundBuffer {
    Buffer buffer;
    Random random;
};

void bind_buffer(nb::module_& m) {
    nb::class_<BoundBuffer>(m, "BufferPolicy")
        .def("__init__", [](BoundBuffer* self, nb::handle spec,
                            std::uint64_t seed) { new (self) BoundBuffer{buffer_from(spec), {seed, 0}}; })
        .def(
            "offer",
            [](BoundBuffer& h, std::optional<Array1<double>> x, double label) {
                Change change;
                h.buffer.offer(h.random, change, x ? std::span(x->data(), x->shape(0)) : std::span<const double>(),
                               label);
                return std::tuple(change.slots, change.sources);
            },
            nb::arg("x").none(), nb::arg("label"))
        .def("run",
             [](BoundBuffer& h, std::size_t steps) {  // positions in the buffer after `steps` events
                 std::vector<std::int64_t> ids(h.buffer.size(), -1);
                 BufferRows rows(h.buffer.size(), 0);
                 Change change;
                 for (std::size_t t = 0; t < steps; ++t) {
                     h.buffer.offer(h.random, change);
                     rows.apply(change, nullptr, 0, static_cast<std::int64_t>(t));
                 }
                 return array_of(std::vector<std::int64_t>(rows.ids().begin(), rows.ids().end()));
             })
        .def("copy", [](const BoundBuffer& h) { return BoundBuffer{h.buffer.separate(), h.random}; })
        .def("state",
             [](const BoundBuffer& h) {
                 const auto s = h.buffer.state();
                 return std::vector<std::uint64_t>{s.offered, s.filled, s.next, h.random.seed, h.random.counter};
             })
        .def("restore",
             [](BoundBuffer& h, std::vector<std::uint64_t> s) {
                 if (s.size() != 5) throw nb::value_error("a buffer's state is five whole numbers");
                 h.buffer.restore({s[0], s[1], s[2]});
                 h.random = {s[3], s[4]};
             })
        .def_prop_ro("filled", [](const BoundBuffer& h) { return h.buffer.filled(); })
        .def_prop_ro("offered", [](const BoundBuffer& h) { return h.buffer.offered(); });
}

// Projects a vector or a square matrix onto a set.
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
            if (const double norm = norm_of(v); norm > ball.radius)
                isa_score().scale(ball.radius / norm, v.data(), v.size());
        return array_of(std::vector<double>(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(n)));
    }
    const auto matrix = nb::cast<Array2<double>>(source);
    const std::size_t n = matrix.shape(0), stride = padded(n);
    if (matrix.shape(1) != n) throw nb::value_error("the matrix must be square");
    Lines<double> a(n * stride);
    for (std::size_t i = 0; i < n; ++i)
        std::copy(matrix.data() + i * n, matrix.data() + (i + 1) * n,
                  a.begin() + static_cast<std::ptrdiff_t>(i * stride));
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
    for (std::size_t i = 0; i < n; ++i)
        std::copy(a.begin() + static_cast<std::ptrdiff_t>(i * stride),
                  a.begin() + static_cast<std::ptrdiff_t>(i * stride + n),
                  out.begin() + static_cast<std::ptrdiff_t>(i * n));
    return array_of(std::move(out), {n, n});
}

}  // namespace

void bind_pairwise(nb::module_& m) {
    bind_buffer(m);
    bind_linear(m);
    bind_two_reservoirs(m);
    bind_matrix(m);
    bind_kernel_ranker(m);
    m.def("project", &project, nb::arg("array"), nb::arg("ball").none(), nb::arg("psd"));
}

}  // namespace gristmill::bind
