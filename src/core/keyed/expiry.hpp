// When the last event of each key came, and which keys are past their time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace gristmill {

// Keys by their record. Who may be the first past its time stands at the front of a queue; an event of a key does not move it
// there, so the times in the queue are at or before the true ones, and are looked at again when their turn comes.
class KeyExpiry {
  public:
    bool on() const { return on_; }
    void enable(bool on) {
        on_ = on;
        if (!on) last_.clear(), queued_.clear(), queue_.clear();
    }
    double last(std::uint32_t record) const { return on_ ? last_[record] : 0; }
    std::size_t bytes() const { return last_.capacity() * sizeof(double) + queued_.capacity() + queue_.capacity() * sizeof(QueueEntry); }

    // requires: time is not before any other that was told, or `rebuild` follows.
    void record_event(std::uint32_t record, double time) {
        if (record >= last_.size()) last_.resize(record + 1), queued_.resize(record + 1);
        last_[record] = time;
        if (!queued_[record]) queued_[record] = 1, push({time, record});
    }
    // No key that is used had its last event before this.
    double oldest() const { return queue_.empty() ? std::numeric_limits<double>::infinity() : queue_.front().time; }

    // gone(record): a key that is used and past its time.
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
    // After times were set in any order, or records went away.
    template <class Used>
    void rebuild(std::size_t records, Used used) {
        if (!on_) return;
        last_.resize(records);
        queued_.assign(records, 0);
        queue_.clear();
        for (std::uint32_t i = 0; i < records; ++i)
            if (used(i)) queued_[i] = 1, queue_.push_back({last_[i], i});
        std::make_heap(queue_.begin(), queue_.end(), later);
    }
    void set(std::uint32_t record, double time) {
        if (record >= last_.size()) last_.resize(record + 1), queued_.resize(record + 1);
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
    std::vector<std::uint8_t> queued_;  // whether it stands in the queue: once, whatever its record was used for
    std::vector<QueueEntry> queue_;
};

}  // namespace gristmill
