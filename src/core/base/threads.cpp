#include "core/base/threads.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
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
thread_local bool at_work = false;  // inside a piece of work: nested work runs on this thread
thread_local std::size_t current_worker = 0;

}  // namespace

struct Job {
    Job(std::size_t count, std::function<void(std::size_t)> work) : count(count), work(std::move(work)) {}

    std::size_t count;
    std::function<void(std::size_t)> work;
    std::atomic<std::size_t> next{0}, workers{0};
    std::mutex mutex = {};
    std::size_t failed = static_cast<std::size_t>(-1);
    std::exception_ptr error = nullptr;

    // Pieces are claimed in order. When one fails, all before it are already running, and none after it needs to start.
    void run() {
        at_work = true;
        current_worker = workers.fetch_add(1);
        for (std::size_t i; (i = next.fetch_add(1)) < count;) {
            try {
                work(i);
            } catch (...) {
                next = count;
                const std::lock_guard lock(mutex);
                if (i < failed) {
                    failed = i;
                    error = std::current_exception();
                }
            }
        }
        at_work = false;
        current_worker = 0;
    }
};

namespace {

// Spins before sleeping. Waking a thread takes longer than a small piece of work, so a waiting thread spins for as long
// as the last job took (at most 500 microseconds): at most half of its time is lost.
class SpinWait {
  public:
    using Clock = std::chrono::steady_clock;
    explicit SpinWait(Clock::duration patience)
        : until_(Clock::now() + std::min<Clock::duration>(patience, std::chrono::microseconds(500))) {}

    template <class Seen>
    bool wait_for(Seen seen) const {
        for (;;) {
            for (int spin = 0; spin < 64; ++spin) {
                if (seen()) return true;
                pause();
            }
            if (Clock::now() >= until_) return seen();
        }
    }

  private:
    static void pause() {
#if defined(__x86_64__) || defined(_M_X64)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }
    Clock::time_point until_;
};

class Pool {
  public:
    // Offers the job to `helpers` threads. Returns false if the pool is busy or no thread can be started.
    bool begin(Job& job, std::size_t helpers) {
        if (taken_.exchange(true)) return false;
        if (!grow(helpers)) {
            taken_ = false;
            return false;
        }
        bool sleepers;
        {
            const std::lock_guard lock(mutex_);
            job_ = &job;
            wanted_ = helpers;
            sleepers = asleep_ > 0;
        }
        if (sleepers) wake_.notify_all();
        return true;
    }
    // requires: `job` was begun. ensures: all of it is done, on this thread where no helper claimed it.
    void end(Job& job) {
        const auto began = SpinWait::Clock::now();
        job.run();
        std::unique_lock lock(mutex_);
        wanted_ = 0;  // helpers that have not started need not start
        if (busy_ > 0) {
            lock.unlock();
            SpinWait(SpinWait::Clock::now() - began).wait_for([&] { return busy_ == 0; });
            lock.lock();
            done_.wait(lock, [&] { return busy_ == 0; });
        }
        job_ = nullptr;
        taken_ = false;
    }

  private:
    // requires: this thread holds the pool.
    bool grow(std::size_t helpers) {
        if (workers_ >= helpers) return true;
#if !defined(_WIN32)
        sigset_t all, before;  // signals are handled by Python's threads
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
        try {
            for (; workers_ < helpers; ++workers_) std::thread([this] { serve(); }).detach();
        } catch (const std::system_error&) {  // fewer threads suffice
        }
#if !defined(_WIN32)
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
        return workers_ > 0;
    }

    [[noreturn]] void serve() {
        std::unique_lock lock(mutex_);
        for (;;) {
            ++asleep_;
            wake_.wait(lock, [&] { return wanted_ > 0; });
            --asleep_;
            do {
                --wanted_;
                ++busy_;
                Job& job = *job_;
                lock.unlock();
                const auto began = SpinWait::Clock::now();
                job.run();
                const auto took = SpinWait::Clock::now() - began;
                lock.lock();
                if (--busy_ == 0) done_.notify_one();
                lock.unlock();
                SpinWait(took).wait_for([&] { return wanted_ > 0; });
                lock.lock();
            } while (wanted_ > 0);
        }
    }

    std::atomic<bool> taken_ = false;
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    Job* job_ = nullptr;
    std::atomic<std::size_t> wanted_ = 0, busy_ = 0;  // written under the mutex, read by spinning threads without it
    std::size_t asleep_ = 0, workers_ = 0;
};

// Never destroyed: its threads wait in it until the process ends. A forked child has no such threads and makes a new
// pool.
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
std::size_t worker_index() { return current_worker; }
void allow_threads(std::size_t count) { allowed = std::max<std::size_t>(count, 1); }

void parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
    parallel(count, threads_allowed(), work);
}

void parallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work) {
    threads = at_work ? 1 : std::min(threads, count);
    if (threads > 1) {
        Job job{count, std::cref(work)};
        if (Pool& pool = the_pool(); pool.begin(job, threads - 1)) {
            pool.end(job);
            if (job.error) std::rethrow_exception(job.error);
            return;
        }
    }
    for (std::size_t i = 0; i < count; ++i) work(i);
}

BackgroundWork::BackgroundWork() = default;
BackgroundWork::~BackgroundWork() { finish(); }

bool BackgroundWork::start(std::size_t count, std::function<void(std::size_t)> work) {
    const std::size_t threads = threads_allowed();
    if (threads <= 1 || job_) return false;
    auto job = std::make_unique<Job>(count, std::move(work));
    if (!the_pool().begin(*job, std::min(threads - 1, count))) return false;
    job_ = std::move(job);
    return true;
}

void BackgroundWork::finish() noexcept {
    if (!job_) return;
    the_pool().end(*job_);
    job_.reset();
}

}  // namespace gristmill
