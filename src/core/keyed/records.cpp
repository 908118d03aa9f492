// Records of a keyed fleet: creation, eviction, spilling, reloading, expiry, undo, saving and loading.
#include <cstring>
#include <unordered_set>

#include "core/keyed/keyed.hpp"

namespace gristmill {

// Undo log of a change: the records before their first change.
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
    std::optional<Arena> all = std::nullopt;  // all records, if outputs are added
    std::unordered_map<std::uint32_t, Before> before = {};
    std::unordered_map<std::uint32_t, std::uint8_t> passed = {};  // state of the records that the clock hand passed

    explicit UndoLog(const Keyed& keyed)
        : records(keyed.table_.records()), hand(keyed.table_.hand()), dropped(keyed.dropped_), expired(keyed.expired_),
          now(keyed.now_), clock_started(keyed.clock_started_), shape(keyed.shape_), layout(keyed.layout_),
          classes(keyed.classes_), evicted(keyed.evicted_), expired_keys(keyed.expired_keys_) {}

    void touch(const Keyed& keyed, std::uint32_t i) {
        if (i >= records || before.count(i)) return;
        pass(keyed, i);
        before.emplace(i, Before{keyed.table_.snapshot(i),
                                 std::string(reinterpret_cast<const char*>(keyed.record(i)), keyed.layout_.bytes),
                                 keyed.table_.used(i) ? keyed.expiry_.last(i) : 0});
    }
    void pass(const Keyed& keyed, std::uint32_t i) {
        if (i < records) passed.emplace(i, keyed.table_.state(i));
    }
};

template <class T>
Keyed<T>::Keyed(FleetParts parts, const KeyedSettings& settings)
    : parts_(std::move(parts)), settings_(settings), kernel_(parts_.nodes),
      shape_{parts_.width,
             1,
             state_of(parts_.rule).size(),
             parts_.task,
             std::holds_alternative<DropRandom>(parts_.budget),
             parts_.scaling.on(),
             false,
             std::holds_alternative<Merge>(parts_.budget)},
      limit_(member_limit(parts_.rule, parts_.budget)), layout_(shape_, sizeof(T), limit_, 1),
      start_(state_of(parts_.rule)), table_(settings.texts), records_(layout_.bytes) {
    expiry_.enable(std::isfinite(settings.ttl));
}

template <class T>
Keyed<T>::~Keyed() = default;

template <class T>
std::size_t Keyed<T>::bytes() const {
    std::size_t total = sizeof *this + table_.bytes() + expiry_.bytes() + records_.bytes(table_.records());
    for (const auto& [key, record] : evicted_) total += key.size() + record.size();
    return total;
}

template <class T>
std::size_t Keyed<T>::stored() const {
    std::size_t total = 0;
    for (std::uint32_t i = 0; i < table_.records(); ++i)
        if (table_.used(i)) total += view(record(i)).size();
    return total;
}

template <class T>
void Keyed<T>::initialize(std::uint32_t i, const Key& key) {
    std::byte* at = record(i);
    std::memset(at, 0, layout_.bytes);
    view(at).clear_to(settings_.one_seed ? settings_.seed : Key::mix(settings_.seed ^ key.hash), start_);
}

// A spilled record: its bytes, the time of its last event (without a ttl: of its eviction), and its number of outputs.
template <class T>
std::string Keyed<T>::blob(const std::byte* record, double last) const {
    std::string bytes(reinterpret_cast<const char*>(record), layout_.bytes);
    if (!expiry_.on()) last = now_;
    const std::uint64_t outputs = shape_.outputs;
    bytes.append(reinterpret_cast<const char*>(&last), sizeof last);
    return bytes.append(reinterpret_cast<const char*>(&outputs), sizeof outputs);
}

template <class T>
double Keyed<T>::last_of(const std::string& blob) const {
    double last;
    std::memcpy(&last, blob.data() + blob.size() - kTrailerBytes, sizeof last);
    return last;
}

// Checks a spilled record and adds outputs that are new since it was evicted.
template <class T>
std::string Keyed<T>::decode(const std::string& blob) const {
    const auto refuse = [] { throw std::invalid_argument("a spilled record is damaged, or of another fleet"); };
    std::uint64_t outputs = 0;
    if (blob.size() < kTrailerBytes) refuse();
    std::memcpy(&outputs, blob.data() + blob.size() - sizeof outputs, sizeof outputs);
    if (outputs == 0 || outputs > shape_.outputs) refuse();
    MemberShape old = shape_;
    old.outputs = outputs;
    const MemberLayout before(old, sizeof(T), limit_, 1);
    if (blob.size() != before.bytes + kTrailerBytes) refuse();
    Lines<std::byte> from(before.bytes), to(layout_.bytes);
    std::memcpy(from.data(), blob.data(), before.bytes);
    const View member(from.data(), 0, old, before);
    if (member.size() > limit_) refuse();
    MemberPack<T> pack;
    pack.add(member, old);
    pack.check(old, limit_, classes_);
    if (outputs == shape_.outputs) return blob;
    copy_member(member, old, view(to.data()), shape_);
    return std::string(reinterpret_cast<const char*>(to.data()), layout_.bytes) + blob.substr(before.bytes);
}

// The record of a key outside memory; nullptr if there is none.
template <class T>
const std::string* Keyed<T>::find_spilled(const std::string& text, const Spilled& found) const {
    if (const auto left = evicted_.find(text); left != evicted_.end()) return &left->second;
    if (expired_keys_.count(text)) return nullptr;
    const auto back = found.find(text);
    return back == found.end() ? nullptr : &back->second;
}

template <class T>
void Keyed<T>::reload(std::uint32_t i, const Key& key, const Spilled& found) {
    const std::string text = text_of(key);
    const std::string* blob = find_spilled(text, found);
    if (!blob) return;
    const std::string now = decode(*blob);
    if (is_expired(last_of(now), now_)) ++expired_;
    else std::memcpy(record(i), now.data(), layout_.bytes);
    evicted_.erase(text);
}

template <class T>
void Keyed<T>::evict(UndoLog* undo_log) {
    const std::uint32_t cold = table_.next_evicted([&](std::uint32_t i) {
        if (undo_log) undo_log->pass(*this, i);
    });
    if (undo_log) undo_log->touch(*this, cold);
    if (settings_.spills) evicted_[text_of(table_.key(cold))] = blob(record(cold), expiry_.last(cold));
    else ++dropped_;
    table_.remove(cold);
}

// Expires keys eagerly when the clock advances, so that readers never have to modify the table.
template <class T>
void Keyed<T>::expire(UndoLog* undo_log) {
    expiry_.sweep([&](double last) { return is_expired(last, now_); }, [&](std::uint32_t i) { return table_.used(i); },
                  [&](std::uint32_t i) {
                      if (undo_log) undo_log->touch(*this, i);
                      if (settings_.spills) expired_keys_.insert(text_of(table_.key(i)));
                      table_.remove(i);
                      ++expired_;
                  });
}

template <class T>
std::uint64_t Keyed<T>::expired() const {
    std::uint64_t total = expired_;
    for (const auto& [key, blob] : evicted_) total += is_expired(last_of(blob), now_);
    return total;
}

template <class T>
void Keyed<T>::set_now(double now) {
    now_ = now;
    clock_started_ = true;
    if (expiry_.on()) expire(nullptr);
}

template <class T>
void Keyed<T>::configure(std::size_t max_keys, double ttl, bool spills) {
    rollback();
    settings_.max_keys = max_keys;
    settings_.ttl = ttl;
    settings_.spills = spills;
    if (std::isfinite(ttl) != expiry_.on()) {  // times of earlier events are unknown: treat all as now
        expiry_.enable(std::isfinite(ttl));
        for (std::uint32_t i = 0; expiry_.on() && i < table_.records(); ++i)
            if (table_.used(i)) expiry_.record_event(i, now_);
    }
    if (spills) begin(false);
    while (max_keys && table_.live() > max_keys) evict(undo_log_.get());
    if (expiry_.on()) expire(undo_log_.get());
}

// Returns the record of a key, which is `i`, or creates or reloads it.
template <class T>
std::uint32_t Keyed<T>::place(const Key& key, std::uint32_t i, const Spilled& found, UndoLog* undo_log) {
    if (i == KeyTable::kNone) {
        if (settings_.max_keys && table_.live() >= settings_.max_keys) evict(undo_log);
        if (undo_log) undo_log->touch(*this, table_.next());
        i = table_.add(key);
        records_.grow(i + 1);
        initialize(i, key);
        if (settings_.spills) reload(i, key, found);
    } else {
        if (undo_log) undo_log->touch(*this, i);
        table_.touch(i);
    }
    if (expiry_.on()) expiry_.record_event(i, now_);
    return i;
}

// ---- undoing ------------------------------------------------------------------------------------------------------

template <class T>
void Keyed<T>::begin(bool grows) {
    undo_log_ = std::make_unique<UndoLog>(*this);
    if (grows) undo_log_->all = records_.copy();
}

template <class T>
void Keyed<T>::keep(std::uint64_t expired) {
    undo_log_.reset();
    evicted_.clear();
    expired_keys_.clear();
    expired_ += expired;
    ++changes_;
}

template <class T>
bool Keyed<T>::rollback() {
    if (!undo_log_) return false;
    undo(*undo_log_);
    undo_log_.reset();
    return true;
}

template <class T>
void Keyed<T>::undo(UndoLog& undo_log) {
    shape_ = undo_log.shape;
    layout_ = undo_log.layout;
    classes_ = undo_log.classes;
    if (undo_log.all) records_ = std::move(*undo_log.all);
    for (auto& [i, was] : undo_log.before) {
        table_.restore(i, std::move(was.key));
        if (!undo_log.all) std::memcpy(record(i), was.bytes.data(), layout_.bytes);
        if (expiry_.on()) expiry_.set(i, was.last);
    }
    for (const auto& [i, state] : undo_log.passed) table_.set_state(i, state);
    table_.finish_restore(undo_log.records, undo_log.hand);
    expiry_.rebuild(undo_log.records, [&](std::uint32_t i) { return table_.used(i); });
    records_.shrink(undo_log.records);
    dropped_ = undo_log.dropped;
    expired_ = undo_log.expired;
    now_ = undo_log.now;
    clock_started_ = undo_log.clock_started;
    evicted_ = std::move(undo_log.evicted);
    expired_keys_ = std::move(undo_log.expired_keys);
}

template <class T>
void Keyed<T>::add_classes(std::size_t classes) {
    classes_ = std::max(classes_, classes);
    if (parts_.task != Task::classification || classes_ <= 2 || classes_ == shape_.outputs) return;
    if (classes_ >= View::kNoCode) throw std::invalid_argument("a fleet has room for 65534 classes");
    const MemberShape old = shape_;
    MemberShape shape = old;
    shape.outputs = classes_;
    const MemberLayout layout(shape, sizeof(T), limit_, 1);
    Arena records(layout.bytes);
    records.grow(table_.records());
    for (std::uint32_t i = 0; i < table_.records(); ++i) {
        std::memset(records.at(i), 0, layout.bytes);
        if (table_.used(i))
            copy_member(View(record(i), 0, old, layout_), old, View(records.at(i), 0, shape, layout), shape);
    }
    records_ = std::move(records);
    shape_ = shape;
    layout_ = layout;
}

// ---- keys ---------------------------------------------------------------------------------------------------------

template <class T>
std::vector<std::string> Keyed<T>::missing(const Keys& keys) const {
    std::vector<std::string> out;
    std::unordered_set<std::string> seen;
    for (std::size_t e = 0; e < keys.count(); ++e) {
        const Key key = Key::of(keys, e);
        if (table_.find(key) != KeyTable::kNone) continue;
        std::string text = text_of(key);
        if (!evicted_.count(text) && !expired_keys_.count(text) && seen.insert(text).second)
            out.push_back(std::move(text));
    }
    return out;
}

template <class T>
std::vector<std::uint8_t> Keyed<T>::known(const Keys& keys, const Spilled& found) const {
    std::vector<std::uint8_t> out(keys.count());
    for (std::size_t e = 0; e < keys.count(); ++e) {
        const Key key = Key::of(keys, e);
        out[e] = table_.find(key) != KeyTable::kNone;
        if (out[e] || !settings_.spills) continue;
        const std::string* blob = find_spilled(text_of(key), found);
        out[e] = blob && !is_expired(last_of(decode(*blob)), now_);
    }
    return out;
}

template <class T>
void Keyed<T>::forget(const Keys& keys) {
    rollback();
    for (std::size_t e = 0; e < keys.count(); ++e) {
        const Key key = Key::of(keys, e);
        evicted_.erase(text_of(key));
        if (const std::uint32_t i = table_.find(key); i != KeyTable::kNone) table_.remove(i);
    }
    ++changes_;
}

// ---- members ------------------------------------------------------------------------------------------------------

template <class T>
MemberPack<T> Keyed<T>::members(const Keys& keys, const Spilled& found, std::vector<double>& last) const {
    MemberPack<T> pack;
    Lines<std::byte> other(layout_.bytes);
    for (std::size_t e = 0; e < keys.count(); ++e) {
        const Key key = Key::of(keys, e);
        const std::uint32_t i = table_.find(key);
        if (i != KeyTable::kNone) {
            pack.add(view(record(i)), shape_);
            last.push_back(expiry_.last(i));
            continue;
        }
        const std::string* there = find_spilled(text_of(key), found);
        if (!there) throw std::out_of_range("no such key");
        const std::string blob = decode(*there);
        if (is_expired(last_of(blob), now_)) throw std::out_of_range("no such key");
        std::memcpy(other.data(), blob.data(), layout_.bytes);
        pack.add(view(other.data()), shape_);
        last.push_back(expiry_.on() ? last_of(blob) : 0);
    }
    return pack;
}

template <class T>
void Keyed<T>::set_members(const Keys& keys, const MemberPack<T>& pack, std::span<const double> last,
                           const Spilled& found) {
    if (pack.count() != keys.count() || last.size() != keys.count())
        throw std::invalid_argument("there are not as many states as keys");
    rollback();
    bounded_ = pack.check(shape_, limit_, classes_) && bounded_;
    if (settings_.spills) begin(false);
    bool late = false;
    std::size_t first = 0;
    for (std::size_t k = 0; k < keys.count(); ++k) {
        const Key key = Key::of(keys, k);
        const std::uint32_t i = place(key, table_.find(key), found, undo_log_.get());
        std::memset(record(i), 0, layout_.bytes);
        first = pack.take(view(record(i)), shape_, k, first);
        if (expiry_.on() && last[k] != now_) {
            late = true;
            expiry_.set(i, last[k]);
        }
    }
    if (late) expiry_.rebuild(table_.records(), [&](std::uint32_t i) { return table_.used(i); });
}

template <class T>
void Keyed<T>::restore(const Keys& keys, const MemberPack<T>& pack, std::span<const double> last,
                       const KeyOrder& order) {
    const auto refuse = [] { throw std::invalid_argument("the order of the keys of a fleet does not fit them"); };
    const std::size_t count = keys.count();
    if (pack.count() != count || last.size() != count || order.slots.size() != count || order.touched.size() != count)
        refuse();
    bounded_ = pack.check(shape_, limit_, classes_) && bounded_;
    // There may be many free records in between, but no number may request much more memory than the file itself takes.
    const std::size_t most = 64 * count + 1024;
    if (order.hand >= most) refuse();
    std::size_t records = order.hand + 1;  // the hand may point to a free record
    for (const std::int64_t slot : order.slots) {
        if (slot < (settings_.spills ? -1 : 0) || slot >= static_cast<std::int64_t>(most)) refuse();
        records = std::max(records, static_cast<std::size_t>(slot + 1));
    }
    table_.resize(records);
    records_.grow(records);
    Lines<std::byte> other(layout_.bytes);
    std::size_t first = 0;
    for (std::size_t k = 0; k < count; ++k) {
        const Key key = Key::of(keys, k);
        const bool here = order.slots[k] >= 0;
        const auto i = static_cast<std::uint32_t>(here ? order.slots[k] : 0);
        std::byte* at = here ? record(i) : other.data();
        std::memset(at, 0, layout_.bytes);
        first = pack.take(view(at), shape_, k, first);
        if (!here) {
            evicted_[text_of(key)] = blob(at, last[k]);
            continue;
        }
        if (table_.used(i)) refuse();
        table_.restore(i, {key.value, std::string(key.name), static_cast<std::uint8_t>(order.touched[k] ? 3 : 1)});
        if (expiry_.on()) expiry_.set(i, last[k]);
    }
    table_.finish_restore(records, order.hand);
    expiry_.rebuild(records, [&](std::uint32_t i) { return table_.used(i); });
}

template class Keyed<double>;
template class Keyed<float>;

}  // namespace gristmill
