// What a chunk has changed in a keyed fleet, so that it can be undone.
#pragma once

#include "core/keyed.hpp"

namespace gristmill {

// Records as they were before their first change.
template <class T>
struct Keyed<T>::Journal {
    struct Before {
        KeyTable::Saved key;
        std::string bytes;
        double last;
    };
    std::unordered_map<std::uint32_t, Before> before;
    std::size_t records, hand;
    std::uint64_t dropped, expired;
    double now;
    Spilled leaving;
    std::optional<Arena> all;  // where outputs are added

    void touch(const Keyed& keyed, std::uint32_t i) {
        if (i >= records || before.count(i)) return;
        before.emplace(i, Before{keyed.table_.saved(i), std::string(reinterpret_cast<const char*>(keyed.record(i)), keyed.layout_.bytes),
                                 keyed.last_.empty() ? 0 : keyed.last_[i]});
    }
};

}  // namespace gristmill
