// Very wide sparse points: their rows, and an inverted index from each feature to the points that have it. A row of dot
// products costs the matches of its non-zeros with the index; memory is proportional to the stored non-zeros.
#pragma once

#include <unordered_map>

#include "core/kernels/points.hpp"

namespace gristmill {

template <class T>
class SparsePoints final : public Points {
  public:
    struct Row {
        std::vector<std::int32_t> columns;  // ascending
        std::vector<T> values;
    };

    explicit SparsePoints(std::size_t width) : width_(width) {}
    std::unique_ptr<Points> clone() const override { return std::make_unique<SparsePoints>(*this); }
    std::unique_ptr<Points> widened(std::size_t width) const override {
        auto wide = std::make_unique<SparsePoints>(*this);
        wide->width_ = width;
        return wide;
    }
    std::size_t width() const override { return width_; }
    const Row& row(std::size_t slot) const { return rows_[slot]; }
    std::size_t bytes() const override;
    std::unique_ptr<KernelRows> kernel_rows(const Kernel& kernel, const Batch& batch) const override;
    void stored_row(const Kernel& kernel, std::size_t slot, double* out) const override;
    double stored_self(const Kernel& kernel, std::size_t slot) const override { return kernel.self(norm2_[slot]); }

  protected:
    void put_data(std::size_t slot, const Batch& batch, std::size_t row) override;
    void move_data(std::size_t from, std::size_t to) override;
    void drop_last(std::size_t slot) override;
    std::shared_ptr<void> copy_data(std::size_t slot) const override;
    void restore_data(std::size_t slot, const std::shared_ptr<void>& data) override;

  private:
    template <class>
    friend class SparseKernelRows;
    struct Entry {
        std::uint32_t slot;
        T value;
    };
    void write(std::size_t slot, Row row);
    void unindex(std::size_t slot);
    void make_room(std::size_t slot, const Row& row);

    std::size_t width_;
    std::vector<Row> rows_;
    std::vector<T> norm2_, norm1_;
    std::unordered_map<std::int32_t, std::vector<Entry>> index_;  // feature -> points that have it
};

}  // namespace gristmill
