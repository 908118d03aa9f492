// A table of numbers, truths and categories as rows of a learner, one event at a time.
//
// Columns, their kinds and the values of categories come in order and are only ever appended, so that a row from before is
// the same with zeros behind it; truncate() takes the last ones back. An event that would append something, or that does not
// fit, is not encoded: the caller reads it in another way, which also finds the words for what is wrong.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/adapt/scaling.hpp"

namespace gristmill {

struct Cell {
    enum class Kind : std::uint8_t { missing, number, boolean, text };
    Kind kind = Kind::missing;
    double number = 0;  // 0 or 1 of a boolean
    std::string_view text;  // UTF-8; must outlive the call
};

// What a missing number becomes: the mean so far, with a flag; an error; or 0.
enum class Gaps : std::uint8_t { mean, error, zero };

class Table {
  public:
    // other: times and texts, whose values are not read here.
    enum class Kind : std::uint8_t { unknown, number, boolean, category, other };
    // In the column of a category: two different values are then at distance 1, as two numbers one deviation apart are.
    static constexpr double kOneHot = 0.7071067811865476;

    Table(Gaps gaps, bool flags) : gaps_(gaps), flags_(flags) {}

    // ---- what is appended -------------------------------------------------------------------------------------------

    void add_column();
    // requires in the following: there is such a column, and the entry is new.
    void add_gap(std::size_t column);  // a value is missing before the kind is known
    void add_kind(std::size_t column, Kind kind, std::size_t places);  // places: columns of the row from the beginning
    void add_missing(std::size_t column);  // a flag, or the value "missing" of a category
    void add_value(std::size_t column, std::string_view text);
    void add_other(std::size_t column);  // one column for all further values
    // As after the first `entries` calls of the above.
    void truncate(std::size_t entries);

    std::size_t entries() const { return log_.size(); }
    std::size_t columns() const { return columns_.size(); }
    std::size_t width() const { return width_; }
    // Of the first `entries`.
    std::size_t bytes(std::size_t entries) const;
    // Entries after which rows first have `width` columns; all of them where they never have so many.
    std::size_t entries_at(std::size_t width) const;
    Gaps gaps() const { return gaps_; }
    // Whether events can be encoded: no column has values of another kind.
    bool is_readable() const { return others_ == 0; }
    // Whether the rows are the table: numbers only, and none was ever missing.
    bool is_plain() const {
        return width_ > 0 && slots_.size() == columns_.size() && slots_.size() == width_ && booleans_ == 0;
    }
    std::size_t numbers() const { return slots_.size(); }
    std::size_t scaled() const { return slots_.size() - booleans_; }  // numbers that have a unit

    // ---- one event --------------------------------------------------------------------------------------------------

    // Memory to work in. After read(): the row but for its numbers, and these.
    struct Event {
        std::vector<double> row, numbers, filled, block, scaled;
        std::unique_ptr<bool[]> gone;
        std::size_t room = 0;
        bool has_gaps = false;
        void fit(std::size_t width, std::size_t slots);
    };
    // Reads cells, one per column. False if the event cannot be encoded: it does not fit, or, where it is to be learned, it
    // would append something.
    bool read(std::span<const Cell> cells, bool learn, std::size_t width, Event& event) const;
    // The numbers as they are filled in, by the means so far or including them.
    void fill(bool learn, Event& event);
    void fill(Event& event) const;
    // The numbers into the row; those with a unit pass through `scale`, which takes them in and out.
    template <class F>
    void place(Event& event, F scale) const {
        const bool all = booleans_ == 0;
        if (!all) {
            event.block.clear();
            for (std::size_t slot = 0; slot < slots_.size(); ++slot)
                if (is_scaled(slot)) event.block.push_back(event.filled[slot]);
        }
        const double* from = all ? event.filled.data() : event.block.data();
        event.scaled.resize(scaled());
        scale(from, event.scaled.data());
        std::size_t next = 0;
        for (std::size_t slot = 0; slot < slots_.size(); ++slot)
            event.row[columns_[slots_[slot]].place] = is_scaled(slot) ? event.scaled[next++] : event.filled[slot];
    }

    Means means;  // of the numbers
    std::uint64_t seen = 0;  // events

  private:
    static constexpr std::size_t kNone = ~std::size_t{0};
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
    };
    struct Column {
        Kind kind = Kind::unknown;
        bool gap = false;
        std::size_t place = kNone, missing = kNone, other = kNone, slot = kNone;
        std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> values;
    };
    enum class What : std::uint8_t { column, gap, kind, missing, value, other };
    struct Entry {
        What what;
        std::uint32_t column, places;
    };
    bool is_scaled(std::size_t slot) const { return columns_[slots_[slot]].kind == Kind::number; }
    void log(What what, std::size_t column, std::size_t places);
    bool read_category(const Column& column, const Cell& cell, bool learn, Event& event) const;

    Gaps gaps_;
    bool flags_;
    std::vector<Column> columns_;
    std::vector<std::size_t> slots_;  // columns with one number per event, in order of arrival
    std::vector<Entry> log_;
    std::size_t width_ = 0, others_ = 0, booleans_ = 0;
};

// Events of a table as rows of a learner: encoded, scaled and weighted, with undo of the last one.
class EventRows {
  public:
    // scaling: none, or as wide as the numbers that have a unit. weights: none, or one per column. width: of the rows; those
    // behind the table are 0. The table and the scaling must outlive this object.
    EventRows(Table& table, ColumnScaling* scaling, std::vector<double> weights, std::size_t width)
        : table_(table), scaling_(scaling), weights_(std::move(weights)), width_(width) {}

    std::size_t width() const { return width_; }
    // Takes an event in and returns its row, which lives in `event`; null, and nothing is changed, if it cannot be encoded.
    const double* learn(std::span<const Cell> cells, Table::Event& event);
    const double* encode(std::span<const Cell> cells, Table::Event& event) const;
    // The same of numbers.
    const double* learn(std::span<const double> numbers, Table::Event& event);
    const double* encode(std::span<const double> numbers, Table::Event& event) const;
    // requires: learn() was called before, and nothing since.
    void rollback();

  private:
    void begin();
    const double* weighed(Table::Event& event) const;

    Table& table_;
    ColumnScaling* scaling_;
    std::vector<double> weights_;
    std::size_t width_;
};

}  // namespace gristmill
