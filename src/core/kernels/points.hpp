// Folder kernels: kernel expressions, stored points (dense and sparse), look-ahead blocks, checks of input rows.
// It includes base/ and simd/; parts/, learner/ and everything above may include it.
// Begin with this file: the stored points. Slots are always 0..size-1; a removed point's slot is filled by the last
// one. Dense points in blocks of lanes are here, sparse ones in kernels/sparse_points.hpp.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include "core/base/batch.hpp"
#include "core/base/threads.hpp"
#include "core/kernels/kernels.hpp"

namespace gristmill {

// Loaded row `i` has been stored in `slot`.
struct StoredRow {
    std::size_t i, slot;
};

// Kernel values of a few loaded rows of a chunk, against the stored points and against each other. Holds all scratch
// memory, so that the points themselves stay const while many threads predict.
class KernelRows {
  public:
    virtual ~KernelRows() = default;
    virtual void load(std::size_t first, std::size_t count) = 0;  // rows [first, first + count) of the batch
    // out[r * stride + slot] for the loaded rows and all slots, padded(size) entries per row
    virtual void rows(double* out, std::size_t stride) = 0;
    virtual void among(std::size_t i, double* out) = 0;  // loaded row i against all loaded rows
    virtual double self(std::size_t i) = 0;              // k(x, x) of loaded row i
    // Cuts rows() into pieces that several threads may compute; returns their number, 1 if that is not worthwhile or
    // not possible. Until other rows are loaded, rows_of_piece computes one piece; two pieces never use the same worker
    // index at the same time.
    virtual std::size_t cut(std::size_t) { return 1; }
    virtual void rows_of_piece(std::size_t, std::size_t, double*, std::size_t) {}
    // out[r * stride + slot] = k(loaded row r, row i of `earlier`) for each (i, slot). requires: the same class, which
    // supports cut().
    virtual void against(KernelRows&, std::span<const StoredRow>, double*, std::size_t) {}
    // d f_o / d x at the loaded rows, in the order (row, output, feature). coefs: one line of padded(size) numbers per
    // output. requires: the same coefs in every call, and never more rows than in the first call.
    virtual void gradients(std::span<const Lines<double>> coefs, double* out);
};

// Refuses a row whose squared norm is so large that ||x - y||^2 from norms and dot product would be infinity -
// infinity.
template <class T>
void refuse_too_long(std::size_t row, T norm2) {
    if (!(norm2 <= std::numeric_limits<T>::max() / 4))
        throw RowError(row, "row " + std::to_string(row) + " is too large: its squared norm overflows" +
                                (sizeof(T) == sizeof(float) ? " float32; use float64 or scale the inputs" : ""));
}

// sum |x| in order; zeros in between do not change a bit of it.
template <class T>
T norm1_of(const T* numbers, std::size_t count) {
    T sum = 0;
    for (std::size_t j = 0; j < count; ++j) sum += std::abs(numbers[j]);
    return sum;
}

// Changes the numbers of a row in place.
using RowChange = std::function<void(double* row)>;

class Points {
  public:
    static constexpr std::size_t npos = static_cast<std::size_t>(-1);

    virtual ~Points() = default;
    // A copy outside of any transaction. requires: no transaction is open and nothing is lent.
    virtual std::unique_ptr<Points> clone() const;
    // The same points with zeros in additional columns at the end.
    virtual std::unique_ptr<Points> widened(std::size_t width) const;
    virtual std::size_t width() const = 0;  // number of features; 0 for objects
    std::size_t size() const { return ids_.size(); }
    std::int64_t id(std::size_t slot) const { return ids_[slot]; }
    std::span<const std::int64_t> ids() const { return ids_; }
    std::size_t oldest() const { return oldest_; }
    std::size_t newer(std::size_t slot) const { return newer_[slot]; }

    // Stores a row. requires: slot <= size; slot == size appends, otherwise the point there is replaced. Ages follow
    // the ids. by_age: false while points are restored slot by slot, before order_by_id().
    void put(std::size_t slot, std::int64_t id, const Batch& batch, std::size_t row, bool by_age = true);
    // Removes a point. ensures: the last point has moved into `slot`. The order of ages is unchanged.
    void remove(std::size_t slot);
    void clear();
    virtual void reserve(std::size_t n);
    void set_limit(std::size_t limit) { limit_ = limit; }  // upper limit of size(), for allocation only
    // Capacity to allocate when n slots are needed: doubling, but never above the limit.
    std::size_t capacity_for(std::size_t n, std::size_t present) const;
    virtual std::size_t bytes() const;
    // bytes() of a store of exactly n points; 0 if that depends on the points.
    virtual std::size_t bytes_for(std::size_t) const { return 0; }
    virtual void shrink_to_limit() {}  // frees capacity beyond the limit

    virtual std::unique_ptr<KernelRows> kernel_rows(const Kernel& kernel, const Batch& batch) const = 0;
    // kernel values at all slots
    virtual void stored_row(const Kernel& kernel, std::size_t slot, double* out) const = 0;
    // Several rows, at the slots before `end` at least.
    virtual void stored_rows(const Kernel& kernel, std::span<const std::size_t> slots, double* out, std::size_t stride,
                             std::size_t = npos) const {
        for (std::size_t r = 0; r < slots.size(); ++r) stored_row(kernel, slots[r], out + r * stride);
    }
    virtual double stored_self(const Kernel& kernel, std::size_t slot) const = 0;

    // Multiplies each feature by its factor, in place.
    void rescale(std::span<const double> factors);
    // Changes the row of every stored point. If `change` throws, rollback() restores the rows.
    void change_rows(const RowChange& change);

    // Which points arrived as sparse rows in a dense store: their L1 distances are summed in another order, and
    // `stored_rows` reproduces it. Saved with every hypothesis that recomputes numbers from its points.
    virtual std::vector<std::uint8_t> came_sparse() const { return std::vector<std::uint8_t>(size()); }
    virtual void set_came_sparse(std::span<const std::uint8_t>) {}

    // Whether evaluating the kernel runs Python code, which may throw.
    virtual bool may_fail() const { return false; }
    void order_by_id();  // recomputes ages from ids, after points were restored slot by slot

    // Other threads read the points until settle(): points put in the meantime are written then, so their batch must
    // live as long; any other mutation calls settle() first; readers must call it too.
    void lend(BackgroundWork& readers) { readers_ = &readers; }
    void settle();

    // Transactions: after begin(), rollback() restores the points, commit() discards the undo log.
    void begin();
    void rollback();
    void commit() { undo_log_.reset(); }

  protected:
    Points() = default;
    Points(const Points& other)
        : ids_(other.ids_), older_(other.older_), newer_(other.newer_), oldest_(other.oldest_), newest_(other.newest_),
          limit_(other.limit_) {}
    // The data of a slot; `put_data` may be called with slot == size() before the id is added.
    virtual void put_data(std::size_t slot, const Batch& batch, std::size_t row) = 0;
    virtual void move_data(std::size_t from, std::size_t to) = 0;
    virtual void drop_last(std::size_t slot) = 0;  // the slot just behind the new end
    virtual void rescale_data(std::size_t slot, std::span<const double> factors);
    virtual void change_data(std::size_t slot, const RowChange& change);
    // Copies and restores one stored point, for the undo log.
    virtual std::shared_ptr<void> copy_data(std::size_t slot) const = 0;
    virtual void restore_data(std::size_t slot, const std::shared_ptr<void>& data) = 0;

    static std::size_t ages_bytes_for(std::size_t n) { return n * (sizeof(std::int64_t) + 2 * sizeof(std::size_t)); }
    void shrink_ages();
    std::size_t limit() const { return limit_; }

  private:
    struct UndoLog {
        std::vector<std::int64_t> ids;
        std::vector<std::size_t> older, newer;
        std::size_t oldest, newest;
        std::vector<std::shared_ptr<void>> saved;  // by slot; null if unchanged
    };
    void before_write(std::size_t slot);
    void unlink(std::size_t slot);
    void link(std::size_t slot, bool by_age = true);  // at the position of its id: the end, except in a later pass

    std::vector<std::int64_t> ids_;
    std::vector<std::size_t> older_, newer_;  // a doubly linked list of the slots, by age
    std::size_t oldest_ = npos, newest_ = npos;
    std::size_t limit_ = npos;
    std::unique_ptr<UndoLog> undo_log_;
    struct PendingWrite {
        std::size_t slot;
        const Batch* batch;
        std::size_t row;
    };
    BackgroundWork* readers_ = nullptr;
    std::vector<PendingWrite> pending_;
};

template <class T>
class DensePoints final : public Points {
  public:
    explicit DensePoints(std::size_t width) : width_(width) {}
    std::unique_ptr<Points> clone() const override { return std::make_unique<DensePoints>(*this); }
    std::unique_ptr<Points> widened(std::size_t width) const override;
    std::size_t width() const override { return width_; }
    void reserve(std::size_t n) override;
    std::size_t bytes() const override;
    std::size_t bytes_for(std::size_t n) const override {
        return ages_bytes_for(n) + padded(n) * ((width_ + 2) * sizeof(T) + 1);
    }
    void shrink_to_limit() override;
    std::unique_ptr<KernelRows> kernel_rows(const Kernel& kernel, const Batch& batch) const override;
    void stored_row(const Kernel& kernel, std::size_t slot, double* out) const override {
        stored_rows(kernel, {&slot, 1}, out, padded(size()));
    }
    void stored_rows(const Kernel& kernel, std::span<const std::size_t> slots, double* out, std::size_t stride,
                     std::size_t end = npos) const override;
    double stored_self(const Kernel& kernel, std::size_t slot) const override;
    void copy_out(std::size_t slot, T* to) const;
    std::vector<std::uint8_t> came_sparse() const override {
        return {sparse_.begin(), sparse_.begin() + static_cast<std::ptrdiff_t>(size())};
    }
    void set_came_sparse(std::span<const std::uint8_t> flags) override {
        std::copy(flags.begin(), flags.end(), sparse_.begin());
    }

  protected:
    void put_data(std::size_t slot, const Batch& batch, std::size_t row) override;
    void move_data(std::size_t from, std::size_t to) override;
    void drop_last(std::size_t slot) override;
    void rescale_data(std::size_t slot, std::span<const double> factors) override;
    void change_data(std::size_t slot, const RowChange& change) override;
    std::shared_ptr<void> copy_data(std::size_t slot) const override;
    void restore_data(std::size_t slot, const std::shared_ptr<void>& data) override;

  private:
    template <class>
    friend class DenseKernelRows;
    struct Copy {
        std::vector<T> row;
        std::uint8_t sparse;
    };
    void write(std::size_t slot, const T* row);
    void resize_slots(std::size_t slots);  // allocates exactly this many slots, in whole blocks, zero-filled
    T* lane(std::size_t slot) { return blocks_.data() + slot / kLanes<T> * width_ * kLanes<T> + slot % kLanes<T>; }
    const T* lane(std::size_t slot) const { return const_cast<DensePoints*>(this)->lane(slot); }

    std::size_t width_;
    Lines<T> blocks_;  // block b, feature j, lane l at (b * width + j) * lanes + l; unused lanes are 0
    Lines<T> norm2_, norm1_;  // by slot; 0 if unused
    std::vector<std::uint8_t> sparse_;  // by slot: whether it arrived as a sparse row
};

// Owned points that are cloned when their owner is copied.
struct OwnedPoints : std::unique_ptr<Points> {
    using std::unique_ptr<Points>::unique_ptr;
    OwnedPoints(std::unique_ptr<Points> points) : std::unique_ptr<Points>(std::move(points)) {}
    OwnedPoints(OwnedPoints&&) = default;
    OwnedPoints& operator=(OwnedPoints&&) = default;
    OwnedPoints(const OwnedPoints& other) : std::unique_ptr<Points>(other ? other->clone() : nullptr) {}
    OwnedPoints& operator=(const OwnedPoints& other) { return *this = OwnedPoints(other); }
};

// The store for a width: blocks of lanes, or an index of non-zeros for very wide sparse data.
std::unique_ptr<Points> make_points(std::size_t width, bool sparse, bool single);

}  // namespace gristmill
