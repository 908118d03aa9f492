// A finite sample of the past: which slot of a buffer an event is written to, and the stored rows.
//
// The policies are oblivious: they depend on positions and random numbers but never on the data, which the regret
// bounds of pairwise learning require. A policy written in Python may use the data.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/archive.hpp"
#include "core/base/batch.hpp"
#include "core/base/elementary.hpp"
#include "core/base/random.hpp"

namespace gristmill {

enum class Policy { fifo, reservoir, reservoir_x, foreign };
enum class Draw { skip, binomial, bernoulli };  // three implementations of the same law of RS-x

// What one event does to a buffer: it is written to `slots`; or, once for RS-x, every slot j is refilled from slot
// `sources[j]`, where `size` means the event itself.
struct Change {
    std::vector<std::size_t> slots, sources;
    void clear() {
        slots.clear();
        sources.clear();
    }
};

// A policy written in Python. `offer` fills `slots` and may throw; `clone` is for the rollback of a chunk.
struct ForeignPolicy {
    virtual ~ForeignPolicy() = default;
    virtual void offer(std::uint64_t step, std::span<const double> x, double label, std::size_t filled,
                       std::vector<std::size_t>& slots) = 0;
    virtual std::shared_ptr<ForeignPolicy> clone() const = 0;
};

class Buffer {
  public:
    Buffer() = default;
    Buffer(Policy policy, std::size_t size, Draw draw = Draw::skip) : policy_(policy), draw_(draw), size_(size) {}
    Buffer(std::shared_ptr<ForeignPolicy> foreign, std::size_t size)
        : policy_(Policy::foreign), size_(size), foreign_(std::move(foreign)) {}

    std::size_t size() const { return size_; }
    std::size_t filled() const { return filled_; }
    std::uint64_t offered() const { return offered_; }
    Policy policy() const { return policy_; }

    // Offers the next event of the stream. x and label are for a Python policy only, which may throw; then nothing has
    // changed.
    void offer(Random& random, Change& change, std::span<const double> x = {}, double label = 0) {
        change.clear();
        const std::uint64_t step = offered_ + 1;  // t
        if (policy_ == Policy::foreign) ask(step, x, label, change.slots);
        else if (filled_ < size_) change.slots.push_back(filled_++);
        else overflow(step, random, change);
        offered_ = step;
    }

    // A deep copy, for rollback.
    Buffer separate() const {
        Buffer copy = *this;
        if (foreign_) copy.foreign_ = foreign_->clone();
        return copy;
    }

    struct State {
        std::uint64_t offered = 0, filled = 0, next = 0;
    };
    State state() const { return {offered_, filled_, next_}; }
    void restore(const State& state) {
        const bool fits = state.filled <= size_ && state.filled <= state.offered &&
                          (policy_ == Policy::foreign || state.filled == std::min<std::uint64_t>(state.offered, size_));
        if (!fits) throw std::invalid_argument("the saved buffer does not fit its size");
        offered_ = state.offered;
        filled_ = state.filled;
        next_ = state.next;
    }

  private:
    void overflow(std::uint64_t step, Random& random, Change& change) {
        switch (policy_) {
            case Policy::fifo: change.slots.push_back((step - 1) % size_); return;
            case Policy::reservoir:  // stored with probability s/t, in place of a random point
                if (const std::uint64_t slot = random.below(step); slot < size_) change.slots.push_back(slot);
                return;
            case Policy::reservoir_x:
                if (step == size_ + 1) return repopulate(step, random, change);
                if (draw_ == Draw::skip) return skip(step, random, change);
                if (draw_ == Draw::binomial) return binomial(step, random, change);
                for (std::size_t slot = 0; slot < size_; ++slot)
                    if (random.below(step) == 0) change.slots.push_back(slot);
                return;
            case Policy::foreign: return;
        }
    }

    // From here on each slot is an independent uniform draw from the whole stream so far.
    void repopulate(std::uint64_t step, Random& random, Change& change) {
        for (std::size_t slot = 0; slot < size_; ++slot) change.sources.push_back(random.below(size_ + 1));
        if (draw_ == Draw::skip) next_ = next_after(step, random);
    }

    // P[no slot is replaced in t+1 .. T] = (t/T)^s, solved for T.
    std::uint64_t next_after(std::uint64_t step, Random& random) const {
        const double u = 1.0 - random.uniform();
        const double next =
            std::ceil(static_cast<double>(step) * elementary::pow(u, -1.0 / static_cast<double>(size_)));
        if (!(next < 0x1.0p62)) return std::uint64_t{1} << 62;
        return std::max(step + 1, static_cast<std::uint64_t>(next));
    }

    // At a replacement the pattern is that of s coins of probability 1/t given at least one head: the first by a
    // geometric law truncated at s, the others by plain geometric gaps.
    void skip(std::uint64_t step, Random& random, Change& change) {
        if (step != next_) return;
        const double log_miss = elementary::log1p(-1.0 / static_cast<double>(step));
        const auto gap = [&](double u) { return std::floor(elementary::log1p(-u) / log_miss); };
        const double any = -elementary::expm1(static_cast<double>(size_) * log_miss);
        double slot = std::min(gap(random.uniform() * any), static_cast<double>(size_ - 1));
        while (slot < static_cast<double>(size_)) {
            change.slots.push_back(static_cast<std::size_t>(slot));
            slot += 1 + gap(random.uniform());
        }
        next_ = next_after(step, random);
    }

    // K by inversion of its law, then K distinct slots.
    void binomial(std::uint64_t step, Random& random, Change& change) {
        const double p = 1.0 / static_cast<double>(step), s = static_cast<double>(size_);
        double mass = elementary::exp(s * elementary::log1p(-p)), left = random.uniform();
        std::size_t count = 0;
        while (left >= mass && count < size_) {
            left -= mass;
            mass *= (s - static_cast<double>(count)) / static_cast<double>(count + 1) * p / (1 - p);
            ++count;
        }
        while (change.slots.size() < count) {
            const std::size_t slot = random.below(size_);
            if (std::find(change.slots.begin(), change.slots.end(), slot) == change.slots.end())
                change.slots.push_back(slot);
        }
    }

    void ask(std::uint64_t step, std::span<const double> x, double label, std::vector<std::size_t>& slots) {
        foreign_->offer(step, x, label, filled_, slots);
        std::sort(slots.begin(), slots.end());
        slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
        std::size_t filled = filled_;
        for (const std::size_t slot : slots) {
            if (slot >= size_ || slot > filled)
                throw std::out_of_range("the buffer's offer() must return positions from 0 to " +
                                        std::to_string(std::min(filled, size_ - 1)) + ", got " + std::to_string(slot));
            if (slot == filled) ++filled;
        }
        filled_ = filled;
    }

    Policy policy_ = Policy::fifo;
    Draw draw_ = Draw::skip;
    std::size_t size_ = 1, filled_ = 0;
    std::uint64_t offered_ = 0;  // t
    std::uint64_t next_ = 0;  // position of the next replacement of RS-x
    std::shared_ptr<ForeignPolicy> foreign_;
};

// The rows of a buffer in blocks of lanes, with their labels and positions. All memory is allocated at once.
class BufferRows {
  public:
    BufferRows() = default;
    BufferRows(std::size_t size, std::size_t width)
        : width_(width), lanes_(padded(size) * width), labels_(padded(size)), ids_(size, -1) {}

    std::size_t width() const { return width_; }
    std::size_t capacity() const { return ids_.size(); }
    double label(std::size_t slot) const { return labels_[slot]; }
    std::span<const double> labels() const { return labels_; }
    std::span<const std::int64_t> ids() const { return ids_; }
    const double* lanes() const { return lanes_.data(); }
    static std::size_t blocks(std::size_t filled) { return padded(filled) / kLanes<double>; }

    void apply(const Change& change, const double* x, double label, std::int64_t id) {
        if (!change.sources.empty()) refill(change.sources, x, label, id);
        for (const std::size_t slot : change.slots) write(slot, x, label, id);
    }
    void put(std::size_t slot, const double* x) {
        double* to = lanes_.data() + offset(slot);
        for (std::size_t j = 0; j < width_; ++j) to[j * kLanes<double>] = x[j];
    }
    void move(std::size_t from, std::size_t to) {
        const double* source = lanes_.data() + offset(from);
        double* target = lanes_.data() + offset(to);
        for (std::size_t j = 0; j < width_; ++j) target[j * kLanes<double>] = source[j * kLanes<double>];
    }
    void copy_out(std::size_t slot, double* to) const {
        const double* from = lanes_.data() + offset(slot);
        for (std::size_t j = 0; j < width_; ++j) to[j] = from[j * kLanes<double>];
    }
    // out[slot] = <w, x_slot>, padded(filled) of them
    void dots(const double* w, std::size_t filled, double* out) const {
        isa<double>().dots(&w, 1, lanes_.data(), blocks(filled), width_, out, padded(filled));
    }
    // out = sum over slots of weights[slot] x_slot
    void sums(const double* weights, std::size_t filled, double* out) const {
        isa_score().lane_sums(lanes_.data(), blocks(filled), width_, weights, out);
    }

    std::size_t bytes() const {
        return (lanes_.capacity() + labels_.capacity()) * sizeof(double) + ids_.capacity() * sizeof(std::int64_t);
    }
    void visit(Archive& archive) {
        archive.numbers("buffer", lanes_, lanes_.size());
        archive.numbers("buffer_labels", labels_, labels_.size());
        archive.numbers("buffer_ids", ids_, ids_.size());
    }

  private:
    std::size_t offset(std::size_t slot) const {
        return slot / kLanes<double> * width_ * kLanes<double> + slot % kLanes<double>;
    }
    void write(std::size_t slot, const double* x, double label, std::int64_t id) {
        put(slot, x);
        labels_[slot] = label;
        ids_[slot] = id;
    }
    void refill(const std::vector<std::size_t>& sources, const double* x, double label, std::int64_t id) {
        const BufferRows before = *this;
        std::vector<double> row(width_);
        for (std::size_t slot = 0; slot < sources.size(); ++slot) {
            const std::size_t from = sources[slot];
            if (from == sources.size()) {
                write(slot, x, label, id);
            } else {
                before.copy_out(from, row.data());
                write(slot, row.data(), before.labels_[from], before.ids_[from]);
            }
        }
    }

    std::size_t width_ = 0;
    Lines<double> lanes_;  // block b, feature j, lane l at (b * width + j) * lanes + l; unused lanes are 0
    Lines<double> labels_;
    std::vector<std::int64_t> ids_;
};

// The same for two classes with one store each: an event is compared only with the other class, so half the bytes are
// not read.
class SplitRows {
  public:
    SplitRows(std::size_t size, std::size_t width)
        : sides_{BufferRows(size, width), BufferRows(size, width)}, place_(size, 0), side_(size, -1) {}

    std::size_t count(bool positive) const { return owner_[positive].size(); }
    const BufferRows& side(bool positive) const { return sides_[positive]; }
    std::size_t width() const { return sides_[0].width(); }

    void apply(const Change& change, const double* x, double label) {
        if (!change.sources.empty()) refill(change.sources, x, label);
        for (const std::size_t slot : change.slots) write(slot, x, label > 0);
    }
    void copy_out(std::size_t slot, double* to) const {
        sides_[side_[slot] > 0].copy_out(static_cast<std::size_t>(place_[slot]), to);
    }
    std::size_t bytes() const {
        return sides_[0].bytes() + sides_[1].bytes() + 4 * place_.capacity() * sizeof(std::int64_t);
    }
    void visit(Archive& archive) {
        const std::string scope = archive.scope;
        archive.scope = scope + "negative_";
        sides_[0].visit(archive);
        archive.scope = scope + "positive_";
        sides_[1].visit(archive);
        archive.scope = scope;
        archive.numbers("place", place_, place_.size());
        archive.numbers("side", side_, side_.size());
        if (archive.loads) claim();
    }

  private:
    void write(std::size_t slot, const double* x, bool positive) {
        if (side_[slot] != static_cast<std::int64_t>(positive)) {
            leave(slot);
            side_[slot] = positive;
            place_[slot] = static_cast<std::int64_t>(owner_[positive].size());
            owner_[positive].push_back(slot);
        }
        sides_[positive].put(static_cast<std::size_t>(place_[slot]), x);
    }
    // The last row of its side moves into the freed place.
    void leave(std::size_t slot) {
        if (side_[slot] < 0) return;
        auto& owners = owner_[side_[slot] > 0];
        BufferRows& rows = sides_[side_[slot] > 0];
        const std::size_t last = owners.back(), from = owners.size() - 1, to = static_cast<std::size_t>(place_[slot]);
        if (last != slot) {
            rows.move(from, to);
            owners[to] = last;
            place_[last] = static_cast<std::int64_t>(to);
        }
        owners.pop_back();
    }
    void refill(const std::vector<std::size_t>& sources, const double* x, double label) {
        const SplitRows before = *this;
        std::vector<double> row(width());
        for (std::size_t slot = 0; slot < sources.size(); ++slot) {
            if (sources[slot] == sources.size()) {
                write(slot, x, label > 0);
            } else {
                before.copy_out(sources[slot], row.data());
                write(slot, row.data(), before.side_[sources[slot]] > 0);
            }
        }
    }
    // Restores owner_ from the saved places; inconsistent ones are refused.
    void claim() {
        for (auto& owners : owner_) owners.clear();
        std::size_t counts[2] = {0, 0};
        for (const std::int64_t side : side_) {
            if (side < -1 || side > 1)
                throw std::invalid_argument("the saved buffer names a class that is not one of two");
            if (side >= 0) ++counts[side];
        }
        for (int side = 0; side < 2; ++side) owner_[side].assign(counts[side], side_.size());
        for (std::size_t slot = 0; slot < side_.size(); ++slot) {
            if (side_[slot] < 0) continue;
            auto& owners = owner_[side_[slot]];
            const auto place = static_cast<std::size_t>(place_[slot]);
            if (place_[slot] < 0 || place >= owners.size() || owners[place] != side_.size())
                throw std::invalid_argument("the saved places of the buffer do not fit together");
            owners[place] = slot;
        }
    }

    BufferRows sides_[2];  // negative, positive
    std::vector<std::int64_t> place_;  // place of a slot within its side
    std::vector<std::int64_t> side_;  // side of a slot; -1: empty
    std::vector<std::size_t> owner_[2];  // slot at a place
};

}  // namespace gristmill
