// The time of each key's last event, and which keys have expired.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace gristmill {

// Keys by record, with a priority queue by time. An event does not move its key in the queue, so queued times are lower
// bounds and are checked again when they reach the front.
class KeyExpiry {
  public:
    bool on() const { return on_; }
    void enable(bool on) {
        on_ = on;
        if (!on) {
            last_.clear();
            queued_.clear();
            queue_.clear();
        }
    }
    double last(std::uint32_t record) const { return on_ ? last_[record] : 0; }
    std::size_t bytes() const {
        return last_.capacity() * sizeof(double) + queued_.capacity() + queue_.capacity() * sizeof(QueueEntry);
    }

    // Precondition: time is non-decreasing, or rebuild() is called afterwards.
    void record_event(std::uint32_t record, double time) {
        if (record >= last_.size()) {
            last_.resize(record + 1);
            queued_.resize(record + 1);
        }
        last_[record] = time;
        if (!queued_[record]) {
            queued_[record] = 1;
            push({time, record});
        }
    }
    // Lower bound of the last event of all used keys.
    double oldest() const { return queue_.empty() ? std::numeric_limits<double>::infinity() : queue_.front().time; }

    // Calls expire(record) for every used key that has expired.
    template <class IsExpired, class Used, class Expire>
    void sweep(IsExpired is_expired, Used used, Expire expire) {
        while (is_expired(oldest())) {
            const std::uint32_t record = queue_.front().record;
            std::pop_heap(queue_.begin(), queue_.end(), later);
            queue_.pop_back();
            if (used(record) && !is_expired(last_[record])) {
                push({last_[record], record});
                continue;
            }
            queued_[record] = 0;
            if (used(record)) expire(record);
        }
    }
    // Rebuilds the queue after times were set in any order, or records were removed.
    template <class Used>
    void rebuild(std::size_t records, Used used) {
        if (!on_) return;
        last_.resize(records);
        queued_.assign(records, 0);
        queue_.clear();
        for (std::uint32_t i = 0; i < records; ++i)
            if (used(i)) {
                queued_[i] = 1;
                queue_.push_back({last_[i], i});
            }
        std::make_heap(queue_.begin(), queue_.end(), later);
    }
    void set(std::uint32_t record, double time) {
        if (record >= last_.size()) {
            last_.resize(record + 1);
            queued_.resize(record + 1);
        }
        last_[record] = time;
    }

  private:
    struct QueueEntry {
        double time;
        std::uint32_t record;
    };
    static bool later(const QueueEntry& a, const QueueEntry& b) { return a.time > b.time; }
    void push(QueueEntry enable) {
        queue_.push_back(enable);
        std::push_heap(queue_.begin(), queue_.end(), later);
    }

    bool on_ = false;
    std::vector<double> last_;
    std::vector<std::uint8_t> queued_;  // whether the record is in the queue; at most once
    std::vector<QueueEntry> queue_;
};

}  // namespace gristmill
