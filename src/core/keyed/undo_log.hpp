// What a change of a keyed fleet has changed, so that it can be undone.
#pragma once

#include "core/keyed/keyed.hpp"

namespace gristmill {

// Records as they were before their first change.
template <class T>
struct Keyed<T>::UndoLog {
    struct Before {
        KeyTable::Snapshot key;
        std::string bytes;
        double last;
    };
    std::size_t records, hand;
    std::uint64_t dropped, expired;
    double now;
    bool clock_started;
    MemberShape shape;
    MemberLayout layout;
    std::size_t classes;
    Spilled evicted;
    std::unordered_set<std::string> expired_keys;
    std::optional<Arena> all = std::nullopt;  // where outputs are added
    std::unordered_map<std::uint32_t, Before> before = {};
    std::unordered_map<std::uint32_t, std::uint8_t> passed = {};  // by the hand: what it left behind is not touched any more

    explicit UndoLog(const Keyed& keyed)
        : records(keyed.table_.records()), hand(keyed.table_.hand()), dropped(keyed.dropped_), expired(keyed.expired_),
          now(keyed.now_), clock_started(keyed.clock_started_), shape(keyed.shape_), layout(keyed.layout_), classes(keyed.classes_),
          evicted(keyed.evicted_), expired_keys(keyed.expired_keys_) {}

    void touch(const Keyed& keyed, std::uint32_t i) {
        if (i >= records || before.count(i)) return;
        pass(keyed, i);
        before.emplace(i, Before{keyed.table_.snapshot(i), std::string(reinterpret_cast<const char*>(keyed.record(i)), keyed.layout_.bytes),
                                 keyed.table_.used(i) ? keyed.expiry_.last(i) : 0});
    }
    void pass(const Keyed& keyed, std::uint32_t i) {
        if (i < records) passed.emplace(i, keyed.table_.state(i));
    }
};

}  // namespace gristmill
