// Sparse rows of very many columns, as linear experts and kernel experts of a race take them.
//
// A column is divided by a running median of its absolute values, so that units do not matter. The first columns have a place of
// their own; the others are hashed to the same places. For experts that store points a row is hashed to a few numbers (a count
// sketch, whose dot products estimate those of the rows), so that the memory and time of a stored point are fixed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/base/archive.hpp"
#include "core/base/batch.hpp"

namespace gristmill {

// Scaled non-zeros of some rows, by the places of their columns.
struct WideChunk {
    std::vector<std::size_t> start{0};
    std::vector<std::uint32_t> places;
    std::vector<float> values;
    std::vector<double> sketch;  // kSketch numbers per row
};

// The non-zeros of one row.
struct WideRow {
    const std::uint32_t* places;
    const float* values;
    std::size_t count;
};

class WideColumns {
  public:
    static constexpr std::size_t kSketch = 64;

    WideColumns(std::size_t width, std::size_t places) : width(width), medians_(places, 0.0f) {}

    std::size_t places() const { return medians_.size(); }
    std::size_t bytes() const { return medians_.size() * sizeof(float); }

    // Follows the columns of these rows, in order, and scales each row by what was seen up to and including it.
    void learn(const SparseRows<double>& rows, WideChunk& out) {
        changed_.clear();
        begin(rows, out);
        for (std::size_t r = 0; r < rows.count; ++r) {
            for (std::size_t k = 0; k < rows.nonzeros(r); ++k) {
                const double value = rows.values(r)[k];
                if (value == 0) continue;
                const std::uint32_t place = place_of(rows.columns(r)[k]);
                const float before = medians_[place], after = followed(before, static_cast<float>(std::abs(value)));
                if (after != before) {
                    if (rows.count == 1) changed_.push_back({place, before});
                    medians_[place] = after;
                }
                add(out, rows.columns(r)[k], place, value, after);
            }
            out.start.push_back(out.places.size());
        }
    }
    // Undoes `learn` of one row.
    void rollback() {
        for (std::size_t at = changed_.size(); at-- > 0;) medians_[changed_[at].first] = changed_[at].second;
        changed_.clear();
    }
    void scale(const SparseRows<double>& rows, WideChunk& out) const {
        begin(rows, out);
        for (std::size_t r = 0; r < rows.count; ++r) {
            for (std::size_t k = 0; k < rows.nonzeros(r); ++k) {
                const double value = rows.values(r)[k];
                if (value == 0) continue;
                const std::uint32_t place = place_of(rows.columns(r)[k]);
                const float median = medians_[place];
                add(out, rows.columns(r)[k], place, value, median > 0 ? median : static_cast<float>(std::abs(value)));
            }
            out.start.push_back(out.places.size());
        }
    }
    void visit(Archive& archive) {
        const std::size_t before = medians_.size();
        archive.numbers("medians", medians_, before);
        if (archive.loads && !std::all_of(medians_.begin(), medians_.end(), [](float m) { return m >= 0; }))
            archive.refuse("medians", "holds a number out of range");
    }

    std::size_t width;  // columns of the rows

  private:
    static constexpr float kStep = 1.0f / 32;  // relative step of a running median
    static constexpr float kFar = 4;  // from this ratio on it is doubled or halved
    static constexpr float kMost = 8;  // largest absolute value of a scaled number
    static constexpr float kLeastMedian = 1e-30f, kMostMedian = 1e30f;

    static std::uint64_t hash(std::int32_t column) {
        std::uint64_t h = (static_cast<std::uint64_t>(column) + 1) * 0x9E3779B97F4A7C15ull;
        h = (h ^ (h >> 32)) * 0xD6E8FEB86659FD93ull;
        return h ^ (h >> 32);
    }
    std::uint32_t place_of(std::int32_t column) const {
        const auto own = static_cast<std::uint32_t>(column);
        return own < medians_.size() ? own : static_cast<std::uint32_t>((hash(column) >> 20) % medians_.size());
    }
    static float followed(float median, float size) {
        size = std::clamp(size, kLeastMedian, kMostMedian);
        if (median == 0) return size;
        if (size > median) return size > kFar * median ? 2 * median : std::min(size, median * (1 + kStep));
        return size * kFar < median ? median / 2 : std::max(size, median / (1 + kStep));
    }
    void begin(const SparseRows<double>& rows, WideChunk& out) const {
        out.start.assign(1, 0);
        out.places.clear(), out.values.clear();
        out.sketch.assign(rows.count * kSketch, 0.0);
    }
    void add(WideChunk& out, std::int32_t column, std::uint32_t place, double value, float median) const {
        const auto scaled =
            static_cast<float>(std::clamp(value / static_cast<double>(median), -double{kMost}, double{kMost}));
        out.places.push_back(place);
        out.values.push_back(scaled);
        const std::uint64_t h = hash(column);
        out.sketch[(out.start.size() - 1) * kSketch + (h & (kSketch - 1))] += h & kSketch ? -scaled : scaled;
    }

    std::vector<float> medians_;  // by place; 0 where nothing has come
    std::vector<std::pair<std::uint32_t, float>> changed_;  // by the last row
};

}  // namespace gristmill
