// What the binding files of the pairwise learners share.
#pragma once

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "bind/bind.hpp"
#include "core/pairwise.hpp"

namespace gristmill::bind {

MarginLoss margin_loss_from(nb::dict spec);
Buffer buffer_from(nb::handle spec);
Ball ball_from(nb::handle spec);
Poll interrupts();

// A learner's state as plain arrays, by the same visit that reads it back.
struct Saver {
    static constexpr bool loads = false;
    nb::dict out;
    std::string scope;
    std::vector<double> scalars;
    std::vector<std::uint64_t> counts;

    void numbers(const char* name, Lines<double>& values);
    void places(const char* name, std::vector<std::int64_t>& values);
    void number(const char*, double& value) { scalars.push_back(value); }
    void count(std::uint64_t& value) { counts.push_back(value); }
    nb::dict finish();
};

struct Loader {
    static constexpr bool loads = true;
    nb::dict from;
    std::string scope;
    std::vector<double> scalars;
    std::vector<std::uint64_t> counts;
    std::size_t scalar_at = 0, count_at = 0;

    explicit Loader(nb::dict state);
    void numbers(const char* name, Lines<double>& values);
    void places(const char* name, std::vector<std::int64_t>& values);
    void number(const char*, double& value);
    void count(std::uint64_t& value);
    void finish() const;
};

// Learning is single-writer, scoring may run beside other scoring. The GIL is given up before the lock is asked for, so
// that a buffer or kernel written in Python can have it.
struct Gate {
    mutable std::shared_mutex mutex;
    std::atomic<std::thread::id> writer{};
    template <class F>
    void write(F f) {
        refuse_reentry();
        nb::gil_scoped_release release;
        std::unique_lock lock(mutex);
        writer = std::this_thread::get_id();
        struct Leave {
            std::atomic<std::thread::id>& writer;
            ~Leave() { writer = std::thread::id(); }
        } leave{writer};
        f();
    }
    void refuse_reentry() const {
        if (writer.load() == std::this_thread::get_id())
            throw std::runtime_error("the model is learning: a buffer or kernel must not call the model that calls it");
    }
    template <class F>
    void read(F f) const {
        refuse_reentry();
        nb::gil_scoped_release release;
        std::shared_lock lock(mutex);
        f();
    }
};

DenseRows<double> dense_rows(Array2<double> x, std::size_t width);
void bind_stream(nb::dict out, const PairStream& stream);

}  // namespace gristmill::bind
