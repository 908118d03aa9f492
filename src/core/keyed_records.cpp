// Records of a keyed fleet: made, brought back, spilled, forgotten, undone, handed out and taken in.
#include <cstring>
#include <unordered_set>

#include "core/keyed_journal.hpp"

namespace gristmill {

template <class T>
std::size_t Keyed<T>::bytes() const {
    std::size_t total = sizeof *this + table_.bytes() + last_.capacity() * sizeof(double) + records_.bytes(table_.records());
    for (const auto& [key, record] : leaving_) total += key.size() + record.size();
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
void Keyed<T>::fresh(std::uint32_t i, const Key& key) {
    std::byte* at = record(i);
    std::memset(at, 0, layout_.bytes);
    view(at).clear_to(settings_.one_seed ? settings_.seed : Key::mix(settings_.seed ^ key.hash), start_);
}

// A spilled record is its bytes, the time of its last event, and how many outputs it has.
template <class T>
std::string Keyed<T>::blob(std::uint32_t i) const {
    std::string bytes(reinterpret_cast<const char*>(record(i)), layout_.bytes);
    const double last = last_.empty() ? 0 : last_[i];
    const std::uint64_t outputs = shape_.outputs;
    bytes.append(reinterpret_cast<const char*>(&last), sizeof last);
    return bytes.append(reinterpret_cast<const char*>(&outputs), sizeof outputs);
}

// A record from outside as it would be now: checked, and with outputs that were added since it left.
template <class T>
std::string Keyed<T>::current(const std::string& blob) const {
    const auto refuse = [] { throw std::invalid_argument("a spilled record is damaged, or of another fleet"); };
    std::uint64_t outputs = 0;
    if (blob.size() < kTail) refuse();
    std::memcpy(&outputs, blob.data() + blob.size() - sizeof outputs, sizeof outputs);
    if (outputs == 0 || outputs > shape_.outputs) refuse();
    MemberShape old = shape_;
    old.outputs = outputs;
    const MemberLayout before(old, sizeof(T), limit_, 1);
    if (blob.size() != before.bytes + kTail) refuse();
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

template <class T>
void Keyed<T>::put(std::uint32_t i, const std::string& blob) {
    const std::string now = current(blob);
    std::memcpy(record(i), now.data(), layout_.bytes);
    if (!last_.empty()) std::memcpy(&last_[i], now.data() + layout_.bytes, sizeof(double));
}

template <class T>
void Keyed<T>::evict(Journal* journal) {
    const std::uint32_t cold = table_.coldest();
    if (journal) journal->touch(*this, cold);
    if (settings_.spills) leaving_[text_of(table_.key(cold))] = blob(cold);
    else ++dropped_;
    table_.remove(cold);
}

// The record of a key, which is `i`; made, or brought back, where there is none.
template <class T>
std::uint32_t Keyed<T>::place(const Key& key, std::uint32_t i, double now, const Spilled* found, Journal* journal) {
    if (i == KeyTable::kNone) {
        if (settings_.max_keys && table_.live() >= settings_.max_keys) evict(journal);
        i = table_.add(key);
        records_.grow(i + 1);
        if (std::isfinite(settings_.ttl) && i >= last_.size()) last_.resize(i + 1);
        fresh(i, key);
        if (!last_.empty()) last_[i] = now;
        if (settings_.spills) {
            const std::string text = text_of(key);
            if (const auto left = leaving_.find(text); left != leaving_.end()) {
                put(i, left->second);
                leaving_.erase(left);
            } else if (const auto back = found ? found->find(text) : leaving_.end(); found && back != found->end()) {
                put(i, back->second);
            }
        }
    } else {
        if (journal) journal->touch(*this, i);
        table_.touch(i);
    }
    if (!last_.empty()) {
        if (is_past(last_[i], now)) ++expired_, fresh(i, key);
        last_[i] = now;
    }
    return i;
}

template <class T>
void Keyed<T>::undo(Journal& journal) {
    if (journal.all) records_ = std::move(*journal.all);
    for (auto& [i, was] : journal.before) {
        table_.put_back(i, std::move(was.key));
        if (!journal.all) std::memcpy(record(i), was.bytes.data(), layout_.bytes);
        if (!last_.empty()) last_[i] = was.last;
    }
    table_.mend(journal.records, journal.hand);
    if (!last_.empty()) last_.resize(journal.records);
    records_.shrink(journal.records);
    dropped_ = journal.dropped, expired_ = journal.expired, now_ = journal.now;
    leaving_ = std::move(journal.leaving);
}

template <class T>
void Keyed<T>::meet(std::size_t classes) {
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
        if (table_.used(i)) copy_member(View(record(i), 0, old, layout_), old, View(records.at(i), 0, shape, layout), shape);
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
        if (!leaving_.count(text) && seen.insert(text).second) out.push_back(std::move(text));
    }
    return out;
}

template <class T>
void Keyed<T>::forget(const Keys& keys, std::vector<std::uint8_t>& was_there) {
    was_there.assign(keys.count(), 0);
    for (std::size_t e = 0; e < keys.count(); ++e) {
        const Key key = Key::of(keys, e);
        const std::uint32_t i = table_.find(key);
        was_there[e] = i != KeyTable::kNone || leaving_.erase(text_of(key)) > 0;
        if (i != KeyTable::kNone) table_.remove(i);
    }
}

template <class T>
void Keyed<T>::sweep() {
    for (std::size_t i = 0; i < last_.size(); ++i)
        if (const auto at = static_cast<std::uint32_t>(i); table_.used(at) && is_past(last_[i], now_)) table_.remove(at), ++expired_;
}

template <class T>
MemberPack<T> Keyed<T>::members(const Keys& keys, const Spilled& found, std::vector<double>& last) const {
    MemberPack<T> pack;
    Lines<std::byte> other(layout_.bytes);
    for (std::size_t e = 0; e < keys.count(); ++e) {
        const Key key = Key::of(keys, e);
        const std::uint32_t i = table_.find(key);
        if (i != KeyTable::kNone) {
            pack.add(view(record(i)), shape_);
            last.push_back(last_.empty() ? 0 : last_[i]);
            continue;
        }
        const auto left = leaving_.find(text_of(key)), back = found.find(text_of(key));
        if (left == leaving_.end() && back == found.end()) throw std::out_of_range("no such key");
        const std::string blob = current(left != leaving_.end() ? left->second : back->second);
        std::memcpy(other.data(), blob.data(), layout_.bytes);
        pack.add(view(other.data()), shape_);
        last.emplace_back();
        std::memcpy(&last.back(), blob.data() + layout_.bytes, sizeof(double));
    }
    return pack;
}

template <class T>
void Keyed<T>::set_members(const Keys& keys, const MemberPack<T>& pack, std::span<const double> last, double now) {
    if (pack.count() != keys.count() || last.size() != keys.count()) throw std::invalid_argument("there are not as many states as keys");
    tame_ = pack.check(shape_, limit_, classes_) && tame_;
    now_ = std::max(now_, now);
    std::size_t first = 0;
    for (std::size_t k = 0; k < keys.count(); ++k) {
        const Key key = Key::of(keys, k);
        const std::uint32_t i = place(key, table_.find(key), now_, nullptr, nullptr);
        std::memset(record(i), 0, layout_.bytes);
        first = pack.take(view(record(i)), shape_, k, first);
        if (!last_.empty()) last_[i] = last[k];
    }
}

template class Keyed<double>;
template class Keyed<float>;

}  // namespace gristmill
