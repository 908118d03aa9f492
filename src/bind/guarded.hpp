// A learner behind one lock: one writer, or many readers, and never the same thread twice.
#pragma once

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

namespace gristmill::bind {

template <class Learner>
class Guarded {
  public:
    template <class... Arguments>
    explicit Guarded(Arguments&&... arguments) : learner_(std::forward<Arguments>(arguments)...) {}

    Guarded(const Guarded&) = delete;

    // The GIL is given up before the lock is asked for, so that a rule written in Python can have it.
    template <class F>
    void as_writer(F f) {
        refuse_reentry();
        nanobind::gil_scoped_release release;
        std::unique_lock turn(turn_);
        std::unique_lock lock(mutex_);
        turn.unlock();
        const Inside inside(this);
        f(learner_);
    }
    template <class F>
    void as_reader(F f) const {
        refuse_reentry();
        nanobind::gil_scoped_release release;
        std::unique_lock turn(turn_);
        std::shared_lock lock(mutex_);
        turn.unlock();
        const Inside inside(this);
        f(learner_);
    }
    // The same for what makes Python objects: the lock is taken without the GIL, and the GIL again under the lock.
    template <class F>
    auto as_looker(F f) const {
        refuse_reentry();
        std::shared_lock<std::shared_mutex> lock(mutex_, std::defer_lock);
        {
            nanobind::gil_scoped_release release;
            const std::lock_guard turn(turn_);
            lock.lock();
        }
        const Inside inside(this);
        return f(learner_);
    }
    // What never changes may be read without a lock.
    const Learner& constant() const { return learner_; }
    Learner& unguarded() { return learner_; }  // while nobody else has it

  private:
    // The learners that this thread is inside of: a lock must not be asked for twice.
    struct Inside {
        inline static thread_local std::vector<const Guarded*> learners;
        explicit Inside(const Guarded* learner) { learners.push_back(learner); }
        ~Inside() { learners.pop_back(); }
        Inside(const Inside&) = delete;
        Inside& operator=(const Inside&) = delete;
    };
    void refuse_reentry() const {
        if (std::find(Inside::learners.begin(), Inside::learners.end(), this) != Inside::learners.end())
            throw std::runtime_error("the model is at work: a rule must not call the model that calls it");
    }

    Learner learner_;
    mutable std::shared_mutex mutex_;
    mutable std::mutex turn_;  // held while waiting, so that a stream of readers cannot starve the writer
};

}  // namespace gristmill::bind
