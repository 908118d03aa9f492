// The look-ahead over one chunk: kernel values of the next rows against every slot.
//
// They are computed in one block, at a matrix product's efficiency; then the events are handled one by one, and when one
// of them is stored its column of the block is written over. The result does not depend on how many rows are looked at.
//
// Where more than one thread is allowed, the block after this one is computed by the others while the events of this one are handled:
// against the points as they were, so that what was stored in the meantime is computed again when its turn comes.
#pragma once

#include <optional>
#include <unordered_map>

#include "core/kernels/points.hpp"
#include "core/kernels/evicted_rows.hpp"

namespace gristmill {

struct Lookahead {
    const Batch* batch;
    std::unique_ptr<KernelRows> kernel_rows;
    std::size_t first = 0, count = 0, stride = 0;  // the rows now in `values`
    Lines<double> values, column;
    EvictedRows evicted_rows;
    // Later passes: the position of the batch's first event, and where its events are.
    std::optional<std::int64_t> start;
    std::unordered_map<std::int64_t, std::size_t> slots;

    Lookahead(const Points& points, const Kernel& kernel, const Batch& batch)
        : batch(&batch), kernel_rows(points.kernel_rows(kernel, batch)) {}

    // The rows after these, under way; the points are lent until it goes.
    struct Next {
        Points& points;
        std::unique_ptr<KernelRows> kernel_rows;
        std::size_t first = 0, count = 0, stride = 0;
        Lines<double> values = {};
        bool begun = false;
        BackgroundWork others = {};
        ~Next() { if (begun) points.settle(); }
    };
    std::unique_ptr<Next> next;
    std::vector<StoredRow> stored_since;  // what was stored since the next rows were begun

    bool replays = false;  // the rows are the stored points themselves, which stay whatever becomes of them

    explicit Lookahead(std::unique_ptr<KernelRows> kernel_rows) : batch(nullptr), kernel_rows(std::move(kernel_rows)) {}
    double* row(std::size_t i) { return values.data() + i * stride; }
    double self(std::size_t i) { return kernel_rows->self(i); }

    // Rows long enough for a matrix product's efficiency, few enough that rows against rows cost little beside rows
    // against the stored points.
    static std::size_t length(std::size_t stored, std::size_t left) {
        return std::min(left, std::clamp<std::size_t>(stored / 6 / 8 * 8, 16, 128));
    }
    // Others begin with rows [from, from + rows). requires: nobody looks at the points until
    // these rows are loaded; putting new ones is no look.
    void start_next(Points& points, const Kernel& kernel, std::size_t from, std::size_t rows, std::size_t slots_wanted) {
        if (!next) next.reset(new Next{points, points.kernel_rows(kernel, *batch)});
        Next& to = *next;
        stored_since.clear();
        try {
            to.kernel_rows->load(from, rows);
        } catch (const RowError&) {  // when it is its turn
            return;
        }
        const std::size_t pieces = to.kernel_rows->cut(threads_allowed()), known = padded(points.size());
        if (pieces <= 1) return;
        to.first = from;
        to.count = rows;
        to.stride = padded(slots_wanted);
        if (to.values.size() < rows * to.stride) to.values.resize(rows * to.stride);
        for (std::size_t r = 0; r < rows; ++r) std::fill_n(to.values.data() + r * to.stride + known, to.stride - known, 0.0);
        to.begun = to.others.start(pieces, [&to](std::size_t p) { to.kernel_rows->rows_of_piece(p, worker_index(), to.values.data(), to.stride); });
        if (to.begun) points.lend(to.others);
    }
    // Whether these are the rows that others have begun; they are loaded then.
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
    // slots_wanted: how many there may be by the end of these rows.
    void load(const Points& points, std::size_t from, std::size_t rows, std::size_t slots_wanted) {
        first = from;
        count = rows;
        stride = padded(slots_wanted);
        kernel_rows->load(from, rows);
        if (values.size() < rows * stride) values.resize(rows * stride);
        // Slots that will be filled on the way are read before they are, with coefficient 0: they must be finite.
        const std::size_t known = padded(points.size());
        for (std::size_t r = 0; r < rows; ++r) std::fill(row(r) + known, row(r) + stride, 0.0);
        kernel_rows->rows(values.data(), stride);
    }
    // Row i has gone into a slot: the rows still to come see it there, and so do those that will leave.
    void stored(std::size_t i, std::size_t slot) {
        evicted_rows.stored(row(i), slot);
        if (next && next->begun) stored_since.push_back({i, slot});
        if (i + 1 >= count) return;
        column.resize(padded(count));
        kernel_rows->among(i, column.data());
        for (std::size_t r = i + 1; r < count; ++r) row(r)[slot] = column[r];
    }
    // The last slot has moved into a removed one, as rows from i on see it; what it leaves behind may be infinite, and
    // 0 * infinity is no score.
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
