// The events to come of a keyed fleet: their keys and records are on their way from memory while those before are learned.
#pragma once

#include "core/keyed/keyed.hpp"

namespace gristmill {

// Each key is hashed once, and looked up once unless keys come or go in between.
//
// Records are asked for a batch at a time, between two batches of learning, and into the second cache: a request waits for a place
// among the few that a processor keeps on their way, and what follows waits with it. A loop that does nothing else keeps all
// places taken; requests between pieces of work would stop the work again and again and still leave places empty.
template <class T>
struct Keyed<T>::Prefetcher {
    static constexpr std::size_t kBatch = 64, kRing = 4 * kBatch;
    static constexpr std::size_t kSoon = 2;        // events before its turn a record is brought on into the first cache
    static constexpr std::size_t kMostLines = 64;  // of a larger record the rest is asked for when it is looked at
    struct Event {
        Key key;
        std::uint32_t record;
        std::uint64_t version;
    };

    Prefetcher(const Keyed& keyed, const Keys& keys, std::size_t first) : keyed(keyed), keys(keys), count(keys.count()), start(first) {
        hash(first, first + 2 * kBatch);
        find(first, first + kBatch);
    }

    // The key of an event and its record, if there is one. Events come one after the other.
    const Key& operator()(std::size_t e, std::uint32_t& record) {
        if ((e - start) % kBatch == 0) {
            hash(e + 2 * kBatch, e + 3 * kBatch);
            find(e + kBatch, e + 2 * kBatch);
        }
        if (e + kSoon < count) pull<3>(ring[(e + kSoon) % kRing], hot_lines);
        const Event& event = ring[e % kRing];
        record = event.version == keyed.table_.version() ? event.record : keyed.table_.find(event.key);
        return event.key;
    }

    // The record of the event after the last, if it is known without a look at the table.
    std::uint32_t record(std::size_t e) const {
        const Event& event = ring[e % kRing];
        return event.version == keyed.table_.version() ? event.record : KeyTable::kNone;
    }

  private:
    void hash(std::size_t from, std::size_t to) {
        for (std::size_t e = from; e < std::min(to, count); ++e) keyed.table_.prefetch(ring[e % kRing].key = Key::of(keys, e));
    }
    void find(std::size_t from, std::size_t to) {
        for (std::size_t e = from; e < std::min(to, count); ++e) {
            Event& event = ring[e % kRing];
            event.record = keyed.table_.find(event.key), event.version = keyed.table_.version();
            if (event.record != KeyTable::kNone) keyed.table_.prefetch(event.record);
            // Also what only some events look at: a line that is waited for costs as much as a dozen that are not.
            pull<2>(event, lines);
        }
    }
    template <int Locality>
    [[gnu::always_inline]] void pull(const Event& event, std::size_t count_lines) const {
        if (event.record == KeyTable::kNone) return;
        const std::byte* at = keyed.record(event.record);
        for (std::size_t line = 0; line < count_lines; ++line) __builtin_prefetch(at + line * kLineBytes, 0, Locality);
    }
    static std::size_t lines_of(std::size_t bytes) { return std::min((bytes + kLineBytes - 1) / kLineBytes, kMostLines); }

    const Keyed& keyed;
    const Keys& keys;
    std::size_t count, start;
    std::size_t lines = lines_of(keyed.layout_.bytes), hot_lines = lines_of(keyed.layout_.hot);
    union {
        Event ring[kRing];  // not cleared for the sake of a single event
    };
};

}  // namespace gristmill
