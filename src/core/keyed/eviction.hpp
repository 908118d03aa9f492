// Which key is evicted: CLOCK, an approximation of the least recently used one.
#pragma once

#include <cstdint>
#include <vector>

namespace gristmill {

// A hand goes round the records. It takes the mark off each record that was touched since it last passed, and stops at
// the first record without one.
class ClockEviction {
  public:
    bool used(std::uint32_t record) const { return state_[record] != kFree; }
    void touch(std::uint32_t record) {
        if (state_[record] != kTouched) state_[record] = kTouched;  // a write only where something changes
    }
    void free(std::uint32_t record) { state_[record] = kFree; }

    // The record to evict; on_pass(record) is called for those whose mark is taken off. requires: some record is used.
    template <class OnPass>
    std::uint32_t next(OnPass on_pass) {
        for (;; hand_ = (hand_ + 1) % state_.size()) {
            const auto record = static_cast<std::uint32_t>(hand_);
            if (state_[record] == kTouched) {
                on_pass(record);
                state_[record] = kUsed;
            } else if (state_[record] == kUsed) {
                return record;
            }
        }
    }

    std::uint8_t state(std::uint32_t record) const { return state_[record]; }
    void set_state(std::uint32_t record, std::uint8_t state) { state_[record] = state; }
    std::size_t hand() const { return hand_; }
    void set_hand(std::size_t hand) { hand_ = hand; }
    void resize(std::size_t records) { state_.resize(records); }
    void prefetch(std::uint32_t record) const { __builtin_prefetch(&state_[record]); }
    std::size_t bytes() const { return state_.capacity(); }

  private:
    static constexpr std::uint8_t kFree = 0, kUsed = 1, kTouched = 3;
    std::vector<std::uint8_t> state_;
    std::size_t hand_ = 0;
};

}  // namespace gristmill
