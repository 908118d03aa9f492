// A hash table from keys to records: open addressing over record numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/arena.hpp"
#include "core/keyed/eviction.hpp"

namespace gristmill {

// Keys of events: integers or strings.
struct Keys {
    std::span<const std::int64_t> whole;
    std::vector<std::string_view> text;
    bool texts = false;
    std::size_t count() const { return texts ? text.size() : whole.size(); }
};

// One key: an integer, or a string with its hash as value; `hash` is mixed for the table.
struct Key {
    std::uint64_t value = 0;
    std::string_view name;
    std::uint64_t hash = mix(value);

    static Key of(const Keys& keys, std::size_t i) {
        return keys.texts ? of(keys.text[i]) : number(static_cast<std::uint64_t>(keys.whole[i]));
    }
    static Key number(std::uint64_t value) { return {value, {}, mix(value)}; }
    static Key of(std::string_view name) {
        std::uint64_t hash = 0xcbf29ce484222325u;
        for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
        return {hash, name};
    }
    static std::uint64_t mix(std::uint64_t z) {
        z += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
};

class KeyTable {
  public:
    static constexpr std::uint32_t kNone = 0xffffffffu;

    explicit KeyTable(bool texts) : texts_(texts), cells_(16) {}

    bool texts() const { return texts_; }
    std::size_t live() const { return live_; }
    std::size_t records() const { return values_.size(); }  // number of records, used or free
    bool used(std::uint32_t record) const { return clock_.used(record); }
    Key key(std::uint32_t record) const {
        return {values_[record], texts_ ? std::string_view(names_[record]) : std::string_view()};
    }
    std::size_t bytes() const {
        std::size_t total =
            values_.capacity() * 8 + clock_.bytes() + cells_.capacity() * sizeof(Cell) + free_.capacity() * 4;
        for (const auto& name : names_) total += sizeof name + (name.capacity() > 15 ? name.capacity() + 1 : 0);
        return total;
    }

    std::uint32_t find(const Key& key) const {
        for (std::size_t at = key.hash & mask();; at = (at + 1) & mask()) {
            const Cell& cell = cells_[at];
            if (cell.record == kNone || (cell.value == key.value && (!texts_ || names_[cell.record] == key.name)))
                return cell.record;
        }
    }
    void prefetch(const Key& key) const { __builtin_prefetch(&cells_[key.hash & mask()]); }
    // Prefetches what the key's event reads beside its record.
    void prefetch(std::uint32_t record) const {
        clock_.prefetch(record);
        if (texts_) __builtin_prefetch(&names_[record]);
    }
    // Changes whenever a key is added or removed: earlier lookups may be out of date.
    std::uint64_t version() const { return version_; }
    void touch(std::uint32_t record) { clock_.touch(record); }

    // The record of the next new key: the lowest free one. It depends only on which keys exist and not on the order of
    // removals, so that a fleet continues identically from a file and after a rollback.
    std::uint32_t next() const { return free_.empty() ? static_cast<std::uint32_t>(values_.size()) : free_.front(); }

    // Adds a key. requires: the key is not in the table. The record may be a reused one.
    std::uint32_t add(const Key& key) {
        if (10 * (live_ + 1) > 7 * cells_.size()) rebuild(2 * cells_.size());
        const std::uint32_t record = next();
        if (free_.empty()) {
            values_.push_back(0);
            clock_.resize(values_.size());
            if (texts_) names_.emplace_back();
        } else {
            std::pop_heap(free_.begin(), free_.end(), std::greater<>());
            free_.pop_back();
        }
        values_[record] = key.value;
        if (texts_) names_[record] = key.name;
        clock_.touch(record);
        ++live_;
        ++version_;
        insert(record);
        return record;
    }
    void remove(std::uint32_t record) {
        std::size_t hole = key(record).hash & mask();
        while (cells_[hole].record != record) hole = (hole + 1) & mask();
        // Entries behind the hole move up, unless that would place them before their home position.
        for (std::size_t at = (hole + 1) & mask(); cells_[at].record != kNone; at = (at + 1) & mask()) {
            const std::size_t home = key(cells_[at].record).hash & mask();
            if (((at - home) & mask()) >= ((at - hole) & mask())) {
                cells_[hole] = cells_[at];
                hole = at;
            }
        }
        cells_[hole] = {};
        clock_.free(record);
        if (texts_) names_[record] = {};
        free_.push_back(record);
        std::push_heap(free_.begin(), free_.end(), std::greater<>());
        --live_;
        ++version_;
    }
    // The record to evict; on_pass(record) is called for those that stay because they were touched. requires: live() > 0.
    template <class OnPass>
    std::uint32_t next_evicted(OnPass on_pass) {
        return clock_.next(on_pass);
    }
    std::uint8_t state(std::uint32_t record) const { return clock_.state(record); }
    void set_state(std::uint32_t record, std::uint8_t state) { clock_.set_state(record, state); }

    // Restores a record. Call finish_restore() after the last one.
    struct Snapshot {
        std::uint64_t value;
        std::string name;
        std::uint8_t state;
    };
    Snapshot snapshot(std::uint32_t record) const {
        return {values_[record], texts_ ? names_[record] : std::string(), clock_.state(record)};
    }
    void restore(std::uint32_t record, Snapshot snapshot) {
        values_[record] = snapshot.value;
        if (texts_) names_[record] = std::move(snapshot.name);
        clock_.set_state(record, snapshot.state);
    }
    void resize(std::size_t records) {
        values_.resize(records);
        clock_.resize(records);
        names_.resize(texts_ ? records : 0);
    }
    void finish_restore(std::size_t records, std::size_t hand) {
        resize(records);
        clock_.set_hand(hand);
        free_.clear();
        live_ = 0;
        ++version_;
        for (std::size_t r = 0; r < records; ++r)  // ascending order is a heap
            if (!used(static_cast<std::uint32_t>(r))) free_.push_back(static_cast<std::uint32_t>(r));
            else ++live_;
        std::size_t size = cells_.size();
        while (10 * (live_ + 1) > 7 * size) size *= 2;
        rebuild(size);
    }
    std::size_t hand() const { return clock_.hand(); }

  private:
    // The value of a key is stored beside its record, so that a lookup reads one cache line.
    struct Cell {
        std::uint64_t value = 0;
        std::uint32_t record = kNone;
    };
    std::size_t mask() const { return cells_.size() - 1; }
    void insert(std::uint32_t record) {
        const Key own = key(record);
        std::size_t at = own.hash & mask();
        while (cells_[at].record != kNone) at = (at + 1) & mask();
        cells_[at] = {own.value, record};
    }
    void rebuild(std::size_t size) {
        decltype(cells_)(size).swap(cells_);
        for (std::size_t r = 0; r < values_.size(); ++r)
            if (used(static_cast<std::uint32_t>(r))) insert(static_cast<std::uint32_t>(r));
    }

    bool texts_;
    std::vector<Cell, LargePages<Cell>> cells_;
    std::vector<std::uint32_t> free_;  // a heap, lowest in front
    std::vector<std::uint64_t> values_;
    std::vector<std::string> names_;
    ClockEviction clock_;
    std::size_t live_ = 0;
    std::uint64_t version_ = 0;
};

}  // namespace gristmill
