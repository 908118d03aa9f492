// One pool of threads for everything in the core: started when it is first asked for, anew in a child process.
//
// Work is cut into pieces that do not know of each other, so the result is the same, bit for bit, on any number of threads; who
// computes which piece is left to chance. A caller that finds the pool taken does its work alone, and so does work within work.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace gristmill {

// How many threads this thread may use for what it asks for; 1 unless said.
std::size_t threads_allowed();
void allow_threads(std::size_t count);
// Inside a piece of work: a number below that of the threads at work on it, which no other of them has. 0 elsewhere.
std::size_t worker_index();

// So many multiplications must be ahead before a second thread is worth waking, which takes longer than a few of them: an
// estimate, not a measurement.
inline constexpr std::size_t kWorthThreads = std::size_t{1} << 22;

// work(i) for each i below `count`, in no order. The error of the lowest i is thrown.
void parallel(std::size_t count, const std::function<void(std::size_t)>& work);
// The same on `threads` of them, whatever is allowed.
void parallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work);

// Work that others do while its owner goes on with something else.
struct Job;
class BackgroundWork {
  public:
    BackgroundWork();
    ~BackgroundWork();
    BackgroundWork(const BackgroundWork&) = delete;
    BackgroundWork& operator=(const BackgroundWork&) = delete;
    // Whether it began; not where one thread is all that is allowed, or the pool is taken. requires: `work` does not throw.
    bool start(std::size_t count, std::function<void(std::size_t)> work);
    // What nobody has begun is done by this thread. ensures: all of it is done.
    void finish() noexcept;

  private:
    std::unique_ptr<Job> job_;
};

}  // namespace gristmill
