// The kernelised AUC learner as Python sees it.
#include <cmath>
#include <map>

#include "bind/pairwise.hpp"
#include "core/pairwise_kernel.hpp"
#include "core/sparse_points.hpp"

namespace gristmill::bind {

namespace {

template <class T>
nb::object array(std::vector<T> values, std::vector<std::size_t> shape) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.data(), owner));
}

KernelRanker::Settings settings_from(nb::dict loss, double rate, double reg, double radius, bool average,
                                     bool opposite_only, const std::string& drop, std::size_t size) {
    static const std::map<std::string, KernelRanker::Drop> drops = {{"Unbounded", KernelRanker::Drop::nothing},
                                                                    {"DropSmallest", KernelRanker::Drop::smallest},
                                                                    {"DropOldest", KernelRanker::Drop::oldest},
                                                                    {"DropRandom", KernelRanker::Drop::random}};
    return {margin_loss_from(loss), {rate, reg}, radius, average, opposite_only, drops.at(drop), size};
}

class PyKernelRanker : public Gate {
  public:
    PyKernelRanker(nb::handle kernel, const KernelRanker::Settings& settings, nb::handle buffer, std::size_t width,
                   std::uint64_t seed)
        : foreign_(PyCallable_Check(kernel.ptr())), width_(width),
          ranker_(foreign_ ? Kernel() : kernel_from(kernel),
                  foreign_ ? foreign_points(nb::borrow(kernel)) : make_points(width, false, false), settings,
                  buffer_from(buffer), seed) {}

    Rows checked(nb::handle source) const {
        Rows rows = rows_from(source);
        const bool objects = std::holds_alternative<ForeignRows>(rows.batch);
        if (!objects && rows.width != width_)
            throw nb::value_error(("X has " + std::to_string(rows.width) + " features, but the model was started with " +
                                   std::to_string(width_)).c_str());
        if (!objects) check_rows(rows, ranker_.expansion().kernel());
        return rows;
    }
    nb::object learn(nb::handle source, Array1<double> labels, bool want) {
        const Rows rows = checked(source);
        const std::size_t count = batch_count(rows.batch);
        if (labels.shape(0) != count) throw nb::value_error("X and y must have one length");
        std::vector<double> scores(want ? count : 0);
        const std::span<const double> y(labels.data(), count);
        write([&] { ranker_.learn(rows.batch, y, want ? scores.data() : nullptr, interrupts()); });
        if (!want) return nb::none();
        return nb::cast(doubles(scores.data(), {count}));
    }
    Doubles score(nb::handle source) const {
        const Rows rows = checked(source);
        std::vector<double> scores(batch_count(rows.batch));
        read([&] { ranker_.score(rows.batch, scores.data()); });
        return doubles(scores.data(), {scores.size()});
    }
    nb::object points() const {
        const Points& points = ranker_.expansion().points();
        if (foreign_) return foreign_objects(points);
        std::vector<double> values(points.size() * width_);
        for (std::size_t s = 0; s < points.size(); ++s)
            static_cast<const DensePoints<double>&>(points).copy_out(s, values.data() + s * width_);
        return array(std::move(values), {points.size(), width_});
    }
    nb::object ids() const {
        const auto ids = ranker_.expansion().points().ids();
        return array(std::vector<std::int64_t>(ids.begin(), ids.end()), {ids.size()});
    }
    Doubles dual_coef() const {
        const auto& f = ranker_.expansion();
        std::vector<double> coefs;
        for (std::size_t s = 0; s < f.size(); ++s) coefs.push_back(f.averages() ? f.average_coef(s, 0) : f.coef(s, 0));
        return doubles(coefs.data(), {f.size(), 1});
    }
    nb::dict report() const {
        nb::dict out;
        bind_stream(out, ranker_.stream());
        std::vector<std::int64_t> slots(ranker_.now().slot.begin(), ranker_.now().slot.begin() + static_cast<std::ptrdiff_t>(ranker_.stream().filled()));
        const std::size_t n = slots.size();
        out["slots"] = array(std::move(slots), {n});
        out["scores"] = doubles(ranker_.now().scores.data(), {n});
        return out;
    }

    nb::dict state() const;
    void restore(nb::dict state);
    const KernelRanker& ranker() const { return ranker_; }
    std::size_t width() const { return width_; }

  private:
    bool foreign_;
    std::size_t width_;
    KernelRanker ranker_;
};

Lines<double> padded_line(const Lines<double>& line, std::size_t n) {
    Lines<double> out(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(n));
    return out;
}

nb::dict PyKernelRanker::state() const {
    const auto& f = ranker_.expansion();
    auto now = ranker_.now();
    const auto e = f.state();
    Saver saver;
    now.stream.visit(saver);
    saver.numbers("scores", now.scores);
    saver.numbers("gram", now.gram);
    auto coef = padded_line(e.coef[0], f.size());
    saver.numbers("coef", coef);
    if (f.averages()) {
        auto lag = padded_line(e.lag[0], f.size()), sum = padded_line(e.sum[0], f.size());
        saver.numbers("lag", lag);
        saver.numbers("sum", sum);
    }
    std::vector<std::int64_t> slots(now.slot.begin(), now.slot.end());
    saver.places("slots", slots);
    for (double x : {e.scale, e.weight, now.norm2}) saver.number("", x);
    std::uint64_t ticks = e.ticks;
    saver.count(ticks);
    nb::dict out = saver.finish();
    out["points"] = points();
    out["ids"] = ids();
    return out;
}

void PyKernelRanker::restore(nb::dict state) {
    Expansion& f = ranker_.expansion_to_restore();
    const Rows rows = checked(state["points"]);
    const auto ids = nb::cast<Array1<std::int64_t>>(state["ids"]);
    const std::size_t n = ids.shape(0);
    auto now = ranker_.now();
    if (f.size() != 0 || batch_count(rows.batch) != n) throw nb::value_error("the saved arrays do not fit together");
    Loader loader(state);
    now.stream.visit(loader);
    loader.numbers("scores", now.scores);
    loader.numbers("gram", now.gram);
    Expansion::State e;
    auto line = [&](const char* name) {
        Lines<double> values(n);
        loader.numbers(name, values);
        values.resize(padded(n));
        return values;
    };
    e.coef.push_back(line("coef"));
    if (f.averages()) {
        e.lag.push_back(line("lag"));
        e.sum.push_back(line("sum"));
    }
    std::vector<std::int64_t> slots(now.slot.size());
    loader.places("slots", slots);
    for (double* x : {&e.scale, &e.weight, &now.norm2}) loader.number("", *x);
    loader.count(e.ticks);
    loader.finish();
    std::vector<std::int64_t> sorted(ids.data(), ids.data() + n);
    std::sort(sorted.begin(), sorted.end());
    if (e.scale == 0 || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end() ||
        (n > 0 && (sorted[0] < 0 || static_cast<std::uint64_t>(sorted.back()) >= now.stream.seen)))
        throw nb::value_error("the saved stream positions are not distinct positions of the stream");
    for (std::size_t j = 0; j < slots.size(); ++j) {
        if (slots[j] < 0) throw nb::value_error("the saved buffer names points that are not stored");
        now.slot[j] = static_cast<std::size_t>(slots[j]);
    }
    f.reserve(n);
    for (std::size_t s = 0; s < n; ++s) f.points_to_restore().put(s, ids.data()[s], rows.batch, s);
    f.points_to_restore().order_by_id();
    f.restore(std::move(e));
    now.uses.assign(n, 0);
    ranker_.restore(std::move(now));
}

}  // namespace

void bind_kernel_ranker(nb::module_& m) {
    nb::class_<PyKernelRanker>(m, "KernelRanker")
        .def("__init__", [](PyKernelRanker* self, nb::handle kernel, nb::dict loss, double rate, double reg, double radius,
                            bool average, bool opposite_only, const std::string& drop, std::size_t size,
                            nb::handle buffer, std::size_t width, std::uint64_t seed) {
            new (self) PyKernelRanker(kernel, settings_from(loss, rate, reg, radius, average, opposite_only, drop, size),
                                      buffer, width, seed);
        }, nb::arg("kernel"), nb::arg("loss"), nb::arg("rate"), nb::arg("reg"), nb::arg("radius"), nb::arg("average"),
           nb::arg("opposite_only"), nb::arg("drop"), nb::arg("size"), nb::arg("buffer"), nb::arg("width"), nb::arg("seed"))
        .def("learn", &PyKernelRanker::learn, nb::arg("X"), nb::arg("labels"), nb::arg("want_scores"))
        .def("score", &PyKernelRanker::score)
        .def("state", &PyKernelRanker::state)
        .def("restore", &PyKernelRanker::restore)
        .def("points", &PyKernelRanker::points)
        .def("ids", &PyKernelRanker::ids)
        .def("dual_coef", &PyKernelRanker::dual_coef)
        .def("report", &PyKernelRanker::report)
        .def_prop_ro("width", &PyKernelRanker::width)
        .def_prop_ro("norm2", [](const PyKernelRanker& r) { return r.ranker().norm2(); })
        .def_prop_ro("memory_bytes", [](const PyKernelRanker& r) { return r.ranker().bytes(); });
}

}  // namespace gristmill::bind
