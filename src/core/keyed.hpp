// A learner a key: events come in any order of keys and are learned in the order of arrival. Each key has one small record;
// lanes run across its slots. Each is what a learner alone would be on its own events, bit for bit.
#pragma once

#include <unordered_map>

#include "core/arena.hpp"
#include "core/fleet.hpp"
#include "core/key_table.hpp"

namespace gristmill {

struct KeyedSettings {
    std::size_t max_keys = 0;  // 0: no cap
    double ttl = kInfinity;    // since a key's last event, in events or on the caller's clock
    bool spills = false;       // what leaves is handed out, and asked for when it comes back
    bool texts = false;
    std::uint64_t seed = 0;
    bool one_seed = true;      // for all keys; else each has its own, made of this and the key
};

template <class T>
struct KeyedChunk {
    Keys keys;
    const T* rows = nullptr;
    const double* labels = nullptr;
    const double* weights = nullptr;
    const double* offsets = nullptr;  // added to the scores, `offset_columns` an event
    std::size_t offset_columns = 0;
    const double* times = nullptr;
    std::size_t count() const { return keys.count(); }
};

// Records that are not in memory, by key: numbers as eight bytes.
using Spilled = std::unordered_map<std::string, std::string>;

template <class T>
class Keyed {
  public:
    Keyed(FleetParts parts, const KeyedSettings& settings);

    std::size_t width() const { return shape_.width; }
    std::size_t outputs() const { return shape_.outputs; }
    std::size_t classes() const { return classes_; }
    const MemberShape& shape() const { return shape_; }
    std::size_t live() const { return table_.live(); }
    std::size_t stored() const;  // points, of all records
    std::size_t bytes() const;
    std::uint64_t dropped() const { return dropped_; }  // keys that went away for want of room
    std::uint64_t expired() const { return expired_; }  // keys that went away because of their age
    const KeyTable& table() const { return table_; }

    void check(const KeyedChunk<T>& chunk) const;
    // Whether an event of a chunk that was checked may still be refused: when learning may diverge.
    bool may_fail(const KeyedChunk<T>& chunk) const;
    void set_now(double now) { now_ = now; }  // events, or time, that went by elsewhere
    // requires: checked. found: records of keys that were spilled before. All or nothing, as in Fleet::learn.
    void learn(const KeyedChunk<T>& chunk, std::size_t classes, const Spilled& found, std::vector<double>* scores);
    // Keys without a record are as if they had seen nothing.
    // shares: the probability of each class instead.
    void score(const KeyedChunk<T>& chunk, const Spilled& found, bool shares, double* out) const;

    // Keys of a chunk, each once, that have no record here.
    std::vector<std::string> missing(const Keys& keys) const;
    // What left since the last `flushed`.
    const Spilled& leaving() const { return leaving_; }
    void flushed() { leaving_.clear(); }
    void forget(const Keys& keys, std::vector<std::uint8_t>& was_there);
    void sweep();  // keys past their time go
    void meet(std::size_t classes);

    MemberPack<T> members(const Keys& keys, const Spilled& found, std::vector<double>& last) const;
    void set_members(const Keys& keys, const MemberPack<T>& pack, std::span<const double> last, double now);
    double now() const { return now_; }

    static std::string text_of(const Key& key) {
        if (key.name.data()) return std::string(key.name);
        return std::string(reinterpret_cast<const char*>(&key.value), sizeof key.value);
    }

  private:
    using View = Member<T, 1>;
    static constexpr std::size_t kTail = sizeof(double) + sizeof(std::uint64_t);  // of a spilled record
    struct Journal;
    struct Scratch;

    std::byte* record(std::uint32_t i) const {
        return records_.at(i);
    }
    View view(std::byte* at) const { return View(at, 0, shape_, layout_); }
    void fresh(std::uint32_t i, const Key& key);
    void put(std::uint32_t i, const std::string& blob);
    std::string blob(std::uint32_t i) const;
    std::string current(const std::string& blob) const;
    std::uint32_t place(const Key& key, std::uint32_t i, double now, const Spilled* found, Journal* journal);
    void evict(Journal* journal);
    bool is_past(double last, double now) const { return now - last > settings_.ttl; }
    struct Ahead;
    const T* taken(const View& member, const T* x, std::size_t e, bool learn, Scratch& scratch) const;
    void look(const View& member, const std::byte* at, const T* x, Scratch& scratch) const;
    template <class R>
    void learn_events(const R& rule, const KeyedChunk<T>& chunk, std::size_t from, std::size_t to, const Spilled& found,
                      double* out, Journal* journal);
    void undo(Journal& journal);

    FleetParts parts_;
    KeyedSettings settings_;
    Kernel kernel_;
    MemberShape shape_;
    std::size_t limit_, classes_ = 0;
    MemberLayout layout_;
    std::vector<double> start_;  // the rule's numbers before anything was learned
    KeyTable table_;
    Arena records_;
    std::vector<double> last_;   // when a key's last event came; empty without ttl
    double now_ = 0;             // events so far, or the caller's clock
    bool tame_ = true;
    std::uint64_t dropped_ = 0, expired_ = 0;
    Spilled leaving_;
};

}  // namespace gristmill
