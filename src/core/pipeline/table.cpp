#include "core/pipeline/table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace gristmill {

namespace {

constexpr std::size_t kLongestCategory = 200, kLongestMissing = 10;
constexpr std::array<std::string_view, 15> kMissing = {"",    "?",    "-",   ".",    "na",   "n/a", "#n/a",   "<na>",
                                                       "nan", "-nan", "nat", "null", "none", "nil", "missing"};

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_ascii(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 128; });
}
bool equals_lower(std::string_view text, std::string_view word) {
    return text.size() == word.size() &&
           std::equal(text.begin(), text.end(), word.begin(), [](char a, char b) { return lower(a) == b; });
}
std::string_view stripped(std::string_view text) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    return text;
}
// requires: ASCII.
bool is_missing(std::string_view text) {
    if (text.size() >= kLongestMissing) return false;
    text = stripped(text);
    return std::any_of(kMissing.begin(), kMissing.end(),
                       [&](std::string_view word) { return equals_lower(text, word); });
}
std::optional<double> truth(std::string_view text) {
    if (!is_ascii(text)) return std::nullopt;
    text = stripped(text);
    if (equals_lower(text, "true")) return 1.0;
    if (equals_lower(text, "false")) return 0.0;
    return std::nullopt;
}
// "7.0" and "7" are one category.
bool is_whole_number(std::string_view text) {
    if (text.size() < 3 || text.substr(text.size() - 2) != ".0") return false;
    const std::string_view digits = text.substr(0, text.size() - 2);
    const std::string_view bare = digits.front() == '-' ? digits.substr(1) : digits;
    if (bare.empty() || !std::all_of(bare.begin(), bare.end(), is_digit)) return false;
    return digits == "0" || bare.front() != '0';
}
// The name of a category as it is kept; nothing if it has to be found elsewhere. requires: ASCII.
std::optional<std::string_view> category(std::string_view text) {
    text = stripped(text);
    if (text.size() > kLongestCategory) return std::nullopt;
    if (is_whole_number(text)) return text.substr(0, text.size() - 2);
    if (const auto found = truth(text)) return *found == 1.0 ? "true" : "false";
    return text;
}

}  // namespace

// ---- what is appended ---------------------------------------------------------------------------------------------------

void Table::log(What what, std::size_t column, std::size_t places) {
    log_.push_back({what, static_cast<std::uint32_t>(column), static_cast<std::uint32_t>(places)});
    width_ += places;
}

void Table::add_column() {
    columns_.emplace_back();
    log(What::column, columns_.size() - 1, 0);
}

void Table::add_gap(std::size_t column) {
    columns_[column].gap = true;
    log(What::gap, column, 0);
}

void Table::add_kind(std::size_t column, Kind kind, std::size_t places) {
    Column& c = columns_[column];
    c.kind = kind;
    c.place = width_;
    if (kind == Kind::number || kind == Kind::boolean) {
        c.slot = slots_.size();
        slots_.push_back(column);
    }
    booleans_ += kind == Kind::boolean;
    others_ += kind == Kind::other;
    log(What::kind, column, places);
}

void Table::add_missing(std::size_t column) {
    columns_[column].missing = width_;
    log(What::missing, column, 1);
}

void Table::add_value(std::size_t column, std::string_view text) {
    columns_[column].values.emplace(text, width_);
    log(What::value, column, 1);
}

void Table::add_other(std::size_t column) {
    columns_[column].other = width_;
    log(What::other, column, 1);
}

void Table::truncate(std::size_t entries) {
    while (log_.size() > entries) {
        const Entry last = log_.back();
        log_.pop_back();
        width_ -= last.places;
        Column& c = columns_[last.column];
        switch (last.what) {
            case What::column: columns_.pop_back(); break;
            case What::gap: c.gap = false; break;
            case What::kind:
                if (c.slot != kNone) slots_.pop_back();
                booleans_ -= c.kind == Kind::boolean;
                others_ -= c.kind == Kind::other;
                c.kind = Kind::unknown;
                c.place = c.slot = kNone;
                break;
            case What::missing: c.missing = kNone; break;
            case What::value: std::erase_if(c.values, [&](const auto& value) { return value.second == width_; }); break;
            case What::other: c.other = kNone; break;
        }
    }
}

std::size_t Table::bytes(std::size_t entries) const {
    std::size_t total = 0, width = 0;
    for (std::size_t at = 0; at < std::min(entries, log_.size()); ++at) {
        const Entry& entry = log_[at];
        total += sizeof(Entry);
        if (entry.what == What::column) total += sizeof(Column);
        if (entry.what == What::kind && columns_[entry.column].slot != kNone) total += 3 * sizeof(double);
        width += entry.places;
    }
    for (const Column& c : columns_)
        for (const auto& value : c.values)
            if (value.second < width) total += sizeof(value) + value.first.size() + 2 * sizeof(void*);
    return total;
}

std::size_t Table::entries_at(std::size_t width) const {
    std::size_t entries = 0;
    for (std::size_t wide = 0; entries < log_.size() && wide < width; ++entries) wide += log_[entries].places;
    return entries;
}

// ---- one event ----------------------------------------------------------------------------------------------------------

void Table::Event::fit(std::size_t width, std::size_t slots) {
    row.assign(width, 0.0);
    numbers.resize(slots);
    filled.resize(slots);
    if (slots > room) {
        gone = std::make_unique<bool[]>(slots);
        room = slots;
    }
    std::fill_n(gone.get(), slots, false);
    has_gaps = false;
}

bool Table::read(std::span<const Cell> cells, bool learn, std::size_t width, Event& event) const {
    event.fit(width, slots_.size());
    for (std::size_t at = 0; at < columns_.size(); ++at) {
        const Column& column = columns_[at];
        Cell cell = cells[at];
        if (cell.kind == Cell::Kind::text && is_ascii(cell.text) && is_missing(cell.text))
            cell.kind = Cell::Kind::missing;
        if (column.kind == Kind::unknown) {
            if (learn && !(cell.kind == Cell::Kind::missing && column.gap)) return false;
            continue;
        }
        if (column.kind == Kind::category) {
            if (!read_category(column, cell, learn, event)) return false;
            continue;
        }
        double& number = event.numbers[column.slot];
        if (cell.kind == Cell::Kind::missing) {
            if (gaps_ == Gaps::error || (learn && gaps_ == Gaps::mean && flags_ && column.missing == kNone))
                return false;
            number = 0;
            event.gone[column.slot] = event.has_gaps = true;
            if (column.missing != kNone) event.row[column.missing] = 1;
            continue;
        }
        if (cell.kind == Cell::Kind::text) {
            const auto found = column.kind == Kind::boolean ? truth(cell.text) : std::nullopt;
            if (!found) return false;
            number = *found;
            continue;
        }
        if (column.kind == Kind::boolean
                ? cell.number != 0 && cell.number != 1
                : (cell.kind == Cell::Kind::boolean && gaps_ != Gaps::zero) || !std::isfinite(cell.number))
            return false;
        number = cell.number;
    }
    return true;
}

bool Table::read_category(const Column& column, const Cell& cell, bool learn, Event& event) const {
    auto set = [&](std::size_t place) {
        if (place == kNone) return !learn;
        event.row[place] = kOneHot;
        return true;
    };
    char digits[24];
    std::optional<std::string_view> name;
    switch (cell.kind) {
        case Cell::Kind::missing: return gaps_ != Gaps::error && set(column.missing);
        case Cell::Kind::boolean: name = cell.number == 1 ? "true" : "false"; break;
        case Cell::Kind::number: {
            if (!(std::abs(cell.number) < 9007199254740992.0) || cell.number != std::floor(cell.number)) return false;
            const auto end = std::to_chars(digits, digits + sizeof digits, static_cast<std::int64_t>(cell.number));
            name = std::string_view(digits, static_cast<std::size_t>(end.ptr - digits));
            break;
        }
        case Cell::Kind::text:
            // Names are kept in the form that category() gives them, so that most are found as they are.
            if (const auto known = column.values.find(cell.text); known != column.values.end())
                return set(known->second);
            if (!is_ascii(cell.text)) return false;
            name = category(cell.text);
            break;
    }
    if (!name) return false;
    const auto known = column.values.find(*name);
    return set(known == column.values.end() ? column.other : known->second);
}

void Table::fill(bool learn, Event& event) {
    if (!learn || gaps_ != Gaps::mean) {
        std::as_const(*this).fill(event);
    } else if (event.has_gaps) {
        means.learn(event.numbers.data(), event.gone.get(), 1, event.filled.data());
    } else {
        means.learn(event.numbers.data(), 1);
        event.filled = event.numbers;
    }
}

void Table::fill(Event& event) const {
    event.filled = event.numbers;
    if (event.has_gaps && gaps_ == Gaps::mean)
        for (std::size_t slot = 0; slot < slots_.size(); ++slot)
            if (event.gone[slot]) event.filled[slot] = means.mean(slot);
}

// ---- rows ---------------------------------------------------------------------------------------------------------------

void EventRows::begin() {
    table_.means.begin();
    if (scaling_) scaling_->begin();
    ++table_.seen;
}

void EventRows::rollback() {
    table_.means.rollback();
    if (scaling_) scaling_->rollback();
    --table_.seen;
}

const double* EventRows::weighed(Table::Event& event) const {
    for (std::size_t c = 0; c < weights_.size(); ++c) event.row[c] = event.row[c] * weights_[c];
    return event.row.data();
}

const double* EventRows::learn(std::span<const Cell> cells, Table::Event& event) {
    if (!table_.read(cells, true, width_, event)) return nullptr;
    begin();
    try {
        table_.fill(true, event);
        table_.place(event, [&](const double* from, double* to) {
            if (scaling_ && table_.scaled()) scaling_->learn(from, 1, to);
            else std::copy_n(from, table_.scaled(), to);
        });
    } catch (...) {
        rollback();
        throw;
    }
    return weighed(event);
}

const double* EventRows::encode(std::span<const Cell> cells, Table::Event& event) const {
    if (!table_.read(cells, false, width_, event)) return nullptr;
    std::as_const(table_).fill(event);
    table_.place(event, [&](const double* from, double* to) {
        if (scaling_ && table_.scaled()) scaling_->scale(from, 1, to);
        else std::copy_n(from, table_.scaled(), to);
    });
    return weighed(event);
}

const double* EventRows::learn(std::span<const double> numbers, Table::Event& event) {
    event.row.assign(width_, 0.0);
    begin();
    try {
        if (table_.gaps() == Gaps::mean) table_.means.learn(numbers.data(), 1);
        if (scaling_) scaling_->learn(numbers.data(), 1, event.row.data());
        else std::copy(numbers.begin(), numbers.end(), event.row.begin());
    } catch (...) {
        rollback();
        throw;
    }
    return weighed(event);
}

const double* EventRows::encode(std::span<const double> numbers, Table::Event& event) const {
    event.row.assign(width_, 0.0);
    if (scaling_) scaling_->scale(numbers.data(), 1, event.row.data());
    else std::copy(numbers.begin(), numbers.end(), event.row.begin());
    return weighed(event);
}

}  // namespace gristmill
