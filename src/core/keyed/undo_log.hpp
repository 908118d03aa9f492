// What a change of a keyed fleet has changed, so that it can be undone.
#pragma once

#include "core/keyed/keyed.hpp"

namespace gristmill {

// Records as they were before their first change.
template <class T>
struct Keyed<T>::Journal {
    struct Before {
        KeyTable::Saved key;
        std::string bytes;
        double last;
    };
    std::size_t records, hand;
    std::uint64_t dropped, expired;
    double now;
    bool began;
    MemberShape shape;
    MemberLayout layout;
    std::size_t classes;
    Spilled leaving;
    std::unordered_set<std::string> gone;
    std::optional<Arena> all = std::nullopt;  // where outputs are added
    std::unordered_map<std::uint32_t, Before> before = {};
    std::unordered_map<std::uint32_t, std::uint8_t> passed = {};  // by the hand: what it left behind is not touched any more

    explicit Journal(const Keyed& keyed)
        : records(keyed.table_.records()), hand(keyed.table_.hand()), dropped(keyed.dropped_), expired(keyed.expired_),
          now(keyed.now_), began(keyed.began_), shape(keyed.shape_), layout(keyed.layout_), classes(keyed.classes_),
          leaving(keyed.leaving_), gone(keyed.gone_) {}

    void touch(const Keyed& keyed, std::uint32_t i) {
        if (i >= records || before.count(i)) return;
        pass(keyed, i);
        before.emplace(i, Before{keyed.table_.saved(i), std::string(reinterpret_cast<const char*>(keyed.record(i)), keyed.layout_.bytes),
                                 keyed.table_.used(i) ? keyed.ages_.last(i) : 0});
    }
    void pass(const Keyed& keyed, std::uint32_t i) {
        if (i < records) passed.emplace(i, keyed.table_.state(i));
    }
};

}  // namespace gristmill
