// A bounded sample of events, stored as whole numbers: each column is centred by its median, divided by its spread, and rounded.
//
// A distance between two events is the sum over columns of |difference| of these numbers, so that every order of summation and every
// instruction set gives the same bits. Up to a few hundred columns a number takes four bytes (steps of 2^-16 spreads), beyond that one byte
// (steps of 1/16, from -8 to 8): a sample of bytes holds four times as many events in the same memory, and eight to sixteen of them are
// compared by one instruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/archive.hpp"

namespace gristmill::novelty {

// One event as whole numbers. `beyond`: how far it lies outside of what can be stored, summed over columns, in spreads.
struct Coded {
    std::vector<std::int32_t> codes;
    std::vector<std::uint8_t> bytes;  // the same, shifted by 128, where the sample stores bytes
    double beyond = 0;
};

// The stored events nearest to one event, the nearest first; of two at the same distance the one in the lower slot.
struct Nearest {
    static constexpr std::size_t kMost = 20;
    std::size_t count = 0;
    std::uint32_t distance[kMost];
    std::uint32_t slot[kMost];
    // Mean distance of the first `k`, in spreads.
    double mean(std::size_t k, double step) const;
};

class CodedSample {
  public:
    CodedSample() = default;
    CodedSample(std::size_t width, std::size_t capacity, bool as_bytes);

    static constexpr std::size_t kWidest = 512;  // columns whose distances fit into 32 bits at four bytes a number
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

    std::size_t width() const { return width_; }
    std::size_t size() const { return size_; }
    std::size_t capacity() const { return capacity_; }
    bool as_bytes() const { return as_bytes_; }
    double step() const { return as_bytes_ ? 0x1p-4 : 0x1p-16; }
    static std::size_t bytes_per_event(std::size_t width, bool as_bytes);
    std::size_t bytes() const;

    // Scale of a column: (value - centre) * unit. A unit of 0: the column has had one value only.
    double centre(std::size_t column) const { return centre_[column]; }
    double unit(std::size_t column) const { return unit_[column]; }

    // Median and spread of each column from `count` rows, which become the sample. requires: 0 < count <= capacity.
    void begin(const double* rows, std::size_t count);
    void encode(const double* row, Coded& out) const;
    // How far a value lies outside of what can be stored, in spreads.
    double beyond(std::size_t column, double value) const;
    // The value of a column that a stored event has, as far as it is kept.
    double value(std::size_t slot, std::size_t column) const { return decoded(column, code(slot, column)); }
    std::int32_t code(std::size_t slot, std::size_t column) const {
        return as_bytes_ ? static_cast<std::int32_t>(bytes_[slot * stride_ + column]) - 128
                         : codes_[column * stride_ + slot];
    }
    void coded(std::size_t slot, Coded& out) const;
    // Stores an event in a slot, at most size(). A column that had one value only is measured by the first other one.
    void put(std::size_t slot, const double* row, Coded& event);

    // out[slot]: distances to all stored events in steps, `beyond` apart. requires: room for padded_slots().
    void distances(const Coded& event, std::uint32_t* out) const;
    std::size_t padded_slots() const { return (capacity_ + 15) / 16 * 16; }
    void nearest(const std::uint32_t* distances, std::size_t without, Nearest& out) const;

    // Centre and spread of every column anew; `moved(column, from)` is called for each column whose numbers change, and `from`
    // turns an earlier number of that column into the present one. requires: room for capacity() values.
    template <class F>
    void measure(double* room, F moved) {
        for (std::size_t column = 0; column < width_; ++column) {
            Change change;
            if (!changes(column, room, change)) continue;
            recode(column, change);
            moved(column, [&](std::int32_t code) { return recoded(code, change); });
        }
    }

    // The same events, as many as fit, with more columns, in which all have 0, and perhaps as numbers of another size.
    CodedSample widened(std::size_t width, std::size_t capacity, bool as_bytes) const;
    // A number of `other`, which is this sample before it was widened, as one of this sample.
    std::int32_t converted(std::int32_t code, const CodedSample& other) const { return rounded(code * other.step()); }

    void visit(Archive& archive);

  private:
    static constexpr double kLinear =
        8;  // spreads up to which a number grows with the value itself, beyond with its logarithm
    static constexpr double kFarthest = 1e6;
    static constexpr double kRare = 6;  // spreads between the ends of a column in which hardly any event differs
    static constexpr double kStill =
        0.02;  // spreads by which centre or spread must have changed before a column is measured anew
    static constexpr double kLeastSpread = 1e-290;  // less cannot be divided by
    static constexpr double kFirst = 6;  // spreads of the first value that differs in a column that had one value only

    struct Change {  // of what a column is measured by, in the units before it
        double centre = 0, spread = 1;
    };
    struct Ends {  // of the values of a column: all, the middle one, and all but 0.5 % on either side
        double least = 0, low = 0, middle = 0, high = 0, most = 0;
    };
    double limit() const { return as_bytes_ ? 127 : 2097151; }
    static double soft(double u);
    static double hard(double z);
    double scaled(std::size_t column, double value) const;
    std::int32_t rounded(double z) const;
    double decoded(std::size_t column, std::int32_t code) const;
    bool changes(std::size_t column, double* room, Change& change);
    void recode(std::size_t column, const Change& change);
    std::int32_t recoded(std::int32_t code, const Change& change) const;
    void set(std::size_t slot, std::size_t column, std::int32_t code);
    static std::size_t tail(std::size_t n) { return static_cast<std::size_t>(0.005 * static_cast<double>(n - 1)); }
    static Ends ends_of(std::span<double> values);
    template <class Each>
    static bool spread_of(const Ends& ends, std::size_t count, Each each, Change& change);

    std::size_t width_ = 0, capacity_ = 0, size_ = 0, stride_ = 0;
    bool as_bytes_ = false;
    std::vector<double> centre_, unit_;
    std::vector<std::int32_t> codes_;  // column by column: one lane a stored event
    std::vector<std::uint8_t> bytes_;  // event by event
};

}  // namespace gristmill::novelty
