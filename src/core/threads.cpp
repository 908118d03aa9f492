#include "core/threads.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#endif

namespace gristmill {

namespace {

thread_local std::size_t allowed = 1;
thread_local bool at_work = false;  // inside a piece of work: what it asks for is done at once

struct Job {
    std::size_t count;
    const std::function<void(std::size_t)>& work;
    std::atomic<std::size_t> next{0};
    std::mutex mutex = {};
    std::size_t failed = static_cast<std::size_t>(-1);
    std::exception_ptr error = nullptr;

    // Pieces are taken in order, so when one fails all before it are under way, and none after it need begin.
    void run() {
        at_work = true;
        for (std::size_t i; (i = next.fetch_add(1)) < count;) {
            try {
                work(i);
            } catch (...) {
                next = count;
                const std::lock_guard lock(mutex);
                if (i < failed) failed = i, error = std::current_exception();
            }
        }
        at_work = false;
    }
};

class Pool {
  public:
    // Whether the work was done; not where the pool is taken or no thread can be had.
    bool run(Job& job, std::size_t helpers) {
        const std::unique_lock mine(taken_, std::try_to_lock);
        if (!mine || !grow(helpers)) return false;
        {
            const std::lock_guard lock(mutex_);
            job_ = &job;
            wanted_ = helpers;
        }
        wake_.notify_all();
        job.run();
        std::unique_lock lock(mutex_);
        wanted_ = 0;  // who has not come by now need not
        done_.wait(lock, [&] { return busy_ == 0; });
        job_ = nullptr;
        return true;
    }

  private:
    // requires: the pool is taken by this thread.
    bool grow(std::size_t helpers) {
#if !defined(_WIN32)
        sigset_t all, before;  // signals are for Python's own threads
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
        try {
            for (; workers_ < helpers; ++workers_) std::thread([this] { serve(); }).detach();
        } catch (const std::system_error&) {  // as many as there are will do
        }
#if !defined(_WIN32)
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
        return workers_ > 0;
    }

    [[noreturn]] void serve() {
        std::unique_lock lock(mutex_);
        for (;;) {
            wake_.wait(lock, [&] { return wanted_ > 0; });
            --wanted_;
            ++busy_;
            Job& job = *job_;
            lock.unlock();
            job.run();
            lock.lock();
            if (--busy_ == 0) done_.notify_one();
        }
    }

    std::mutex taken_, mutex_;
    std::condition_variable wake_, done_;
    Job* job_ = nullptr;
    std::size_t wanted_ = 0, busy_ = 0, workers_ = 0;
};

// Never destroyed: its threads wait in it until the process ends. A child process has none of them, and begins anew.
std::atomic<Pool*> pool{nullptr};

Pool& the_pool() {
    if (Pool* present = pool.load()) return *present;
#if !defined(_WIN32)
    static const int once = pthread_atfork(nullptr, nullptr, [] {
        pool = nullptr;
        at_work = false;
    });
    static_cast<void>(once);
#endif
    auto* fresh = new Pool;
    Pool* present = nullptr;
    if (pool.compare_exchange_strong(present, fresh)) return *fresh;
    delete fresh;
    return *present;
}

}  // namespace

std::size_t threads_allowed() { return at_work ? 1 : allowed; }
void allow_threads(std::size_t count) { allowed = std::max<std::size_t>(count, 1); }

void parallel(std::size_t count, const std::function<void(std::size_t)>& work) { parallel(count, threads_allowed(), work); }

void parallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work) {
    threads = at_work ? 1 : std::min(threads, count);
    Job job{count, work};
    if (threads > 1 && the_pool().run(job, threads - 1)) {
        if (job.error) std::rethrow_exception(job.error);
        return;
    }
    for (std::size_t i = 0; i < count; ++i) work(i);
}

}  // namespace gristmill
