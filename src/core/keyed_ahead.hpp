// The events to come of a keyed fleet: their keys and records are on their way from memory while those before are learned.
#pragma once

#include "core/keyed.hpp"

namespace gristmill {

// Each key is hashed once, and looked up once unless keys come or go in between.
template <class T>
struct Keyed<T>::Ahead {
    // Cells of the table are asked for so many events ahead, and records, which are found by them, so many.
    static constexpr std::size_t kRing = 64, kCells = 40, kRecords = 20;
    static constexpr std::size_t kParts = 4;
    struct Event {
        Key key;
        std::uint32_t record;
        std::uint64_t version;
    };

    Ahead(const Keyed& keyed, const Keys& keys, std::size_t first) : keyed(keyed), keys(keys), count(keys.count()) {
        for (std::size_t e = first; e < std::min(first + kCells, count); ++e) hash(e);
        for (std::size_t e = first; e < std::min(first + kRecords, count); ++e) {
            find(e);
            pull<0>(), pull<1>(), pull<2>(), pull<3>();
        }
    }

    // The key of an event and its record, if there is one.
    const Key& operator()(std::size_t e, std::uint32_t& record) {
        next = nullptr;
        if (e + kCells < count) hash(e + kCells);
        if (e + kRecords < count) find(e + kRecords);
        const Event& event = ring[e % kRing];
        record = event.version == keyed.table_.version() ? event.record : keyed.table_.find(event.key);
        return event.key;
    }

    // A part of the next record: a processor has room for few lines that are on their way, so they are asked for a few at a time
    // between pieces of work, and into the second cache, which has more of it.
    template <std::size_t Part>
    [[gnu::always_inline]] void pull() const {
        if (!next) return;
        const std::size_t lines = (keyed.layout_.hot + kLineBytes - 1) / kLineBytes;
        for (std::size_t line = lines * Part / kParts; line < lines * (Part + 1) / kParts; ++line)
            __builtin_prefetch(next + line * kLineBytes, 0, 2);
    }

  private:
    void hash(std::size_t e) { keyed.table_.prefetch(ring[e % kRing].key = Key::of(keys, e)); }
    void find(std::size_t e) {
        Event& event = ring[e % kRing];
        event.record = keyed.table_.find(event.key), event.version = keyed.table_.version();
        next = nullptr;
        if (event.record == KeyTable::kNone) return;
        keyed.table_.prefetch(event.record);
        next = keyed.record(event.record);
    }

    const Keyed& keyed;
    const Keys& keys;
    std::size_t count;
    Event ring[kRing];
    const std::byte* next = nullptr;  // the record that was found last
};

}  // namespace gristmill
