#include "core/kernels/sparse_points.hpp"

#include <algorithm>
#include <cmath>

#include "core/kernels/gradient.hpp"

namespace gristmill {

namespace {

// Summed like a dot product in add_product(), so that a point is at distance exactly 0 from itself.
template <class T>
T sum_of_squares(const T* values, std::size_t n) {
    T sum = 0;
    for (std::size_t k = 0; k < n; ++k) sum += values[k] * values[k];
    return sum;
}

}  // namespace

template <class T>
std::size_t SparsePoints<T>::bytes() const {
    std::size_t total = Points::bytes() + (norm2_.capacity() + norm1_.capacity()) * sizeof(T);
    for (const Row& row : rows_) total += sizeof(Row) + row.columns.size() * (sizeof(std::int32_t) + sizeof(T));
    for (const auto& [feature, entries] : index_)
        total += sizeof(feature) + 4 * sizeof(void*) + entries.size() * sizeof(Entry);
    return total;
}

template <class T>
void SparsePoints<T>::unindex(std::size_t slot) {
    for (const std::int32_t feature : rows_[slot].columns) {
        const auto found = index_.find(feature);
        auto& entries = found->second;
        const auto at = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.slot == slot; });
        *at = entries.back();
        entries.pop_back();
        if (entries.empty()) index_.erase(found);
    }
}

// Makes the memory that `write` needs. On an exception nothing has changed.
template <class T>
void SparsePoints<T>::make_room(std::size_t slot, const Row& row) {
    auto grow = [](auto& list, std::size_t size) {
        if (size > list.capacity()) list.reserve(std::max(size, 2 * list.capacity()));
    };
    grow(rows_, slot + 1);
    grow(norm2_, slot + 1);
    grow(norm1_, slot + 1);
    try {
        for (const std::int32_t feature : row.columns) {
            auto& entries = index_[feature];
            grow(entries, entries.size() + 1);
        }
    } catch (...) {
        for (const std::int32_t feature : row.columns)
            if (const auto found = index_.find(feature); found != index_.end() && found->second.empty())
                index_.erase(found);
        throw;
    }
}

template <class T>
void SparsePoints<T>::write(std::size_t slot, Row row) {
    make_room(slot, row);
    for (std::size_t k = 0; k < row.columns.size(); ++k)
        index_.find(row.columns[k])->second.push_back({static_cast<std::uint32_t>(slot), row.values[k]});
    if (slot >= rows_.size()) {
        rows_.resize(slot + 1);
        norm2_.resize(slot + 1);
        norm1_.resize(slot + 1);
    } else {
        unindex(slot);  // of two entries of the slot, the older one
    }
    norm2_[slot] = sum_of_squares(row.values.data(), row.values.size());
    norm1_[slot] = norm1_of(row.values.data(), row.values.size());
    rows_[slot] = std::move(row);
}

template <class T>
void SparsePoints<T>::put_data(std::size_t slot, const Batch& batch, std::size_t i) {
    const auto& rows = std::get<SparseRows<T>>(batch);
    Row row;
    for (std::size_t k = 0; k < rows.nonzeros(i); ++k)
        if (rows.values(i)[k] != T(0)) {  // skip explicit zeros
            row.columns.push_back(rows.columns(i)[k]);
            row.values.push_back(rows.values(i)[k]);
        }
    write(slot, std::move(row));
}

template <class T>
void SparsePoints<T>::move_data(std::size_t from, std::size_t to) {
    write(to, rows_[from]);
}

template <class T>
void SparsePoints<T>::drop_last(std::size_t slot) {
    unindex(slot);
    rows_.resize(slot);
    norm2_.resize(slot);
    norm1_.resize(slot);
}

template <class T>
std::shared_ptr<void> SparsePoints<T>::copy_data(std::size_t slot) const {
    return std::make_shared<Row>(rows_[slot]);
}

template <class T>
void SparsePoints<T>::restore_data(std::size_t slot, const std::shared_ptr<void>& data) {
    write(slot, *static_cast<const Row*>(data.get()));
}

// ---- the look-ahead over sparse points ----------------------------------------------------------------------------

template <class T>
class SparseKernelRows final : public KernelRows {
  public:
    SparseKernelRows(const SparsePoints<T>& points, const Kernel& kernel, const Batch& batch)
        : points_(points), kernel_(kernel), batch_(std::get<SparseRows<T>>(batch)) {}

    void load(std::size_t first, std::size_t count) override {
        first_ = first;
        count_ = count;
        norm2_.assign(padded(count), T(0));
        norm1_.assign(padded(count), T(0));
        for (std::size_t r = 0; r < count; ++r) {
            const T* values = batch_.values(first + r);
            norm2_[r] = sum_of_squares(values, batch_.nonzeros(first + r));
            norm1_[r] = norm1_of(values, batch_.nonzeros(first + r));
            if (kernel_.needs_dot()) refuse_too_long(first + r, norm2_[r]);
        }
        point_norm2_.assign(padded(points_.size()), T(0));
        std::copy(points_.norm2_.begin(), points_.norm2_.end(), point_norm2_.begin());
    }

    void rows(double* out, std::size_t stride) override {
        const std::size_t slots = padded(points_.size());
        for (std::size_t r = 0; r < count_; ++r) {
            add_stored(r, slots);
            finish(norm2_[r], point_norm2_.data(), slots, out + r * stride);
        }
    }

    void among(std::size_t i, double* out) override {
        const std::size_t slots = padded(count_);
        start(slots);
        // wider rows are not scattered: memory stays proportional to the non-zeros
        constexpr std::size_t kWidest = 1 << 16;
        if (points_.width() <= kWidest) add_scattered(first_ + i);
        else add_merged(first_ + i);
        for (std::size_t r = 0; r < count_; ++r) l1_[r] += norm1_[i] + norm1_[r];
        finish(norm2_[i], norm2_.data(), slots, out);
    }

    double self(std::size_t i) override { return kernel_.self(norm2_[i]); }

    // Time is proportional to the non-zeros of all points; only the output has the full width.
    void gradients(std::span<const Lines<double>> coefs, double* out) override {
        const std::size_t slots = padded(points_.size()), width = points_.width();
        for (std::size_t r = 0; r < count_; ++r, out += coefs.size() * width) {
            PointWeights<T> weights(kernel_, coefs, 1, slots, slots);
            add_stored(r, slots);
            for (T& x : l1_) x = std::max(x, T(0));
            scratch_.resize(kernel_.slope_rows() * slots);
            if (slots > 0) {
                kernel_.slopes(Pairs<T>{dot_.data(), l1_.data(), norm2_[r], point_norm2_.data(), slots},
                               scratch_.data());
                weights.take(0, 0, slots, scratch_.data());
            }
            std::vector<T> x(width);
            for (std::size_t k = 0; k < batch_.nonzeros(first_ + r); ++k)
                x[batch_.columns(first_ + r)[k]] = batch_.values(first_ + r)[k];
            for (std::size_t o = 0; o < coefs.size(); ++o) gather(weights, o, x, out + o * width);
        }
    }

  private:
    // Where a point is 0 the sign is that of x. So the sum starts with all points at 0 and then corrects the non-zeros.
    void gather(const PointWeights<T>& weights, std::size_t output, const std::vector<T>& x, double* out) const {
        const auto sign = [](T t) { return static_cast<double>((t > 0) - (t < 0)); };
        double all = 0;
        for (std::size_t s = 0; s < points_.size(); ++s) all += weights.l1(output)[s];
        for (std::size_t j = 0; j < x.size(); ++j) out[j] = weights.norm(output) * x[j] + all * sign(x[j]);
        for (std::size_t s = 0; s < points_.size(); ++s) {
            const auto& row = points_.rows_[s];
            for (std::size_t k = 0; k < row.columns.size(); ++k) {
                const auto j = static_cast<std::size_t>(row.columns[k]);
                out[j] += static_cast<double>(weights.dot(output)[s]) * row.values[k] +
                          weights.l1(output)[s] * (sign(x[j] - row.values[k]) - sign(x[j]));
            }
        }
    }

    // Dot products and L1 distances of loaded row r to all stored points.
    void add_stored(std::size_t r, std::size_t slots) {
        const std::size_t i = first_ + r;
        start(slots);
        for (std::size_t k = 0; k < batch_.nonzeros(i); ++k) {
            const auto found = points_.index_.find(batch_.columns(i)[k]);
            if (found == points_.index_.end()) continue;
            const T x = batch_.values(i)[k];
            for (const auto& entry : found->second) add_product(entry.slot, x, entry.value);
        }
        for (std::size_t s = 0; s < points_.size(); ++s) l1_[s] += norm1_[r] + points_.norm1_[s];
    }

    void start(std::size_t slots) {
        dot_.assign(slots, T(0));
        l1_.assign(slots, T(0));
    }

    // Adds one feature of a pair: |x - y| = (|x| + |y|) + (|x - y| - (|x| + |y|)), and the second bracket is 0 where
    // either is 0. Exchanging x and y gives the same bits.
    void add_product(std::size_t slot, T x, T y) {
        dot_[slot] += x * y;
        if (kernel_.needs_l1()) l1_[slot] += std::abs(x - y) - (std::abs(x) + std::abs(y));
    }

    void finish(T norm2, const T* norms, std::size_t slots, double* out) {
        if (slots == 0) return;
        for (T& x : l1_) x = std::max(x, T(0));
        scratch_.resize(kernel_.scratch_rows() * slots);
        kernel_.values(Pairs<T>{dot_.data(), l1_.data(), norm2, norms, slots}, scratch_.data(), out);
    }

    const SparsePoints<T>& points_;
    const Kernel& kernel_;
    const SparseRows<T>& batch_;
    std::size_t first_ = 0, count_ = 0;
    // The loaded rows against row `own`, which is scattered into a dense vector once.
    void add_scattered(std::size_t own) {
        scattered_.resize(points_.width());
        for (std::size_t k = 0; k < batch_.nonzeros(own); ++k)
            scattered_[batch_.columns(own)[k]] = batch_.values(own)[k];
        for (std::size_t r = 0; r < count_; ++r)
            for (std::size_t k = 0; k < batch_.nonzeros(first_ + r); ++k)
                add_product(r, scattered_[batch_.columns(first_ + r)[k]], batch_.values(first_ + r)[k]);
        for (std::size_t k = 0; k < batch_.nonzeros(own); ++k) scattered_[batch_.columns(own)[k]] = T(0);
    }
    // The same by merging the ascending columns of both rows; a column of only one row adds nothing.
    void add_merged(std::size_t own) {
        const auto* mine = batch_.columns(own);
        const std::size_t count = batch_.nonzeros(own);
        for (std::size_t r = 0; r < count_; ++r) {
            const auto* theirs = batch_.columns(first_ + r);
            for (std::size_t k = 0, m = 0; k < batch_.nonzeros(first_ + r) && m < count; ++k) {
                while (m < count && mine[m] < theirs[k]) ++m;
                if (m < count && mine[m] == theirs[k])
                    add_product(r, batch_.values(own)[m], batch_.values(first_ + r)[k]);
            }
        }
    }

    std::vector<T> scattered_;
    Lines<T> norm2_, norm1_, point_norm2_, dot_, l1_, scratch_;
};

template <class T>
std::unique_ptr<KernelRows> SparsePoints<T>::kernel_rows(const Kernel& kernel, const Batch& batch) const {
    return std::make_unique<SparseKernelRows<T>>(*this, kernel, batch);
}

template <class T>
void SparsePoints<T>::stored_row(const Kernel& kernel, std::size_t slot, double* out) const {
    const Row& row = rows_[slot];
    const std::int64_t start[] = {0, static_cast<std::int64_t>(row.columns.size())};
    const Batch batch = SparseRows<T>{start, row.columns.data(), row.values.data(), 1, width_};
    SparseKernelRows<T> kernel_rows(*this, kernel, batch);
    kernel_rows.load(0, 1);
    kernel_rows.rows(out, padded(size()));
}

template class SparsePoints<double>;
template class SparsePoints<float>;

}  // namespace gristmill
