// One thread pool for the whole core, started on first use and again in a forked child process.
//
// Work is cut into independent pieces, so that the result is the same, bit for bit, for any number of threads and any
// assignment of pieces. If the pool is busy, the caller does its work alone; so does nested work.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace gristmill {

// How many threads the calls of this thread may use; 1 by default.
std::size_t threads_allowed();
void allow_threads(std::size_t count);
// Inside a piece of work: the index of this worker, unique among the threads of the job. 0 elsewhere.
std::size_t worker_index();

// Smallest number of multiplications for which waking a second thread pays off: an estimate, not a measurement.
inline constexpr std::size_t kWorthThreads = std::size_t{1} << 22;

// Calls work(i) for each i below `count`, in any order. If several fail, the error of the lowest i is thrown.
void parallel(std::size_t count, const std::function<void(std::size_t)>& work);
// The same on `threads` threads, whatever is allowed.
void parallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work);

// Work done by other threads while its owner continues.
struct Job;
class BackgroundWork {
  public:
    BackgroundWork();
    ~BackgroundWork();
    BackgroundWork(const BackgroundWork&) = delete;
    BackgroundWork& operator=(const BackgroundWork&) = delete;
    // Returns whether the work was started; false if only one thread is allowed or the pool is busy. requires: `work`
    // does not throw.
    bool start(std::size_t count, std::function<void(std::size_t)> work);
    // Runs the unclaimed pieces on this thread, then waits for the rest.
    void finish() noexcept;

  private:
    std::unique_ptr<Job> job_;
};

}  // namespace gristmill
