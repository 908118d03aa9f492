// Prefetching for keyed fleets: keys and records of the next events are fetched while the events before them are
// learned.
#pragma once

#include "core/keyed/keyed.hpp"

namespace gristmill {

// Each key is hashed once, and looked up once unless keys are added or removed in between.
//
// Records are prefetched a batch at a time, between two batches of learning, into the L2 cache: a prefetch waits for a
// free line fill buffer, and the instructions after it wait with it. A loop of prefetches alone keeps all buffers busy;
// prefetches between pieces of work would stall the work repeatedly and still leave buffers empty.
template <class T>
struct Keyed<T>::Prefetcher {
    static constexpr std::size_t kBatch = 64, kRing = 4 * kBatch;
    static constexpr std::size_t kSoon = 2;  // distance at which a record is prefetched into the L1 cache
    static constexpr std::size_t kMostLines = 64;  // larger records are prefetched only up to this many lines
    struct Event {
        Key key;
        std::uint32_t record = KeyTable::kNone;
        std::uint64_t version = 0;
    };

    Prefetcher(const Keyed& keyed, const Keys& keys, std::size_t first)
        : keyed(keyed), keys(keys), count(keys.count()), start(first) {
        hash(first, first + 2 * kBatch);
        find(first, first + kBatch);
    }

    // The key of an event and its record, if there is one. requires: consecutive events.
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

    // The record of the event after the last, if it is known without a lookup.
    std::uint32_t record(std::size_t e) const {
        const Event& event = ring[e % kRing];
        return event.version == keyed.table_.version() ? event.record : KeyTable::kNone;
    }

  private:
    void hash(std::size_t from, std::size_t to) {
        for (std::size_t e = from; e < std::min(to, count); ++e)
            keyed.table_.prefetch(ring[e % kRing].key = Key::of(keys, e));
    }
    void find(std::size_t from, std::size_t to) {
        for (std::size_t e = from; e < std::min(to, count); ++e) {
            Event& event = ring[e % kRing];
            event.record = keyed.table_.find(event.key);
            event.version = keyed.table_.version();
            if (event.record != KeyTable::kNone) keyed.table_.prefetch(event.record);
            // Includes lines that only some events read: waiting for one line costs as much as a dozen prefetches.
            pull<2>(event, lines);
        }
    }
    template <int Locality>
    [[gnu::always_inline]] void pull(const Event& event, std::size_t count_lines) const {
        if (event.record == KeyTable::kNone) return;
        const std::byte* at = keyed.record(event.record);
        for (std::size_t line = 0; line < count_lines; ++line) __builtin_prefetch(at + line * kLineBytes, 0, Locality);
    }
    static std::size_t lines_of(std::size_t bytes) {
        return std::min((bytes + kLineBytes - 1) / kLineBytes, kMostLines);
    }

    const Keyed& keyed;
    const Keys& keys;
    std::size_t count, start;
    std::size_t lines = lines_of(keyed.layout_.bytes), hot_lines = lines_of(keyed.layout_.hot);
    std::vector<Event> ring = std::vector<Event>(std::min(kRing, count));  // event e is at e % kRing
};

}  // namespace gristmill
