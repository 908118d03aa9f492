// Folder pairwise: learning from pairs of events through a finite buffer (OLP and related algorithms): buffers, convex
// sets, pair losses.
// It includes expansion/ and below; bind/ may include it.
// Begin with this file: margin losses, what the learners share, and linear rankers.
//
// Every learner here is a plain value: a chunk is rolled back by restoring a copy. Each event is planned in scratch
// memory and committed when nothing can fail any more. No sum depends on how the stream was cut into chunks.
#pragma once

#include <functional>
#include <limits>
#include <string>

#include "core/base/elementary.hpp"
#include "core/pairwise/buffers.hpp"
#include "core/pairwise/convex.hpp"

namespace gristmill {

enum class MarginKind { hinge, squared_hinge, logistic, exponential };

// phi(u), a loss of a margin; learning needs only its slope.
struct MarginLoss {
    MarginKind kind = MarginKind::hinge;
    double margin = 1;

    // Replaces margins by slopes and returns their sum. The hinge counts its active pairs: no branch to mispredict and
    // no chain of additions.
    double slopes(double* u, std::size_t count) const {
        if (kind == MarginKind::hinge) {
            std::size_t active = 0;
            for (std::size_t j = 0; j < count; ++j) {
                const bool below = u[j] < margin;
                active += below;
                u[j] = below ? -1.0 : 0.0;
            }
            return -static_cast<double>(active);
        }
        double sum = 0;
        for (std::size_t j = 0; j < count; ++j) sum += u[j] = slope(u[j]);
        return sum;
    }
    double slope(double u) const {
        switch (kind) {
            case MarginKind::hinge: return u < margin ? -1.0 : 0.0;
            case MarginKind::squared_hinge: return u < margin ? -2 * (margin - u) : 0.0;
            case MarginKind::logistic: {
                if (u <= 0) return -1 / (1 + elementary::exp(u));
                const double e = elementary::exp(-u);
                return -e / (1 + e);
            }
            case MarginKind::exponential: return -elementary::exp(-u);
        }
        return 0;
    }
};

// Step size at event t, and the factor that the regulariser leaves of the old hypothesis.
struct Pace {
    double rate = 1;  // eta
    double reg = 0;  // sigma of a strongly convex regulariser sigma/2 |w|^2; the rate then falls as 1/t
    double step(std::uint64_t t) const {
        const auto n = static_cast<double>(t);
        return reg > 0 ? rate / (reg * n) : rate / std::sqrt(n);
    }
    double keep(std::uint64_t t) const { return reg > 0 ? 1 - rate / static_cast<double>(t) : 1.0; }
};

// Called now and then during a chunk; may throw to stop it.
using Poll = std::function<void()>;

// What the learners share: the buffer, its rows, the random generator, counters.
struct PairStream {
    Buffer buffer;
    BufferRows rows;
    Random random;
    std::uint64_t seen = 0;
    std::uint64_t pairs = 0;  // pairs of opposite labels so far
    // Events of the negative and the positive class that were compared with the other class, and the sum of the shares
    // of their pairs in the right order.
    double right[2] = {}, asked[2] = {};
    Change change;

    PairStream(Buffer policy, std::size_t width, std::uint64_t seed)
        : buffer(std::move(policy)), rows(buffer.size(), width) {
        random.seed = seed;
    }
    std::size_t filled() const { return buffer.filled(); }
    // Prequential AUC, from the events of the rarer class: they are compared with many points of the other class.
    // Events of the frequent class are compared with the same few rare points again and again, from which f has
    // learned.
    double auc() const {
        const int rare = asked[0] == 0 || (asked[1] > 0 && asked[1] <= asked[0]) ? 1 : 0;
        return asked[rare] > 0 ? right[rare] / asked[rare] : std::numeric_limits<double>::quiet_NaN();
    }
    // Offers the event to the buffer. Only a Python policy can throw, before anything has changed.
    void offer(const double* x, double label) { offer(x, label, rows.width()); }
    void offer(const double* x, double label, std::size_t width) {
        buffer.offer(random, change, {x, width}, label);
        rows.apply(change, x, label, static_cast<std::int64_t>(seen));
        ++seen;
    }
    void visit(Archive& archive) {
        auto state = buffer.state();
        rows.visit(archive);
        archive.number("right_negative", right[0]);
        archive.number("asked_negative", asked[0]);
        archive.number("right_positive", right[1]);
        archive.number("asked_positive", asked[1]);
        archive.number("random_seed", random.seed);
        archive.number("random_counter", random.counter);
        archive.count("seen", seen);
        archive.count("pairs", pairs);
        archive.count("offered", state.offered);
        archive.count("filled", state.filled);
        archive.count("next", state.next);
        if (archive.loads) buffer.restore(state);
    }
};

// Runs a chunk as one transaction. A single event is planned before it is committed and needs no copy.
template <class L, class F>
void transact(L& learner, std::size_t count, const Poll& poll, F event) {
    if (count == 1) return event(0);
    L before = learner.separate();
    try {
        for (std::size_t i = 0; i < count; ++i) {
            event(i);
            if (poll && i % 512 == 511) poll();
        }
    } catch (...) {
        learner = std::move(before);
        throw;
    }
}

[[noreturn]] void diverged(std::size_t row);
// Throws for rows that are not finite dense doubles of this width.
void check_dense(const Batch& batch, std::size_t width);

// The share of the opposite-label pairs that a score orders correctly; ties count one half.
struct Order {
    std::uint64_t halves = 0, pairs = 0;
    void pair(double margin) {
        ++pairs;
        halves += static_cast<std::uint64_t>(margin > 0) + static_cast<std::uint64_t>(margin >= 0);
    }
    void commit(PairStream& stream, double label) const {
        if (pairs == 0) return;
        stream.pairs += pairs;
        stream.asked[label > 0] += 1;
        stream.right[label > 0] += 0.5 * static_cast<double>(halves) / static_cast<double>(pairs);
    }
};

inline double norm_of(const Lines<double>& v) { return std::sqrt(isa_score().dot(v.data(), v.data(), v.size())); }

// AUC maximisation with a linear scorer: u = y <w, x - x'> over the pairs of opposite labels.
class LinearRanker {
  public:
    static constexpr bool kRanks = true;  // labels are signs
    struct Settings {
        MarginLoss loss;
        Pace pace;
        Ball ball;  // the set that contains w
        bool average = false;
        bool opposite_only = false;  // mean over the pairs of opposite labels instead of the buffer
    };
    LinearRanker(const Settings& settings, Buffer buffer, std::size_t width, std::uint64_t seed);

    void learn(const DenseRows<double>& x, std::span<const double> labels, double* scores, const Poll& poll);
    void score(const DenseRows<double>& x, double* scores) const;
    void weights(double* out) const;  // of the hypothesis used for scores
    std::size_t width() const { return rows_.width(); }
    void check(const Batch& batch) const { check_dense(batch, width()); }
    const PairStream& stream() const { return stream_; }
    const SplitRows& rows() const { return rows_; }
    std::size_t bytes() const;
    LinearRanker separate() const;
    void visit(Archive& archive) {
        stream_.visit(archive);
        rows_.visit(archive);
        archive.numbers("weights", w_, w_.size());
        archive.numbers("weights_sum", sum_, sum_.size());
        archive.count("steps", steps_);
    }

  private:
    void event(const double* x, double label, std::size_t row, double* score);
    double shown(const double* x) const;

    Settings settings_;
    PairStream stream_;  // labels and positions of the buffer; the rows are in rows_
    SplitRows rows_;
    Lines<double> w_, sum_;  // padded(width); the sum of all hypotheses that were updated by a pair
    std::uint64_t steps_ = 0;
    Lines<double> x_, next_, scores_, slopes_, pull_;  // scratch
};

// The two algorithms of Zhao, Hoi, Jin and Yang for AUC maximisation, with one reservoir per class.
class TwoReservoirRanker {
  public:
    static constexpr bool kRanks = true;  // labels are signs
    struct Settings {
        double aggressiveness = 1;  // C
        bool sequential = false;  // one passive-aggressive step per pair; otherwise one gradient step
    };
    TwoReservoirRanker(const Settings& settings, std::size_t size, std::size_t width, std::uint64_t seed);

    void learn(const DenseRows<double>& x, std::span<const double> labels, double* scores, const Poll& poll);
    void score(const DenseRows<double>& x, double* scores) const;
    void weights(double* out) const { std::copy(w_.begin(), w_.begin() + static_cast<std::ptrdiff_t>(width_), out); }
    std::size_t width() const { return width_; }
    void check(const Batch& batch) const { check_dense(batch, width()); }
    const PairStream& stream(std::size_t side) const { return sides_[side]; }
    std::uint64_t seen() const { return seen_; }
    std::size_t bytes() const;
    TwoReservoirRanker separate() const { return *this; }
    void visit(Archive& archive) {
        archive.scope = "negative_";
        sides_[0].visit(archive);
        archive.scope = "positive_";
        sides_[1].visit(archive);
        archive.scope = "";
        archive.numbers("weights", w_, w_.size());
        archive.count("seen", seen_);
        archive.number("random_seed", random_.seed);
        archive.number("random_counter", random_.counter);
    }

  private:
    void event(const double* x, double label, std::size_t row, double* score);

    Settings settings_;
    std::size_t width_;
    std::vector<PairStream> sides_;  // negative, positive
    Random random_;
    std::uint64_t seen_ = 0;
    Lines<double> w_, x_, next_, scores_, slopes_, pull_;
};

// The value of a loss, for reports.
double margin_value(const MarginLoss& loss, double u);

}  // namespace gristmill
