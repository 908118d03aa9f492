// Folder keyed: one learner per key: hash table, records, expiry, eviction, undo log.
// It includes fleet/ and below; bind/ may include it.
// Begin with this file. Events of any keys are learned in order of arrival. Each key has one small record; lanes run
// across its slots. Each learner equals a single learner on its own events, bit for bit.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "core/base/arena.hpp"
#include "core/fleet/fleet.hpp"
#include "core/keyed/expiry.hpp"
#include "core/keyed/key_table.hpp"

namespace gristmill {

struct KeyedSettings {
    std::size_t max_keys = 0;  // 0: no limit
    double ttl = kInfinity;    // time since a key's last event, in events or on the caller's clock
    bool spills = false;       // evicted records are handed to the caller and requested when they return
    bool texts = false;
    std::uint64_t seed = 0;
    bool one_seed = true;      // one seed for all keys; otherwise each key has a seed derived from this and the key
};

template <class T>
struct KeyedChunk {
    Keys keys;
    const T* rows = nullptr;
    const double* labels = nullptr;
    const double* weights = nullptr;
    const double* offsets = nullptr;  // added to the scores, `offset_columns` per event
    std::size_t offset_columns = 0;
    const double* times = nullptr;
    std::size_t count() const { return keys.count(); }
};

// Records outside memory, by key: integer keys as eight bytes.
using Spilled = std::unordered_map<std::string, std::string>;

// Positions of the keys in memory, saved because they decide future evictions.
struct KeyOrder {
    std::span<const std::int64_t> slots;   // the record of each key; -1: not in memory
    std::span<const std::uint8_t> touched;  // since the clock hand passed
    std::size_t hand = 0;
};

template <class T>
class Keyed {
  public:
    Keyed(FleetParts parts, const KeyedSettings& settings);
    ~Keyed();

    std::size_t width() const { return shape_.width; }
    std::size_t outputs() const { return shape_.outputs; }
    std::size_t classes() const { return classes_; }
    const MemberShape& shape() const { return shape_; }
    std::size_t live() const { return table_.live(); }
    std::size_t stored() const;  // stored points of all records
    std::size_t bytes() const;
    std::uint64_t dropped() const { return dropped_; }  // keys dropped for lack of memory
    std::uint64_t expired() const;  // keys expired, not counting those on disk
    void set_counts(std::uint64_t dropped, std::uint64_t expired) {
        dropped_ = dropped;
        expired_ = expired;
    }
    const KeyTable& table() const { return table_; }
    // Changes settings in mid-stream. Surplus keys are evicted.
    void configure(std::size_t max_keys, double ttl, bool spills);

    void check(const KeyedChunk<T>& chunk) const;
    // Whether an event of a checked chunk may still be refused because learning diverges.
    bool may_fail(const KeyedChunk<T>& chunk) const;
    void set_now(double now);  // advances the clock by events or time elsewhere
    // requires: check(). found: records of keys spilled before. All or nothing, as in Fleet::learn. With `spills` the
    // change is pending until keep(): evicted records must be written first, which may fail.
    void learn(const KeyedChunk<T>& chunk, std::size_t classes, const Spilled& found, std::vector<double>* scores);
    // Keys without a record are scored like new ones. shares: probabilities of the classes instead of scores.
    void score(const KeyedChunk<T>& chunk, const Spilled& found, bool shares, double* out) const;

    // Distinct keys of a chunk that may be on disk.
    std::vector<std::string> missing(const Keys& keys) const;
    // Whether each key exists, in memory or in `found`, and is not expired.
    std::vector<std::uint8_t> known(const Keys& keys, const Spilled& found) const;
    // Records evicted in the last change, and expired keys, whose records outside memory are obsolete.
    const Spilled& evicted() const { return evicted_; }
    const std::unordered_set<std::string>& expired_keys() const { return expired_keys_; }
    double last_of(const std::string& blob) const;
    // keep(): commits the last change (evicted records are persisted). rollback(): undoes it; returns whether there was
    // one.
    void keep(std::uint64_t expired);
    std::uint64_t changes() const { return changes_; }  // number of committed changes
    bool rollback();
    void forget(const Keys& keys);
    void add_classes(std::size_t classes);

    // Throws std::out_of_range for an unknown key.
    MemberPack<T> members(const Keys& keys, const Spilled& found, std::vector<double>& last) const;
    void set_members(const Keys& keys, const MemberPack<T>& pack, std::span<const double> last, const Spilled& found);
    // Loads saved records. requires: nothing was learned.
    void restore(const Keys& keys, const MemberPack<T>& pack, std::span<const double> last, const KeyOrder& order);
    double now() const { return now_; }

    static std::string text_of(const Key& key) {
        if (key.name.data()) return std::string(key.name);
        return std::string(reinterpret_cast<const char*>(&key.value), sizeof key.value);
    }

  private:
    using View = Member<T, 1>;
    // bytes of time and outputs at the end of a spilled record
    static constexpr std::size_t kTrailerBytes = sizeof(double) + sizeof(std::uint64_t);
    struct UndoLog;
    struct Scratch;

    std::byte* record(std::uint32_t i) const { return records_.at(i); }
    View view(std::byte* at) const { return View(at, 0, shape_, layout_); }
    void initialize(std::uint32_t i, const Key& key);
    std::string blob(const std::byte* record, double last) const;
    std::string decode(const std::string& blob) const;
    const std::string* find_spilled(const std::string& text, const Spilled& found) const;
    std::uint32_t place(const Key& key, std::uint32_t i, const Spilled& found, UndoLog* undo_log);
    void reload(std::uint32_t i, const Key& key, const Spilled& found);
    void evict(UndoLog* undo_log);
    void expire(UndoLog* undo_log);
    bool is_expired(double last, double now) const { return now - last > settings_.ttl; }
    // The clock is monotone: a late event counts as of now.
    void tick(const double* time) {
        now_ = !time ? now_ + 1 : clock_started_ ? std::max(now_, *time) : *time;
        clock_started_ = true;
    }
    double event_time(const KeyedChunk<T>& chunk, std::size_t e) const {
        return chunk.times ? std::max(now_, chunk.times[e]) : now_;
    }
    void begin(bool grows);
    struct Prefetcher;
    const T* scaled_event(const View& member, const T* x, std::size_t e, bool learn, Scratch& scratch) const;
    struct Sum {
        double value = 0;
        T norm2 = 0;
    };
    // Whether the score of a record is one sum in vector code.
    bool is_quick() const { return parts_.nodes.back().op == Op::gaussian && shape_.outputs == 1 && !shape_.merges; }
    Sum sum(const std::byte* at, const T* x) const;
    void use_sum(const View& member, const Sum& sum, Scratch& scratch) const;
    void compute_scores(const View& member, const std::byte* at, const T* x, Scratch& scratch) const;
    template <class R>
    void learn_events(const R& rule, const KeyedChunk<T>& chunk, std::size_t from, std::size_t to, const Spilled& found,
                      double* out, UndoLog* undo_log);
    void undo(UndoLog& undo_log);

    FleetParts parts_;
    KeyedSettings settings_;
    Kernel kernel_;
    MemberShape shape_;
    std::size_t limit_, classes_ = 0;
    MemberLayout layout_;
    std::vector<double> start_;  // initial state of the rule
    KeyTable table_;
    Arena records_;
    KeyExpiry expiry_;  // used if there is a ttl
    double now_ = 0;  // events so far, or the caller's clock
    bool clock_started_ = false, bounded_ = true;
    std::uint64_t dropped_ = 0, expired_ = 0, changes_ = 0;
    Spilled evicted_;
    std::unordered_set<std::string> expired_keys_;
    std::unique_ptr<UndoLog> undo_log_;  // of a pending change
};

}  // namespace gristmill
