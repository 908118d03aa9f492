// Stored inputs: slots, their place in the stream, their order by age; dense in blocks of lanes here, sparse in
// kernels/sparse_points.hpp. Slots are always 0..size-1: a removed point's slot is filled by the last one.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string>

#include "core/base/batch.hpp"
#include "core/kernels/kernels.hpp"
#include "core/base/threads.hpp"

namespace gristmill {

// Row i of those that are loaded has gone into a slot.
struct StoredRow {
    std::size_t i, slot;
};

// The next rows of a chunk against the stored points and against each other: what the look-ahead works with.
// Holds all scratch memory, so that the points themselves stay const while many threads predict.
class KernelRows {
  public:
    virtual ~KernelRows() = default;
    virtual void load(std::size_t first, std::size_t count) = 0;  // rows [first, first + count) of the batch
    // out[r * stride + slot] for the loaded rows and all slots, padded(size) entries a row
    virtual void rows(double* out, std::size_t stride) = 0;
    virtual void among(std::size_t i, double* out) = 0;  // loaded row i against all loaded rows
    virtual double self(std::size_t i) = 0;              // k(x, x) of loaded row i
    // The same as rows() in so many pieces, which several threads may work at; 1 where that is not worth it, or not to be had.
    // From then on, until other rows are loaded, each piece by itself, two at a time never in the same seat.
    virtual std::size_t cut(std::size_t) { return 1; }
    virtual void rows_of_piece(std::size_t, std::size_t, double*, std::size_t) {}
    // out[r * stride + slot] = k(loaded row r, row i of `others`) for each (i, slot). requires: the same kind of Ahead, which can cut.
    virtual void against(KernelRows&, std::span<const StoredRow>, double*, std::size_t) {}
    // d f_o / d x at the loaded rows, (row, output, feature) in order; coefs: one line an output, padded(size) numbers each,
    // the same ones whenever it is asked, and never more rows than the first time.
    virtual void gradients(std::span<const Lines<double>> coefs, double* out);
};

// Beyond this, ||x - y||^2 from norms and dot would be infinity less infinity.
template <class T>
void refuse_too_long(std::size_t row, T norm2) {
    if (!(norm2 <= std::numeric_limits<T>::max() / 4))
        throw RowError(row, "row " + std::to_string(row) + " is too large: its squared norm overflows" +
                                (sizeof(T) == sizeof(float) ? " float32; use float64 or scale the inputs" : ""));
}

// sum |x|, number after number: zeros in between do not change a bit of it.
template <class T>
T norm1_of(const T* numbers, std::size_t count) {
    T sum = 0;
    for (std::size_t j = 0; j < count; ++j) sum += std::abs(numbers[j]);
    return sum;
}

class Points {
  public:
    static constexpr std::size_t npos = static_cast<std::size_t>(-1);

    virtual ~Points() = default;
    // A copy outside of any transaction. requires: no transaction is open and nothing is lent.
    virtual std::unique_ptr<Points> clone() const;
    // The same points with zeros in more columns behind those that there are.
    virtual std::unique_ptr<Points> widened(std::size_t width) const;
    virtual std::size_t width() const = 0;  // features of a point; 0 for objects
    std::size_t size() const { return ids_.size(); }
    std::int64_t id(std::size_t slot) const { return ids_[slot]; }
    std::span<const std::int64_t> ids() const { return ids_; }
    std::size_t oldest() const { return oldest_; }
    std::size_t newer(std::size_t slot) const { return newer_[slot]; }

    // requires: slot <= size; slot == size appends, else the point there is replaced. ages are those of ids.
    // by_age: false while points are restored slot by slot, before order_by_id.
    void put(std::size_t slot, std::int64_t id, const Batch& batch, std::size_t row, bool by_age = true);
    // ensures: the last point has moved into `slot`, if there was one. Ages keep their order.
    void remove(std::size_t slot);
    void clear();
    virtual void reserve(std::size_t n);
    void set_limit(std::size_t limit) { limit_ = limit; }  // no more points than this will ever be stored
    // Room to ask for when n slots are needed: doubling, but never above the limit.
    std::size_t capacity_for(std::size_t n, std::size_t present) const;
    virtual std::size_t bytes() const;
    // What bytes() is when n points are all that will ever be stored; 0 where that depends on the points.
    virtual std::size_t bytes_for(std::size_t) const { return 0; }
    virtual void shrink_to_limit() {}  // gives back what the limit leaves unused

    virtual std::unique_ptr<KernelRows> kernel_rows(const Kernel& kernel, const Batch& batch) const = 0;
    virtual void stored_row(const Kernel& kernel, std::size_t slot, double* out) const = 0;  // against all slots
    // Several, against the slots before `end` at least.
    virtual void stored_rows(const Kernel& kernel, std::span<const std::size_t> slots, double* out, std::size_t stride,
                             std::size_t = npos) const {
        for (std::size_t r = 0; r < slots.size(); ++r) stored_row(kernel, slots[r], out + r * stride);
    }
    virtual double stored_self(const Kernel& kernel, std::size_t slot) const = 0;

    // Columns times these factors, one a feature, in place.
    void rescale(std::span<const double> factors);

    // Which points came as sparse rows into a dense store: their L1 distances are summed another way, and `stored_rows` goes
    // that way again. Saved with a hypothesis that rebuilds numbers from its points.
    virtual std::vector<std::uint8_t> came_sparse() const { return std::vector<std::uint8_t>(size()); }
    virtual void set_came_sparse(std::span<const std::uint8_t>) {}

    // Whether evaluating a kernel runs foreign code, which may throw.
    virtual bool may_fail() const { return false; }
    void order_by_id();  // ages from positions, after points were restored slot by slot

    // Others read the points until settle(): what is put in the meantime waits until then, and its batch must live so long. Whatever
    // else changes the points settles first; who would read them must.
    void lend(BackgroundWork& readers) { readers_ = &readers; }
    void settle();

    // A chunk is one transaction: after begin(), rollback() brings the points back as they were, commit() lets go.
    void begin();
    void rollback();
    void commit() { journal_.reset(); }

  protected:
    Points() = default;
    Points(const Points& other)
        : ids_(other.ids_), older_(other.older_), newer_(other.newer_), oldest_(other.oldest_), newest_(other.newest_),
          limit_(other.limit_) {}
    // The data behind a slot; `put_data` may be given slot == size() before the id is added.
    virtual void put_data(std::size_t slot, const Batch& batch, std::size_t row) = 0;
    virtual void move_data(std::size_t from, std::size_t to) = 0;
    virtual void drop_last(std::size_t slot) = 0;  // the slot after the new end
    virtual void rescale_data(std::size_t slot, std::span<const double> factors);
    // One stored point set aside, and put back: what the journal needs.
    virtual std::shared_ptr<void> copy_data(std::size_t slot) const = 0;
    virtual void restore_data(std::size_t slot, const std::shared_ptr<void>& data) = 0;

    static std::size_t ages_bytes_for(std::size_t n) { return n * (sizeof(std::int64_t) + 2 * sizeof(std::size_t)); }
    void shrink_ages();
    std::size_t limit() const { return limit_; }

  private:
    struct Journal {
        std::vector<std::int64_t> ids;
        std::vector<std::size_t> older, newer;
        std::size_t oldest, newest;
        std::vector<std::shared_ptr<void>> saved;  // by slot; empty where untouched
    };
    void before_write(std::size_t slot);
    void unlink(std::size_t slot);
    void link(std::size_t slot, bool by_age = true);  // where its id belongs: at the end, but for a later pass

    std::vector<std::int64_t> ids_;
    std::vector<std::size_t> older_, newer_;  // a list through the slots, by age
    std::size_t oldest_ = npos, newest_ = npos;
    std::size_t limit_ = npos;
    std::unique_ptr<Journal> journal_;
    struct Waiting {
        std::size_t slot;
        const Batch* batch;
        std::size_t row;
    };
    BackgroundWork* readers_ = nullptr;
    std::vector<Waiting> waiting_;
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
    std::vector<std::uint8_t> came_sparse() const override { return {sparse_.begin(), sparse_.begin() + static_cast<std::ptrdiff_t>(size())}; }
    void set_came_sparse(std::span<const std::uint8_t> flags) override { std::copy(flags.begin(), flags.end(), sparse_.begin()); }

  protected:
    void put_data(std::size_t slot, const Batch& batch, std::size_t row) override;
    void move_data(std::size_t from, std::size_t to) override;
    void drop_last(std::size_t slot) override;
    void rescale_data(std::size_t slot, std::span<const double> factors) override;
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
    void resize_slots(std::size_t slots);  // exactly so many, whole blocks, zero-filled
    T* lane(std::size_t slot) { return blocks_.data() + slot / kLanes<T> * width_ * kLanes<T> + slot % kLanes<T>; }
    const T* lane(std::size_t slot) const { return const_cast<DensePoints*>(this)->lane(slot); }

    std::size_t width_;
    Lines<T> blocks_;         // block b, feature j, lane l at (b * width + j) * lanes + l; unused lanes are 0
    Lines<T> norm2_, norm1_;  // by slot; unused are 0
    std::vector<std::uint8_t> sparse_;  // by slot: whether it came as a sparse row
};

// Points that are copied with their owner.
struct OwnedPoints : std::unique_ptr<Points> {
    using std::unique_ptr<Points>::unique_ptr;
    OwnedPoints(std::unique_ptr<Points> points) : std::unique_ptr<Points>(std::move(points)) {}
    OwnedPoints(OwnedPoints&&) = default;
    OwnedPoints& operator=(OwnedPoints&&) = default;
    OwnedPoints(const OwnedPoints& other) : std::unique_ptr<Points>(other ? other->clone() : nullptr) {}
    OwnedPoints& operator=(const OwnedPoints& other) { return *this = OwnedPoints(other); }
};

// The store that suits the width: blocks of lanes, or an index of non-zeros for very wide sparse data.
std::unique_ptr<Points> make_points(std::size_t width, bool sparse, bool single);

}  // namespace gristmill
