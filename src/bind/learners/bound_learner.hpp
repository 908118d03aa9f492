// A learner as a Python object: a fair lock, checks of the rows, polling for interrupts, saved state.
#pragma once

#include <algorithm>
#include <chrono>
#include <mutex>
#include <shared_mutex>

#include "bind/archive.hpp"
#include "bind/bind.hpp"
#include "bind/learners/stored.hpp"
#include "core/adapt/calibration.hpp"

namespace gristmill::bind {

// Handles Ctrl-C during a long chunk, at most ten times a second.
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

// A readers-writer lock: one writer or many readers, not reentrant. The GIL is released before the lock is taken, so
// that a kernel, rule, budget or buffer written in Python can acquire it.
class CoreLock {
  public:
    template <class F>
    void write(F f) {
        enter();
        nb::gil_scoped_release release;
        std::unique_lock gate(gate_);
        std::unique_lock lock(mutex_);
        gate.unlock();
        const Entered entered(this);
        f();
    }
    template <class F>
    void read(F f) const {
        enter();
        nb::gil_scoped_release release;
        std::unique_lock gate(gate_);
        std::shared_lock lock(mutex_);
        gate.unlock();
        const Entered entered(this);
        f();
    }
    // A read that makes Python objects: the lock is taken without the GIL, and the GIL again under the lock.
    template <class F>
    auto read_with_gil(F f) const {
        enter();
        std::shared_lock<std::shared_mutex> lock(mutex_, std::defer_lock);
        {
            nb::gil_scoped_release release;
            const std::lock_guard gate(gate_);
            lock.lock();
        }
        const Entered entered(this);
        return f();
    }

    // Parts written in Python. The learner borrows them; they are held here so that the garbage collector sees their
    // owner.
    std::vector<nb::object> parts;
    bool collected = false;

  private:
    // The locks that this thread holds: none may be taken twice.
    struct Entered {
        inline static thread_local std::vector<const CoreLock*> locks;
        explicit Entered(const CoreLock* lock) { locks.push_back(lock); }
        ~Entered() { locks.pop_back(); }
        Entered(const Entered&) = delete;
        Entered& operator=(const Entered&) = delete;
    };
    void enter() const {
        if (collected) throw std::runtime_error("the model has been collected");
        if (std::find(Entered::locks.begin(), Entered::locks.end(), this) != Entered::locks.end())
            throw std::runtime_error(
                "the model is at work: a kernel, rule, budget or buffer must not call the model that calls it");
    }
    mutable std::shared_mutex mutex_;
    mutable std::mutex gate_;  // held while waiting, so that a stream of readers cannot starve a writer
};

// A core that learns and scores single dense rows without Python: what the pipeline of single events needs of it.
class EventCore : public CoreLock {
  public:
    virtual ~EventCore() = default;
    // Throws, and changes nothing, for a row or label that it cannot learn.
    virtual void learn_event(std::span<const double> x, double label, double weight) = 0;
    // The scores of one row and the number of classes at that time; false if rows are scored in another way.
    virtual bool score_event(std::span<const double> x, std::vector<double>& scores, std::size_t& classes) const = 0;
    // The probability of each class by such scores; false if the number of classes has changed since.
    virtual bool share_event(std::span<const double> scores, std::vector<double>& shares) const = 0;
};

// Learners of learner/learner.hpp count classes and take weights; pairwise learners take labels or signs.
template <class L>
concept Looping = requires(L& learner) { learner.poll; };

template <class L>
class BoundLearner final : public EventCore {
  public:
    template <class... A>
    explicit BoundLearner(std::vector<nb::object> python, A&&... args) : learner(std::forward<A>(args)...) {
        parts = std::move(python);
    }
    BoundLearner(const BoundLearner&) = delete;

    L learner;

    std::size_t classes() const {
        if constexpr (Looping<L>) return learner.classes();
        else return classes_;
    }
    std::size_t labels_per_row() const {  // labels per row
        if constexpr (requires { learner.targets(); }) return learner.targets();
        else return 1;
    }
    // Whether `learn_one` applies: dense doubles and no Python code inside.
    bool is_plain() const {
        if (!parts.empty()) return false;
        if constexpr (requires { stored(learner); }) return keeps_doubles(stored(learner));
        else return true;
    }
    Rows checked(nb::handle source) const {
        Rows rows = rows_from(source);
        learner.check(rows.batch);
        return rows;
    }
    Rows checked(const Array1<double>& x) const {
        Rows rows{DenseRows<double>{x.data(), 1, x.shape(0)}, x.shape(0), {}};
        learner.check(rows.batch);
        return rows;
    }
    static std::size_t columns(const std::vector<double>& scores, std::size_t rows) {
        return scores.size() / std::max<std::size_t>(rows, 1);
    }

    nb::object learn(nb::handle source, ArrayN<double> labels, std::optional<Array1<double>> weights, bool want,
                     std::size_t classes) {
        const Rows rows = checked(source);
        const std::size_t count = batch_count(rows.batch);
        if (labels.size() != count * labels_per_row() || (weights && weights->shape(0) != count))
            throw nb::value_error("rows, labels and weights must have one length");
        const std::span<const double> y(labels.data(), labels.size());
        const std::span<const double> w = weights ? std::span(weights->data(), count) : std::span<const double>();
        std::vector<double> scores;
        write([&] { run(rows.batch, y, w, want ? &scores : nullptr, classes); });
        if (!want) return nb::none();
        const std::size_t outputs = columns(scores, count);
        return nb::cast(array_of(std::move(scores), {count, outputs}));
    }
    // One event without a chunk and without copies.
    void learn_one(Array1<double> x, double label, double weight) {
        const Rows rows = checked(x);
        if (labels_per_row() != 1)
            throw nb::value_error("y must be a row of targets, as many as the model was started with");
        write([&] { run(rows.batch, {&label, 1}, {&weight, 1}, nullptr, 0); });
    }

    void learn_event(std::span<const double> x, double label, double weight) override {
        if (labels_per_row() != 1) throw nb::value_error("one label per row");
        const Batch row = DenseRows<double>{x.data(), 1, x.size()};
        learner.check(row);
        write([&] { run(row, {&label, 1}, {&weight, 1}, nullptr, 0); });
    }
    bool score_event(std::span<const double> x, std::vector<double>& scores, std::size_t& classes_then) const override {
        if constexpr (requires(double* out, const Batch& batch) {
                          learner.outputs();
                          learner.score(batch, out);
                      }) {
            const Batch row = DenseRows<double>{x.data(), 1, x.size()};
            learner.check(row);
            read([&] {
                scores.resize(learner.outputs());
                classes_then = classes();
                learner.score(row, scores.data());
            });
            return true;
        } else {
            return false;
        }
    }
    bool share_event(std::span<const double> scores, std::vector<double>& shares) const override {
        bool whole = false;
        read([&] {
            const std::size_t known = std::max<std::size_t>(classes(), 1);
            whole = scores.size() == (known > 2 ? known : 1);
            if (!whole) return;
            shares.resize(known);
            share(scores, shares.data());
        });
        return whole;
    }
    // Probabilities, one per class, from scores of rows.
    Doubles probabilities(Array2<double> scores) const {
        const std::size_t rows = scores.shape(0), outputs = scores.shape(1);
        std::vector<double> shares;
        std::size_t known = 0;
        read([&] {
            known = std::max<std::size_t>(classes(), 1);
            if (outputs != (known > 2 ? known : 1))
                throw std::runtime_error("a class came between scores and probabilities");
            shares.resize(rows * known);
            for (std::size_t r = 0; r < rows; ++r)
                share({scores.data() + r * outputs, outputs}, shares.data() + r * known);
        });
        return array_of(std::move(shares), {rows, known});
    }

    nb::dict state() const {
        return read_with_gil([&] {
            Archive archive;
            const_cast<BoundLearner*>(this)->visit(archive);  // saving does not modify the learner
            nb::dict out = to_dict(std::move(archive));
            if constexpr (requires { stored(learner); }) out["points"] = points_of_store(stored(learner));
            return out;
        });
    }
    // requires: the learner is not shared yet.
    void restore(nb::dict state) {
        Archive archive = from_dict(state);
        Rows rows;
        if (state.contains("points")) {
            rows = rows_from(state["points"]);
            learner.check(rows.batch);
            archive.points = rows.batch;
        }
        visit(archive);
    }

  private:
    void share(std::span<const double> scores, double* out) const {
        if constexpr (requires { learner.probabilities(scores, out); }) learner.probabilities(scores, out);
        else calibration_.probabilities(scores, classes_, out);
    }
    void run(const Batch& batch, std::span<const double> labels, std::span<const double> weights,
             std::vector<double>* scores, std::size_t classes) {
        if constexpr (Looping<L>) {
            // for a single event reading the clock would dominate
            if (batch_count(batch) > 1) learner.poll = Interrupts();
            learner.learn(batch, labels, weights, scores, classes);
        } else {
            std::size_t classes_now = std::max(classes_, classes);
            for (const double code : labels) classes_now = std::max(classes_now, static_cast<std::size_t>(code) + 1);
            std::vector<double> signs;
            if constexpr (requires { L::kRanks; }) {  // the first class is the negative one
                for (const double code : labels) signs.push_back(2 * code - 1);
                labels = signs;
            }
            std::vector<double> unasked;  // the calibration of a ranker needs the scores
            if constexpr (requires { L::kRanks; })
                if (!scores) scores = &unasked;
            if (scores) scores->resize(batch_count(batch));
            double* out = scores ? scores->data() : nullptr;
            if constexpr (requires { learner.learn(batch, labels, out, Interrupts()); })
                learner.learn(batch, labels, out, Interrupts());
            else learner.learn(std::get<DenseRows<double>>(batch), labels, out, Interrupts());
            classes_ = classes_now;
            if constexpr (requires { L::kRanks; })
                for (std::size_t i = 0; i < labels.size(); ++i) calibration_.learn({out + i, 1}, labels[i] > 0 ? 1 : 0);
        }
    }
    void visit(Archive& archive) {
        if constexpr (!Looping<L>) {
            std::uint64_t classes_now = classes_;
            archive.count("classes", classes_now);
            classes_ = classes_now;
            std::vector<std::int64_t> width{static_cast<std::int64_t>(learner.width())};
            archive.numbers("width", width, 1);
            if (archive.loads && width[0] != static_cast<std::int64_t>(learner.width()))
                archive.refuse("width", "does not fit");
            if constexpr (requires { L::kRanks; }) calibration_.visit(archive);
        }
        learner.visit(archive);
    }

    std::size_t classes_ = 0;  // classes seen by a pairwise learner
    Calibration calibration_;  // calibration of a ranker
};

// Support for the garbage collector.
template <class L>
int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    for (const auto& part : nb::inst_ptr<BoundLearner<L>>(self)->parts) Py_VISIT(part.ptr());
    return 0;
}
template <class L>
int clear(PyObject* self) {
    auto* bound = nb::inst_ptr<BoundLearner<L>>(self);
    bound->collected = true;
    bound->parts.clear();
    return 0;
}

// The methods of every learner.
template <class L>
nb::class_<BoundLearner<L>, EventCore> bind_bound_learner(nb::module_& m, const char* name) {
    using H = BoundLearner<L>;
    static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse<L>)},
                                  {Py_tp_clear, reinterpret_cast<void*>(clear<L>)},
                                  {0, nullptr}};
    return nb::class_<H, EventCore>(m, name, nb::type_slots(slots))
        .def("learn", &H::learn, nb::arg("rows"), nb::arg("labels"), nb::arg("weights").none(), nb::arg("want_scores"),
             nb::arg("classes") = 0)
        .def("learn_one", &H::learn_one)
        .def("check", [](const H& h, nb::handle source) { h.checked(source); })
        .def("probabilities", &H::probabilities)
        .def("state", &H::state)
        .def("restore", &H::restore)
        .def_prop_ro("is_plain", &H::is_plain)
        .def_prop_ro("classes", [](const H& h) { return h.read_with_gil([&] { return h.classes(); }); })
        .def_prop_ro("width", [](const H& h) { return h.learner.width(); })
        .def_prop_ro("memory_bytes", [](const H& h) { return h.read_with_gil([&] { return h.learner.bytes(); }); });
}

}  // namespace gristmill::bind
