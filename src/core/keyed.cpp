#include "core/keyed.hpp"

#include <cstdio>
#include <cstring>
#include <unordered_set>

#include "core/check.hpp"
#include "core/points.hpp"

namespace gristmill {

// What a chunk has changed, so that it can be undone: records as they were before their first change.
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

template <class T>
struct Keyed<T>::Scratch {
    Lines<T> dots, l1s, norms, lines, scaled;
    Lines<double> values, coefs;
    std::vector<double> scores, steps, shares;
    T norm2 = 0;
    Merging<T> merging;
    Calibration calibration;

    Scratch(const MemberShape& shape, std::size_t slots, std::size_t nodes, const Kernel& kernel)
        : dots(padded(slots)), l1s(padded(slots)), norms(padded(slots)), lines((nodes + 2) * padded(slots)), scaled(shape.width), values(padded(slots + 1)),
          coefs(padded(slots)), scores(shape.outputs), steps(shape.outputs), merging(kernel, shape.width, slots) {}
};

template <class T>
Keyed<T>::Keyed(FleetParts parts, const KeyedSettings& settings)
    : parts_(std::move(parts)), settings_(settings), kernel_(parts_.nodes),
      shape_{parts_.width, 1, state_of(parts_.rule).size(), parts_.task, std::holds_alternative<DropRandom>(parts_.budget),
             parts_.scaling.on(), false, std::holds_alternative<Merge>(parts_.budget)},
      limit_(member_limit(parts_.rule, parts_.budget)), layout_(shape_, sizeof(T), limit_, 1), start_(state_of(parts_.rule)),
      table_(settings.texts), records_(layout_.bytes) {}

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

// ---- records ------------------------------------------------------------------------------------------------------

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

// The record of a key, made, or brought back, where there is none.
template <class T>
std::uint32_t Keyed<T>::place(const Key& key, double now, const Spilled* found, Journal* journal) {
    std::uint32_t i = table_.find(key);
    bool is_new = i == KeyTable::kNone;
    if (is_new) {
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

// ---- learning -----------------------------------------------------------------------------------------------------

template <class T>
void Keyed<T>::check(const KeyedChunk<T>& chunk) const {
    if (!kernel_.restricts_points() && all_small(chunk.rows, chunk.count(), shape_.width)) return;
    // Of scaled rows the kernel is asked on the way.
    check_rows(DenseRows<T>{chunk.rows, chunk.count(), shape_.width}, shape_.scaled ? Kernel() : kernel_);
    if (!kernel_.needs_dot() || shape_.scaled) return;
    for (std::size_t e = 0; e < chunk.count(); ++e) refuse_too_long(e, gristmill::norm2(chunk.rows + e * shape_.width, shape_.width));
}

template <class T>
bool Keyed<T>::may_fail(const KeyedChunk<T>& chunk) const {
    const Op op = parts_.nodes.back().op;
    if (!tame_ || settings_.spills || shape_.scaled || (op != Op::gaussian && op != Op::laplacian)) return true;
    double weight = 1, offset = 0;
    for (std::size_t e = 0; chunk.weights && e < chunk.count(); ++e) weight = std::max(weight, chunk.weights[e]);
    for (std::size_t e = 0; chunk.offsets && e < chunk.count() * chunk.offset_columns; ++e)
        offset = std::max(offset, std::abs(chunk.offsets[e]));
    // 2^32 events of one key are not told from those of all.
    return !(step_bound(parts_.rule) * weight * static_cast<double>(kMostEvents) <= kTame && offset <= kTame) ||
           now_ + static_cast<double>(chunk.count()) > static_cast<double>(kMostEvents);
}

template <class T>
void Keyed<T>::learn(const KeyedChunk<T>& chunk, std::size_t classes, const Spilled& found, std::vector<double>* scores) {
    const std::size_t count = chunk.count();
    const bool labelled = parts_.task == Task::classification;
    const auto known = [&] { return static_cast<double>(std::max<std::size_t>(classes_, 2)); };
    bool grows = std::max<std::size_t>(classes, 2) > std::max<std::size_t>(classes_, 2);
    for (std::size_t e = 0; labelled && e < count; ++e) grows = grows || chunk.labels[e] >= known();
    std::optional<Journal> journal;
    if (grows || may_fail(chunk)) {
        journal.emplace(Journal{{}, table_.records(), table_.hand(), dropped_, expired_, now_, leaving_, {}});
        if (grows) journal->all = records_.copy();
    }
    const MemberShape shape = shape_;
    const MemberLayout layout = layout_;
    const std::size_t before = classes_;
    try {
        meet(classes);
        if (scores) scores->assign(count * outputs(), 0.0);
        for (std::size_t from = 0; from < count;) {
            const std::size_t had = outputs();
            if (labelled && chunk.labels[from] >= known()) meet(static_cast<std::size_t>(chunk.labels[from]) + 1);
            if (scores && outputs() != had) {
                std::vector<double> wider(count * outputs());
                for (std::size_t e = 0; e < from; ++e) {
                    const double* old = scores->data() + e * had;
                    double* now = wider.data() + e * outputs();
                    if (had == 1) now[0] = -0.5 * old[0], now[1] = 0.5 * old[0];
                    else std::copy(old, old + had, now);
                }
                scores->swap(wider);
            }
            std::size_t to = from + 1;
            while (to < count && !(labelled && chunk.labels[to] >= known())) ++to;
            for (std::size_t e = from; labelled && e < to; ++e)
                classes_ = std::max(classes_, static_cast<std::size_t>(chunk.labels[e]) + 1);
            std::visit([&](const auto& rule) {
                learn_events(rule, chunk, from, to, found, scores ? scores->data() : nullptr, journal ? &*journal : nullptr);
            }, parts_.rule);
            from = to;
        }
    } catch (...) {
        shape_ = shape, layout_ = layout, classes_ = before;
        if (journal) undo(*journal);
        throw;
    }
}

// Keys and records are on their way from memory while the events before them are learned; each key is hashed once.
template <class T>
struct Keyed<T>::Ahead {
    static constexpr std::size_t kKeys = 32, kCells = 24, kRecords = 4;
    const Keyed& keyed;
    const Keys& keys;
    std::size_t count;
    Key ring[kKeys];

    Ahead(const Keyed& keyed, const Keys& keys, std::size_t first) : keyed(keyed), keys(keys), count(keys.count()) {
        for (std::size_t e = first; e < std::min(first + kCells, count); ++e) take(e);
    }
    void take(std::size_t e) { keyed.table_.prefetch(ring[e % kKeys] = Key::of(keys, e)); }
    const Key& operator()(std::size_t e) {
        if (e + kCells < count) take(e + kCells);
        if (e + kRecords < count)
            if (const std::uint32_t i = keyed.table_.guess(ring[(e + kRecords) % kKeys]); i != KeyTable::kNone) {
                const std::byte* at = keyed.record(i);
                for (std::size_t line = 0; line < keyed.layout_.bytes; line += kLineBytes) __builtin_prefetch(at + line, 1);
            }
        return ring[e % kKeys];
    }
};

// The event as the kernel sees it: scaled, where members scale, by what this one has seen.
template <class T>
const T* Keyed<T>::taken(const View& member, const T* x, std::size_t e, bool learn, Scratch& scratch) const {
    if constexpr (std::is_same_v<T, double>) {
        if (!shape_.scaled) return x;
        double* out = scratch.scaled.data();
        if (!learn && member.seen() == 0) {  // nothing is known, and nothing is stored to compare with
            std::fill(out, out + shape_.width, 0.0);
            return out;
        }
        if (!scale_row(member, parts_.scaling, shape_.width, x, out, 1, learn))
            fail(e, "the scaling leaves the range of numbers; scale the inputs first; column 0 is", x[0]);
        const double norm2 = gristmill::norm2(out, shape_.width);
        refuse_too_long(e, norm2);
        if (const auto why = kernel_.refusal(norm2)) throw RowError(e, "row " + std::to_string(e) + " " + *why);
        return out;
    }
    return x;
}

template <class T>
void Keyed<T>::look(const View& member, const std::byte* at, const T* x, Scratch& scratch) const {
    const std::size_t size = member.size(), slots = padded(size);
    scratch.norm2 = gristmill::norm2(x, shape_.width);
    const T* points = reinterpret_cast<const T*>(at + layout_.points);
    const Node& root = parts_.nodes.back();
    if (root.op == Op::gaussian && shape_.outputs == 1 && !shape_.merges) {
        const double sum = isa_fleet<T>().record_gaussian(static_cast<T>(root.a), x, scratch.norm2, points, layout_.slots, size, shape_.width,
                                                          reinterpret_cast<const double*>(at + layout_.coef));
        scratch.scores[0] = member.intercept(0) + member.scale() * sum;
        return;
    }
    if (size > 0) {
        T* norm2 = scratch.norms.data();
        isa_fleet<T>().record_norms(points, layout_.slots, slots, shape_.width, norm2);
        if (kernel_.needs_dot())
            isa_fleet<T>().record_dots(x, points, layout_.slots, slots, shape_.width, scratch.dots.data());
        if (kernel_.needs_l1()) isa_fleet<T>().record_l1s(x, points, layout_.slots, slots, shape_.width, scratch.l1s.data());
        kernel_.values(Pairs<T>{scratch.dots.data(), scratch.l1s.data(), scratch.norm2, norm2, slots}, scratch.lines.data(),
                       scratch.values.data());
        std::fill(scratch.values.begin() + static_cast<std::ptrdiff_t>(size), scratch.values.begin() + static_cast<std::ptrdiff_t>(slots), 0.0);
    }
    const auto* coef = reinterpret_cast<const double*>(at + layout_.coef);
    for (std::size_t o = 0; o < shape_.outputs; ++o) {
        std::copy_n(coef + o * layout_.slots, size, scratch.coefs.begin());
        std::fill(scratch.coefs.begin() + static_cast<std::ptrdiff_t>(size), scratch.coefs.begin() + static_cast<std::ptrdiff_t>(slots), 0.0);
        scratch.scores[o] = member.intercept(o) + member.scale() * isa_score().dot(scratch.coefs.data(), scratch.values.data(), slots);
    }
}

namespace {

// What a prior says of output o, however many outputs it and the fleet have by now.
template <class T>
double offset_of(const KeyedChunk<T>& chunk, std::size_t e, std::size_t o, std::size_t outputs) {
    if (!chunk.offsets) return 0;
    const double* at = chunk.offsets + e * chunk.offset_columns;
    if (chunk.offset_columns == 1) return outputs == 1 ? at[0] : (o == 0 ? -0.5 : o == 1 ? 0.5 : 0.0) * at[0];
    if (outputs == 1) return at[1] - at[0];
    return o < chunk.offset_columns ? at[o] : 0;
}

}  // namespace

template <class T>
template <class R>
void Keyed<T>::learn_events(const R& rule, const KeyedChunk<T>& chunk, std::size_t from, std::size_t to, const Spilled& found,
                            double* out, Journal* journal) {
    Budget budget = parts_.budget;
    const MemberParts<R> parts{rule, budget};
    Scratch scratch(shape_, limit_, parts_.nodes.size(), kernel_);
    const bool novelty = parts_.task == Task::novelty;
    Ahead ahead(*this, chunk.keys, from);
    for (std::size_t e = from; e < to; ++e) {
        const Key& key = ahead(e);
        now_ = chunk.times ? chunk.times[e] : now_ + 1;
        const std::uint32_t i = place(key, now_, &found, journal);
        std::byte* at = record(i);
        View member = view(at);
        if (shape_.merges) member.merging = &scratch.merging;
        const T* x = taken(member, chunk.rows + e * shape_.width, e, true, scratch);
        look(member, at, x, scratch);
        for (std::size_t o = 0; o < shape_.outputs; ++o) {
            double& score = scratch.scores[o];
            if (chunk.offsets) score += offset_of(chunk, e, o, shape_.outputs);
            if (!std::isfinite(score)) fail(e, "the score is not finite (kernel values too large, or learning diverged):", score);
            if (out) out[e * shape_.outputs + o] = score - (novelty ? own_rule(member, rule).novelty_margin() : 0.0);
        }
        const MemberEvent<T> event{x, 1, scratch.norm2, kernel_.self(scratch.norm2), chunk.labels ? chunk.labels[e] : 1.0,
                                   chunk.weights ? chunk.weights[e] : 1.0, scratch.scores.data(), 1, scratch.values.data()};
        try {
            learn_member(member, event, shape_, parts, scratch.steps, [] {});
        } catch (const Refusal& refusal) {
            fail(e, refusal.what, refusal.value);
        }
        if (shape_.calibration() && event.weight != 0) calibrate(member, shape_, scratch.calibration, scratch.scores, event.label);
    }
}

template <class T>
void Keyed<T>::score(const KeyedChunk<T>& chunk, const Spilled& found, bool shares, double* out) const {
    const std::size_t columns = shares ? std::max<std::size_t>(classes_, 1) : shape_.outputs;
    std::visit([&](const auto& rule) {
        Scratch scratch(shape_, limit_, parts_.nodes.size(), kernel_);
        Lines<std::byte> start(layout_.bytes + kLineBytes), other(layout_.bytes + kLineBytes);
        view(start.data()).clear_to(0, start_);
        Ahead ahead(*this, chunk.keys, 0);
        for (std::size_t e = 0; e < chunk.count(); ++e) {
            const Key& key = ahead(e);
            const std::byte* at = start.data();
            const std::uint32_t i = table_.find(key);
            if (i != KeyTable::kNone) {
                if (last_.empty() || !is_past(last_[i], chunk.times ? chunk.times[e] : now_)) at = record(i);
            } else if (settings_.spills) {
                const std::string text = text_of(key);
                const auto left = leaving_.find(text), back = found.find(text);
                const std::string* blob = left != leaving_.end() ? &left->second : back != found.end() ? &back->second : nullptr;
                if (blob) {
                    const std::string record = current(*blob);
                    double last;
                    std::memcpy(&last, record.data() + layout_.bytes, sizeof last);
                    std::memcpy(other.data(), record.data(), layout_.bytes);
                    if (!is_past(last, chunk.times ? chunk.times[e] : now_) || !std::isfinite(settings_.ttl)) at = other.data();
                }
            }
            const View member = view(const_cast<std::byte*>(at));
            look(member, at, taken(member, chunk.rows + e * shape_.width, e, false, scratch), scratch);
            const double margin = parts_.task == Task::novelty ? own_rule(member, rule).novelty_margin() : 0.0;
            for (std::size_t o = 0; o < shape_.outputs; ++o) {
                double& score = scratch.scores[o];
                score = score + offset_of(chunk, e, o, shape_.outputs) - margin;
                if (!std::isfinite(score)) fail(e, "the score is not finite (kernel values too large):", score);
                if (!shares) out[e * columns + o] = score;
            }
            if (!shares) continue;
            scratch.calibration.load(shape_.outputs, [&](std::size_t i) { return member.calibration(i); });
            scratch.calibration.probabilities(scratch.scores, classes_, out + e * columns);
        }
    }, parts_.rule);
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
        const std::uint32_t i = place(Key::of(keys, k), now_, nullptr, nullptr);
        std::memset(record(i), 0, layout_.bytes);
        first = pack.take(view(record(i)), shape_, k, first);
        if (!last_.empty()) last_[i] = last[k];
    }
}

template class Keyed<double>;
template class Keyed<float>;

}  // namespace gristmill
