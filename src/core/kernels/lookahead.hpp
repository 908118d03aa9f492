// The look-ahead over one chunk: kernel values of the next rows at every slot.
//
// They are computed in one block, at the efficiency of a matrix product; then the events are handled one by one, and
// when an event is stored its column of the block is overwritten. The result does not depend on the length of the
// block.
//
// With more than one thread, the next block is computed in the background while the events of this one are handled. It
// sees the points as they were; kernel values of points stored in the meantime are computed when the block is used.
#pragma once

#include <optional>
#include <unordered_map>

#include "core/kernels/evicted_rows.hpp"
#include "core/kernels/points.hpp"

namespace gristmill {

struct Lookahead {
    const Batch* batch;
    std::unique_ptr<KernelRows> kernel_rows;
    std::size_t first = 0, count = 0, stride = 0;  // the rows in `values`
    Lines<double> values, column;
    EvictedRows evicted_rows;
    // Later passes: the position of the batch's first event, and the slots of its events.
    std::optional<std::int64_t> start;
    std::unordered_map<std::int64_t, std::size_t> slots;

    Lookahead(const Points& points, const Kernel& kernel, const Batch& batch)
        : batch(&batch), kernel_rows(points.kernel_rows(kernel, batch)) {}

    // The next block, being computed; the points are lent to the background work until it is destroyed.
    struct Next {
        Points& points;
        std::unique_ptr<KernelRows> kernel_rows;
        std::size_t first = 0, count = 0, stride = 0;
        Lines<double> values = {};
        bool begun = false;
        BackgroundWork others = {};
        ~Next() {
            if (begun) points.settle();
        }
    };
    std::unique_ptr<Next> next;
    std::vector<StoredRow> stored_since;  // rows stored since the next block was started

    bool replays = false;  // the rows are the stored points themselves, which are never removed

    explicit Lookahead(std::unique_ptr<KernelRows> kernel_rows) : batch(nullptr), kernel_rows(std::move(kernel_rows)) {}
    double* row(std::size_t i) { return values.data() + i * stride; }
    double self(std::size_t i) { return kernel_rows->self(i); }

    // Block length: long enough for the efficiency of a matrix product, short enough that rows against rows cost little
    // compared with rows against the stored points.
    static std::size_t length(std::size_t stored, std::size_t left) {
        return std::min(left, std::clamp<std::size_t>(stored / 6 / 8 * 8, 16, 128));
    }
    // Starts computing rows [from, from + rows) in the background. requires: the points are not read until these rows
    // are loaded; inserting new points is allowed.
    void start_next(Points& points, const Kernel& kernel, std::size_t from, std::size_t rows,
                    std::size_t slots_wanted) {
        if (!next) next.reset(new Next{points, points.kernel_rows(kernel, *batch)});
        Next& to = *next;
        stored_since.clear();
        try {
            to.kernel_rows->load(from, rows);
        } catch (const RowError&) {  // reported when these rows are loaded
            return;
        }
        const std::size_t pieces = to.kernel_rows->cut(threads_allowed()), known = padded(points.size());
        if (pieces <= 1) return;
        to.first = from;
        to.count = rows;
        to.stride = padded(slots_wanted);
        if (to.values.size() < rows * to.stride) to.values.resize(rows * to.stride);
        for (std::size_t r = 0; r < rows; ++r)
            std::fill_n(to.values.data() + r * to.stride + known, to.stride - known, 0.0);
        to.begun = to.others.start(pieces, [&to](std::size_t p) {
            to.kernel_rows->rows_of_piece(p, worker_index(), to.values.data(), to.stride);
        });
        if (to.begun) points.lend(to.others);
    }
    // Returns whether these rows were computed in the background, and loads them if so.
    bool take_next(std::size_t from, std::size_t rows) {
        if (!next || !next->begun) return false;
        next->points.settle();
        next->begun = false;
        if (next->first != from || next->count != rows) return false;
        next->kernel_rows->against(*kernel_rows, stored_since, next->values.data(), next->stride);
        std::swap(kernel_rows, next->kernel_rows);
        std::swap(values, next->values);
        first = from;
        count = rows;
        stride = next->stride;
        return true;
    }
    // slots_wanted: the largest number of slots by the end of these rows.
    void load(const Points& points, std::size_t from, std::size_t rows, std::size_t slots_wanted) {
        first = from;
        count = rows;
        stride = padded(slots_wanted);
        kernel_rows->load(from, rows);
        if (values.size() < rows * stride) values.resize(rows * stride);
        // Slots that are filled later are read before, with coefficient 0: their values must be finite.
        const std::size_t known = padded(points.size());
        for (std::size_t r = 0; r < rows; ++r) std::fill(row(r) + known, row(r) + stride, 0.0);
        kernel_rows->rows(values.data(), stride);
    }
    // Row i was stored in a slot: updates the rows still to come, and the rows of points to be evicted.
    void stored(std::size_t i, std::size_t slot) {
        evicted_rows.stored(row(i), slot);
        if (next && next->begun) stored_since.push_back({i, slot});
        if (i + 1 >= count) return;
        column.resize(padded(count));
        kernel_rows->among(i, column.data());
        for (std::size_t r = i + 1; r < count; ++r) row(r)[slot] = column[r];
    }
    // The last slot was moved into a removed one: updates rows from i on. The old column is zeroed, because 0 *
    // infinity is NaN.
    void moved(std::size_t i, std::size_t from, std::size_t to) {
        evicted_rows.clear();
        next.reset();
        for (std::size_t r = i; r < count; ++r) {
            row(r)[to] = row(r)[from];
            row(r)[from] = 0;
        }
    }
    void cleared(std::size_t i, std::size_t slots_then) {
        evicted_rows.clear();
        next.reset();
        for (std::size_t r = i; r < count; ++r) std::fill(row(r), row(r) + slots_then, 0.0);
    }
};

}  // namespace gristmill
