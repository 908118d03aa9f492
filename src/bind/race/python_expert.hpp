// An expert of a race that is a Python object: a learner with Python inside, or of a kind that the core's race does not hold.
//
// The object has the methods of `gristmill/race/foreign.py`. Each call takes the GIL, so the race may be locked without it.
#pragma once

#include "bind/bind.hpp"
#include "core/race/expert.hpp"

namespace gristmill::bind {

class PythonExpert final : public TrainedExpert {
  public:
    PythonExpert(nb::object learner, std::size_t scaling, bool scales)
        : TrainedExpert(scaling), learner_(std::move(learner)) {
        scales_target = scales;
    }
    ~PythonExpert() override {
        nb::gil_scoped_acquire gil;
        learner_.reset();
    }
    PythonExpert& operator=(const PythonExpert&) = delete;

    const nb::object& learner() const { return learner_; }  // requires: the GIL

    std::unique_ptr<Expert> clone() const override {
        nb::gil_scoped_acquire gil;
        return std::unique_ptr<Expert>(new PythonExpert(*this, learner_.attr("copy")()));
    }
    void learn(const ScaledRows& rows, std::span<const double> labels, std::size_t classes, double* out) override {
        nb::gil_scoped_acquire gil;
        const nb::object found = learner_.attr("learn")(copied(rows), copied(labels), weights_of(rows), classes);
        write(found[0], rows.count * outputs_of(classes), out);
        note = nb::cast<std::string>(found[1]);
    }
    bool plan(const ScaledRows&, double, std::size_t, double*) override { return false; }
    void commit() override {}
    void score(const ScaledRows& rows, std::size_t classes, double* out) const override {
        nb::gil_scoped_acquire gil;
        write(learner_.attr("score")(copied(rows), classes), rows.count * outputs_of(classes), out);
    }
    void widen(std::size_t width) override { call("widen", width); }
    std::size_t bytes() const override { return runs() ? number("memory_bytes") : 0; }

    void pass_over(const ScaledRows& rows) override {
        nb::gil_scoped_acquire gil;
        learner_.attr("pass_over")(copied(rows));
    }
    void revisit(const ScaledRows& rows, std::span<const double> labels) override {
        nb::gil_scoped_acquire gil;
        learner_.attr("revisit")(copied(rows), copied(labels), weights_of(rows));
    }
    void begin(std::size_t width) override { call("begin", width); }
    void resize(std::size_t memory) override { call("resize", memory); }
    std::size_t points_within(std::size_t memory, std::size_t outputs) const override {
        nb::gil_scoped_acquire gil;
        return nb::cast<std::size_t>(learner_.attr("points_within")(memory, outputs));
    }
    bool is_window() const override {
        nb::gil_scoped_acquire gil;
        return nb::cast<bool>(learner_.attr("is_window"));
    }
    std::size_t size() const override { return number("size"); }
    std::uint64_t seen() const override { return number("seen"); }
    void rescale_targets(const TargetScale::Move& move) override {
        nb::gil_scoped_acquire gil;
        learner_.attr("rescale_targets")(move.factor, move.shift);
    }

    void follow(const RowChange&) override {}  // its points stay where they were stored

  private:
    PythonExpert(const PythonExpert& other, nb::object learner) : TrainedExpert(other), learner_(std::move(learner)) {}
    PythonExpert(const PythonExpert&) = delete;

    // Copies: the learner may keep what it is given.
    nb::object copied(const ScaledRows& rows) const {
        const double* from = rows.scaled[scaling_];
        return nb::cast(array_of(std::vector<double>(from, from + rows.count * rows.width), {rows.count, rows.width}));
    }
    static nb::object weights_of(const ScaledRows& rows) {
        return rows.weights ? copied({rows.weights, rows.count}) : nb::none();
    }
    static nb::object copied(std::span<const double> labels) {
        return nb::cast(array_of(std::vector<double>(labels.begin(), labels.end())));
    }
    static void write(const nb::object& scores, std::size_t count, double* out) {
        const auto found = nb::cast<ArrayN<double>>(scores);
        if (found.size() != count) throw std::runtime_error("an expert returned scores of another shape");
        std::copy_n(found.data(), count, out);
    }
    void call(const char* method, std::size_t number) {
        nb::gil_scoped_acquire gil;
        learner_.attr(method)(number);
    }
    std::size_t number(const char* name) const {
        nb::gil_scoped_acquire gil;
        return nb::cast<std::size_t>(learner_.attr(name));
    }

    nb::object learner_;
};

}  // namespace gristmill::bind
