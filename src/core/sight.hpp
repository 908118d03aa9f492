// The look-ahead over one chunk: kernel values of the next rows against every slot.
//
// They are computed in one block, at a matrix product's efficiency; then the events are handled one by one, and when one
// of them is stored its column of the block is written over. The result does not depend on how many rows are looked at.
#pragma once

#include <optional>
#include <unordered_map>

#include "core/points.hpp"
#include "core/victims.hpp"

namespace gristmill {

struct Sight {
    const Batch* batch;
    std::unique_ptr<Ahead> ahead;
    std::size_t first = 0, count = 0, stride = 0;  // the rows now in `values`
    Lines<double> values, column;
    VictimRows victims;
    // Later passes: the position of the batch's first event, and where its events are.
    std::optional<std::int64_t> start;
    std::unordered_map<std::int64_t, std::size_t> slots;

    Sight(const Points& points, const Kernel& kernel, const Batch& batch)
        : batch(&batch), ahead(points.ahead(kernel, batch)) {}

    bool replays = false;  // the rows are the stored points themselves, which stay whatever becomes of them

    explicit Sight(std::unique_ptr<Ahead> ahead) : batch(nullptr), ahead(std::move(ahead)) {}
    double* row(std::size_t i) { return values.data() + i * stride; }
    double self(std::size_t i) { return ahead->self(i); }

    // Rows long enough for a matrix product's efficiency, few enough that rows against rows cost little beside rows
    // against the stored points.
    static std::size_t length(std::size_t stored, std::size_t left) {
        return std::min(left, std::clamp<std::size_t>(stored / 6 / 8 * 8, 16, 128));
    }
    // slots_wanted: how many there may be by the end of these rows.
    void load(const Points& points, std::size_t from, std::size_t rows, std::size_t slots_wanted) {
        first = from;
        count = rows;
        stride = padded(slots_wanted);
        ahead->load(from, rows);
        if (values.size() < rows * stride) values.resize(rows * stride);
        // Slots that will be filled on the way are read before they are, with coefficient 0: they must be finite.
        const std::size_t known = padded(points.size());
        for (std::size_t r = 0; r < rows; ++r) std::fill(row(r) + known, row(r) + stride, 0.0);
        ahead->rows(values.data(), stride);
    }
    // Row i has gone into a slot: the rows still to come see it there, and so do those that will leave.
    void stored(std::size_t i, std::size_t slot) {
        victims.stored(row(i), slot);
        if (i + 1 >= count) return;
        column.resize(padded(count));
        ahead->among(i, column.data());
        for (std::size_t r = i + 1; r < count; ++r) row(r)[slot] = column[r];
    }
    // The last slot has moved into a removed one, as rows from i on see it; what it leaves behind may be infinite, and
    // 0 * infinity is no score.
    void moved(std::size_t i, std::size_t from, std::size_t to) {
        victims.clear();
        for (std::size_t r = i; r < count; ++r) {
            row(r)[to] = row(r)[from];
            row(r)[from] = 0;
        }
    }
    void cleared(std::size_t i, std::size_t slots_then) {
        victims.clear();
        for (std::size_t r = i; r < count; ++r) std::fill(row(r), row(r) + slots_then, 0.0);
    }
};

}  // namespace gristmill
