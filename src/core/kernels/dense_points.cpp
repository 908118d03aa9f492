#include "core/kernels/points.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/threads.hpp"
#include "core/kernels/gradient.hpp"
#include "core/kernels/sparse_points.hpp"

namespace gristmill {

void KernelRows::gradients(std::span<const Lines<double>>, double*) {
    throw std::invalid_argument("a kernel written in Python has no gradient: only it knows how its values change");
}

// ---- slots and ages -----------------------------------------------------------------------------------------------

void Points::unlink(std::size_t slot) {
    const std::size_t older = older_[slot], newer = newer_[slot];
    (older == npos ? oldest_ : newer_[older]) = newer;
    (newer == npos ? newest_ : older_[newer]) = older;
}

void Points::link(std::size_t slot, bool by_age) {
    std::size_t older = newest_, newer = npos;
    while (by_age && older != npos && ids_[older] > ids_[slot]) {
        newer = older;
        older = older_[older];
    }
    older_[slot] = older;
    newer_[slot] = newer;
    (older == npos ? oldest_ : newer_[older]) = slot;
    (newer == npos ? newest_ : older_[newer]) = slot;
}

void Points::settle() {
    if (!readers_) return;
    readers_->finish();
    readers_ = nullptr;
    for (const PendingWrite& w : pending_) put_data(w.slot, *w.batch, w.row);
    pending_.clear();
}

void Points::put(std::size_t slot, std::int64_t id, const Batch& batch, std::size_t row, bool by_age) {
    auto put_data = [&] {
        if (readers_) pending_.push_back({slot, &batch, row});
        else this->put_data(slot, batch, row);
    };
    if (slot == size()) {
        reserve(slot + 1);
        put_data();
        ids_.push_back(id);
        older_.push_back(npos);
        newer_.push_back(npos);
    } else {
        before_write(slot);
        put_data();
        unlink(slot);
        ids_[slot] = id;
    }
    link(slot, by_age);
}

void Points::remove(std::size_t slot) {
    settle();
    const std::size_t last = size() - 1;
    before_write(slot);
    before_write(last);
    unlink(slot);
    if (slot != last) {
        move_data(last, slot);
        ids_[slot] = ids_[last];
        older_[slot] = older_[last];
        newer_[slot] = newer_[last];
        (older_[slot] == npos ? oldest_ : newer_[older_[slot]]) = slot;
        (newer_[slot] == npos ? newest_ : older_[newer_[slot]]) = slot;
    }
    ids_.pop_back();
    older_.pop_back();
    newer_.pop_back();
    drop_last(last);
}

void Points::rescale(std::span<const double> factors) {
    if (factors.size() != width()) throw std::invalid_argument("one factor a column");
    settle();
    for (std::size_t slot = 0; slot < size(); ++slot) {
        before_write(slot);
        rescale_data(slot, factors);
    }
}

void Points::change_rows(const RowChange& change) {
    settle();
    for (std::size_t slot = 0; slot < size(); ++slot) {
        before_write(slot);
        change_data(slot, change);
    }
}

void Points::change_data(std::size_t, const RowChange&) {
    throw std::invalid_argument("points that are kept sparse, or that are objects, cannot be changed by columns");
}

void Points::rescale_data(std::size_t, std::span<const double>) {
    throw std::invalid_argument("points that are kept sparse, or that are objects, cannot be rescaled by columns");
}

std::unique_ptr<Points> Points::clone() const {
    throw std::invalid_argument("points that are objects cannot be copied");
}

std::unique_ptr<Points> Points::widened(std::size_t) const {
    throw std::invalid_argument("points that are objects cannot get more columns");
}

void Points::clear() {
    while (size() > 0) remove(size() - 1);
}

std::size_t Points::capacity_for(std::size_t n, std::size_t present) const {
    return std::max(n, std::min(2 * present, limit_));
}

void Points::reserve(std::size_t n) {
    const std::size_t present = std::min({ids_.capacity(), older_.capacity(), newer_.capacity()});
    if (n <= present) return;
    const std::size_t slots = capacity_for(n, present);
    ids_.reserve(slots);
    older_.reserve(slots);
    newer_.reserve(slots);
}

void Points::shrink_ages() {
    if (ids_.capacity() <= limit_) return;
    auto fit = [&](auto& list) {
        std::decay_t<decltype(list)> fresh;
        fresh.reserve(std::max(limit_, list.size()));
        fresh.assign(list.begin(), list.end());
        list.swap(fresh);
    };
    fit(ids_);
    fit(older_);
    fit(newer_);
}

std::size_t Points::bytes() const {
    return ids_.capacity() * sizeof(std::int64_t) + (older_.capacity() + newer_.capacity()) * sizeof(std::size_t);
}

void Points::order_by_id() {
    std::vector<std::size_t> slots(size());
    std::iota(slots.begin(), slots.end(), std::size_t{0});
    std::sort(slots.begin(), slots.end(), [&](std::size_t a, std::size_t b) { return ids_[a] < ids_[b]; });
    oldest_ = newest_ = npos;
    for (const std::size_t slot : slots) link(slot);
}

void Points::begin() {
    undo_log_ = std::make_unique<UndoLog>(UndoLog{ids_, older_, newer_, oldest_, newest_, {}});
    undo_log_->saved.resize(ids_.size());
}

void Points::before_write(std::size_t slot) {
    if (undo_log_ && slot < undo_log_->saved.size() && !undo_log_->saved[slot])
        undo_log_->saved[slot] = copy_data(slot);
}

void Points::rollback() {
    settle();
    const auto log = std::move(undo_log_);
    while (size() > log->ids.size()) remove(size() - 1);
    reserve(log->ids.size());
    ids_ = log->ids;
    older_ = log->older;
    newer_ = log->newer;
    oldest_ = log->oldest;
    newest_ = log->newest;
    for (std::size_t slot = 0; slot < log->saved.size(); ++slot)
        if (log->saved[slot]) restore_data(slot, log->saved[slot]);
}

// ---- dense points in blocks of lanes ------------------------------------------------------------------------------

template <class T>
void DensePoints<T>::reserve(std::size_t n) {
    Points::reserve(n);
    if (n <= norm2_.size()) return;
    settle();
    resize_slots(padded(capacity_for(n, norm2_.size())));
}

template <class T>
std::unique_ptr<Points> DensePoints<T>::widened(std::size_t width) const {
    auto wide = std::make_unique<DensePoints>(width);
    static_cast<Points&>(*wide).set_limit(limit());
    wide->reserve(size());
    std::vector<T> row(width);
    const Batch batch = DenseRows<T>{row.data(), 1, width};
    for (std::size_t slot = 0; slot < size(); ++slot) {
        copy_out(slot, row.data());
        wide->put(slot, id(slot), batch, 0, false);
        wide->sparse_[slot] = sparse_[slot];
    }
    wide->order_by_id();
    return wide;
}

template <class T>
void DensePoints<T>::resize_slots(std::size_t slots) {
    auto fitted = [](const auto& line, std::size_t size) {
        std::decay_t<decltype(line)> fresh(size);
        std::copy_n(line.begin(), std::min(line.size(), size), fresh.begin());
        return fresh;
    };
    // All lines have one length, also after an allocation that failed.
    auto blocks = fitted(blocks_, slots * width_);
    auto norm2 = fitted(norm2_, slots), norm1 = fitted(norm1_, slots);
    auto sparse = fitted(sparse_, slots);
    blocks_.swap(blocks);
    norm2_.swap(norm2);
    norm1_.swap(norm1);
    sparse_.swap(sparse);
}

template <class T>
void DensePoints<T>::shrink_to_limit() {
    shrink_ages();
    if (norm2_.size() > padded(limit())) resize_slots(padded(std::max(limit(), size())));
}

template <class T>
std::size_t DensePoints<T>::bytes() const {
    return Points::bytes() + (blocks_.capacity() + norm2_.capacity() + norm1_.capacity()) * sizeof(T) +
           sparse_.capacity();
}

template <class T>
void DensePoints<T>::write(std::size_t slot, const T* row) {
    T* to = lane(slot);
    for (std::size_t j = 0; j < width_; ++j) to[j * kLanes<T>] = row[j];
    norm2_[slot] = gristmill::norm2(row, width_);
    norm1_[slot] = norm1_of(row, width_);
}

template <class T>
void DensePoints<T>::put_data(std::size_t slot, const Batch& batch, std::size_t i) {
    const auto* dense = std::get_if<DenseRows<T>>(&batch);
    sparse_[slot] = dense ? 0 : 1;
    if (dense) return write(slot, dense->row(i));
    const auto& sparse = std::get<SparseRows<T>>(batch);
    std::vector<T> row(width_, T(0));
    for (std::size_t k = 0; k < sparse.nonzeros(i); ++k) row[sparse.columns(i)[k]] = sparse.values(i)[k];
    write(slot, row.data());
}

template <class T>
void DensePoints<T>::rescale_data(std::size_t slot, std::span<const double> factors) {
    std::vector<T> row(width_);
    copy_out(slot, row.data());
    for (std::size_t j = 0; j < width_; ++j) row[j] = static_cast<T>(row[j] * factors[j]);
    write(slot, row.data());
}

template <class T>
void DensePoints<T>::change_data(std::size_t slot, const RowChange& change) {
    std::vector<T> row(width_);
    copy_out(slot, row.data());
    std::vector<double> numbers(row.begin(), row.end());
    change(numbers.data());
    std::transform(numbers.begin(), numbers.end(), row.begin(), [](double x) { return static_cast<T>(x); });
    write(slot, row.data());
}

template <class T>
void DensePoints<T>::copy_out(std::size_t slot, T* to) const {
    const T* from = lane(slot);
    for (std::size_t j = 0; j < width_; ++j) to[j] = from[j * kLanes<T>];
}

template <class T>
void DensePoints<T>::move_data(std::size_t from, std::size_t to) {
    const T* source = lane(from);
    T* target = lane(to);
    for (std::size_t j = 0; j < width_; ++j) target[j * kLanes<T>] = source[j * kLanes<T>];
    norm2_[to] = norm2_[from];
    norm1_[to] = norm1_[from];
    sparse_[to] = sparse_[from];
}

template <class T>
void DensePoints<T>::drop_last(std::size_t slot) {
    // An unused lane must give finite kernel values: zeros do, an old point may not.
    T* at = lane(slot);
    for (std::size_t j = 0; j < width_; ++j) at[j * kLanes<T>] = T(0);
    norm2_[slot] = norm1_[slot] = T(0);
}

template <class T>
std::shared_ptr<void> DensePoints<T>::copy_data(std::size_t slot) const {
    auto copy = std::make_shared<Copy>(Copy{std::vector<T>(width_), sparse_[slot]});
    copy_out(slot, copy->row.data());
    return copy;
}

template <class T>
void DensePoints<T>::restore_data(std::size_t slot, const std::shared_ptr<void>& data) {
    const auto* copy = static_cast<const Copy*>(data.get());
    write(slot, copy->row.data());
    sparse_[slot] = copy->sparse;
}

// ---- the look-ahead over dense points -----------------------------------------------------------------------------

template <class T>
class DenseKernelRows final : public KernelRows {
  public:
    DenseKernelRows(const DensePoints<T>& points, const Kernel& kernel, const Batch& batch)
        : points_(points), kernel_(kernel), dense_(std::get_if<DenseRows<T>>(&batch)),
          sparse_(std::get_if<SparseRows<T>>(&batch)) {}

    void load(std::size_t first, std::size_t count) override {
        first_ = first;
        count_ = count;
        packed_ = false;
        norm2_.resize(count);
        rows_.resize(count);
        for (std::size_t r = 0; r < count; ++r) {
            rows_[r] = dense_ ? dense_->row(first + r) : sparse_->values(first + r);
            if (sparse_) norm2_[r] = gristmill::norm2(rows_[r], sparse_->nonzeros(first + r));
        }
        if (dense_) isa<T>().norms2(rows_.data(), count, points_.width_, norm2_.data());
        if (kernel_.needs_dot())
            for (std::size_t r = 0; r < count; ++r) refuse_too_long(first + r, norm2_[r]);
    }

    void rows(double* out, std::size_t stride) override { rows_before(points_.size(), out, stride); }

    // Kernel values at the slots before `end`, padded likewise.
    void rows_before(std::size_t end, double* out, std::size_t stride) {
        const std::size_t pieces = cut_before(end, threads_allowed());
        if (pieces <= 1) return rows_of_piece(0, 0, out, stride);
        parallel(pieces, [&](std::size_t p) { rows_of_piece(p, worker_index(), out, stride); });
    }

    std::size_t cut(std::size_t threads) override { return cut_before(points_.size(), threads); }

    std::size_t cut_before(std::size_t end, std::size_t threads) {
        slots_ = padded(end);
        const std::size_t panels = (slots_ + kPanel - 1) / kPanel;
        const bool single = threads == 1 || count_ * slots_ * (points_.width_ / (dense_ ? 1 : 8) + 16) < kWorthThreads;
        // many small pieces shorten the wait for the last one
        pieces_ = single ? 1 : std::clamp<std::size_t>(panels, 1, 16 * threads);
        make_workspaces(threads);
        return pieces_;
    }

    void rows_of_piece(std::size_t piece, std::size_t worker, double* out, std::size_t stride) override {
        Workspace& workspace = workspaces_[worker];
        const std::size_t panels = (slots_ + kPanel - 1) / kPanel;
        const std::size_t from = panels * piece / pieces_ * kPanel, to = panels * (piece + 1) / pieces_ * kPanel;
        run(workspace, 0, count_, points_.blocks_.data(), from, std::min(to, slots_), points_.norm2_.data(),
            points_.norm1_.data(), [&](std::size_t r, std::size_t s, const Pairs<T>& pairs) {
                kernel_.values(pairs, workspace.scratch.data(), out + r * stride + s);
            });
    }

    void against(KernelRows& before, std::span<const StoredRow> stored, double* out, std::size_t stride) override {
        auto& others = static_cast<DenseKernelRows&>(before);
        if (!others.packed_) others.pack();
        constexpr std::size_t lanes = kLanes<T>;
        std::vector<std::uint8_t> wanted(padded(others.count_) / lanes + 1);
        for (const StoredRow& t : stored) wanted[t.i / lanes] = 1;
        const std::size_t all = padded(others.count_),
                          pieces = std::min<std::size_t>(count_ / 16 + 1, 2 * threads_allowed());
        make_workspaces(threads_allowed());
        // the threads are still awake
        const bool single = stored.size() * count_ * (points_.width_ / (dense_ ? 1 : 8) + 16) < kWorthThreads / 4;
        parallel(pieces, single ? 1 : threads_allowed(), [&](std::size_t p) {
            const std::size_t from = count_ * p / pieces, to = count_ * (p + 1) / pieces;
            Lines<double> values((to - from) * all);
            for (std::size_t b = 0, e; b < all / lanes; b = e + 1) {
                for (e = b; wanted[e]; ++e) {
                }
                if (e > b)
                    run(workspaces_[worker_index()], from, to, others.lanes_.data(), b * lanes, e * lanes,
                        others.lane_norm2_.data(), others.lane_norm1_.data(),
                        [&](std::size_t r, std::size_t s, const Pairs<T>& pairs) {
                            kernel_.values(pairs, workspaces_[worker_index()].scratch.data(),
                                           values.data() + r * all + s);
                        });
            }
            for (std::size_t r = from; r < to; ++r)
                for (const StoredRow& t : stored) out[r * stride + t.slot] = values[(r - from) * all + t.i];
        });
    }

    void among(std::size_t i, double* out) override {
        if (!packed_) pack();
        Workspace& workspace = workspaces_[0];
        workspace.scratch.resize(kernel_.scratch_rows() * kPanel);
        run(workspace, i, i + 1, lanes_.data(), 0, padded(count_), lane_norm2_.data(), lane_norm1_.data(),
            [&](std::size_t, std::size_t s, const Pairs<T>& pairs) {
                kernel_.values(pairs, workspace.scratch.data(), out + s);
            });
    }

    double self(std::size_t i) override { return kernel_.self(norm2_[i]); }

    void gradients(std::span<const Lines<double>> coefs, double* out) override {
        const std::size_t width = points_.width_;
        const T* blocks = points_.blocks_.data();
        // The first call has the largest number of rows.
        if (!weights_) weights_.emplace(kernel_, coefs, count_, padded(points_.size()), kPanel);
        PointWeights<T>& weights = *weights_;
        weights.start(count_, width);
        if (weights.by_points() && table_.empty()) table_ = lines_of(blocks, weights.slots() / kLanes<T>, width);
        Workspace& workspace = workspaces_[0];
        workspace.scratch.resize(kernel_.slope_rows() * kPanel);
        for (std::size_t first = 0; first < weights.slots(); first += kPanel) {
            const std::size_t size = std::min(kPanel, weights.slots() - first);
            run(workspace, 0, count_, blocks, first, first + size, points_.norm2_.data(), points_.norm1_.data(),
                [&](std::size_t r, std::size_t s, const Pairs<T>& pairs) {
                    kernel_.slopes(pairs, workspace.scratch.data());
                    weights.take(r, s, pairs.size, workspace.scratch.data());
                });
            if (weights.by_points()) weights.add_points(count_, first, size, table_.data());
        }
        std::vector<const T*> rows = rows_;
        std::vector<T> spread(dense_ ? 0 : count_ * width);
        for (std::size_t r = 0; sparse_ && r < count_; ++r) {
            T* to = spread.data() + r * width;
            for (std::size_t k = 0; k < sparse_->nonzeros(first_ + r); ++k)
                to[sparse_->columns(first_ + r)[k]] = rows_[r][k];
            rows[r] = to;
        }
        weights.gather(rows, blocks, width, out);
    }

  private:
    struct Workspace {  // scratch memory of one thread
        Lines<T> dots, l1s, scratch;
    };
    void make_workspaces(std::size_t count) {
        if (workspaces_.size() < count) workspaces_.resize(count);
        for (Workspace& workspace : workspaces_) {
            if (workspace.dots.size() < count_ * kPanel) workspace.dots.resize(count_ * kPanel);
            if (kernel_.needs_l1() && workspace.l1s.size() < count_ * kPanel) workspace.l1s.resize(count_ * kPanel);
            workspace.scratch.resize(kernel_.scratch_rows() * kPanel);
        }
    }

    // Packs the loaded rows into blocks of lanes like stored points, so that rows against rows run the same code and
    // give the same bits.
    void pack() {
        constexpr std::size_t lanes = kLanes<T>;
        const std::size_t width = points_.width_, slots = padded(count_);
        lanes_.assign(slots * width, T(0));
        lane_norm1_.assign(slots, T(0));
        lane_norm2_.assign(slots, T(0));
        for (std::size_t r = 0; r < count_; ++r) {
            T* to = lanes_.data() + r / lanes * width * lanes + r % lanes;
            const std::size_t numbers = dense_ ? width : sparse_->nonzeros(first_ + r);
            for (std::size_t k = 0; k < numbers; ++k)
                to[(dense_ ? k : static_cast<std::size_t>(sparse_->columns(first_ + r)[k])) * lanes] = rows_[r][k];
            lane_norm1_[r] = norm1_of(rows_[r], numbers);
            lane_norm2_[r] = norm2_[r];
        }
        packed_ = true;
    }

    // Rows [from, to) against lanes [begin, end). Panels keep the pair quantities of all rows in the L2 cache between
    // the sums and the kernel function: use(row, first slot, pairs).
    static constexpr std::size_t kPanel = 24 * kLanes<T>;
    template <class Use>
    void run(Workspace& workspace, std::size_t from, std::size_t to, const T* blocks, std::size_t begin,
             std::size_t end, const T* norm2, const T* norm1, Use use) const {
        constexpr std::size_t lanes = kLanes<T>, panel = kPanel;
        const std::size_t width = points_.width_, count = to - from;
        if (workspace.dots.size() < count * panel) workspace.dots.resize(count * panel);
        if (kernel_.needs_l1() && workspace.l1s.size() < count * panel) workspace.l1s.resize(count * panel);
        for (std::size_t s = begin; s < end; s += panel) {
            const std::size_t size = std::min(panel, end - s);
            const T* at = blocks + s * width;
            if (kernel_.needs_dot())
                dense_ ? dense_dots(workspace, from, count, at, size) : sparse_dots(workspace, from, count, at, size);
            if (kernel_.needs_l1())
                dense_ ? isa<T>().l1s(rows_.data() + from, count, at, size / lanes, width, workspace.l1s.data(), panel)
                       : sparse_l1s(workspace, from, count, at, size, norm1 + s);
            for (std::size_t r = 0; r < count; ++r) {
                use(r, s,
                    Pairs<T>{workspace.dots.data() + r * panel, workspace.l1s.data() + r * panel, norm2_[from + r],
                             norm2 + s, size});
            }
        }
    }

    void dense_dots(Workspace& workspace, std::size_t from, std::size_t count, const T* at, std::size_t size) const {
        isa<T>().dots(rows_.data() + from, count, at, size / kLanes<T>, points_.width_, workspace.dots.data(), kPanel);
    }

    void sparse_dots(Workspace& workspace, std::size_t from, std::size_t count, const T* at, std::size_t size) const {
        // A few blocks at a time stay in the L1 cache while all rows use them.
        const std::size_t width = points_.width_, lanes = kLanes<T>, n_blocks = size / lanes;
        const std::size_t group = std::max<std::size_t>(4, (256u << 10) / (width * kLineBytes) / 4 * 4);
        for (std::size_t b = 0; b < n_blocks; b += group)
            for (std::size_t r = 0; r < count; ++r) {
                const std::size_t i = first_ + from + r;
                isa<T>().sparse_dots(sparse_->columns(i), sparse_->values(i), sparse_->nonzeros(i),
                                     at + b * width * lanes, std::min(group, n_blocks - b), width,
                                     workspace.dots.data() + r * kPanel + b * lanes);
            }
    }

    void sparse_l1s(Workspace& workspace, std::size_t from, std::size_t count, const T* at, std::size_t size,
                    const T* norm1) const {
        for (std::size_t r = 0; r < count; ++r) {
            const std::size_t i = first_ + from + r;
            T* to = workspace.l1s.data() + r * kPanel;
            const T own = norm1_of(sparse_->values(i), sparse_->nonzeros(i));
            for (std::size_t s = 0; s < size; ++s) to[s] = own + norm1[s];
            isa<T>().sparse_l1s(sparse_->columns(i), sparse_->values(i), sparse_->nonzeros(i), at, size / kLanes<T>,
                                points_.width_, to);
        }
    }

    const DensePoints<T>& points_;
    const Kernel& kernel_;
    const DenseRows<T>* dense_;
    const SparseRows<T>* sparse_;
    std::size_t first_ = 0, count_ = 0;
    std::size_t slots_ = 0, pieces_ = 1;  // at the time of the cut
    bool packed_ = false;
    std::vector<const T*> rows_;
    std::vector<T> norm2_;
    Lines<T> lanes_, lane_norm1_, lane_norm2_;
    UnsetLines<T> table_;  // the points with contiguous features
    std::optional<PointWeights<T>> weights_;  // for gradients
    std::vector<Workspace> workspaces_ = std::vector<Workspace>(1);
};

template <class T>
std::unique_ptr<KernelRows> DensePoints<T>::kernel_rows(const Kernel& kernel, const Batch& batch) const {
    return std::make_unique<DenseKernelRows<T>>(*this, kernel, batch);
}

template <class T>
void DensePoints<T>::stored_rows(const Kernel& kernel, std::span<const std::size_t> slots, double* out,
                                 std::size_t stride, std::size_t end) const {
    const bool sums_differ =
        kernel.needs_l1() && std::any_of(slots.begin(), slots.end(), [&](auto s) { return sparse_[s]; });
    if (sums_differ && slots.size() > 1) {
        for (std::size_t r = 0; r < slots.size(); ++r)
            stored_rows(kernel, slots.subspan(r, 1), out + r * stride, stride, end);
        return;
    }
    std::vector<T> rows(slots.size() * width_);
    for (std::size_t r = 0; r < slots.size(); ++r) copy_out(slots[r], rows.data() + r * width_);
    Batch batch = DenseRows<T>{rows.data(), slots.size(), width_};
    std::vector<std::int32_t> columns;
    const std::int64_t starts[] = {0, std::count_if(rows.begin(), rows.end(), [](T x) { return x != 0; })};
    if (sums_differ) {
        for (std::size_t j = 0, k = 0; j < width_; ++j)
            if (rows[j] != 0) {
                columns.push_back(static_cast<std::int32_t>(j));
                rows[k++] = rows[j];
            }
        batch = SparseRows<T>{starts, columns.data(), rows.data(), 1, width_};
    }
    DenseKernelRows<T> kernel_rows(*this, kernel, batch);
    kernel_rows.load(0, slots.size());
    kernel_rows.rows_before(std::min(end, size()), out, stride);
}

template <class T>
double DensePoints<T>::stored_self(const Kernel& kernel, std::size_t slot) const {
    return kernel.self(norm2_[slot]);
}

template class DensePoints<double>;
template class DensePoints<float>;

std::unique_ptr<Points> make_points(std::size_t width, bool sparse, bool single) {
    // Up to this width a block of lanes serves sparse rows faster than an index, at little memory.
    constexpr std::size_t kWidest = 1024;
    if (sparse && width > kWidest) {
        if (single) return std::make_unique<SparsePoints<float>>(width);
        return std::make_unique<SparsePoints<double>>(width);
    }
    if (single) return std::make_unique<DensePoints<float>>(width);
    return std::make_unique<DensePoints<double>>(width);
}

}  // namespace gristmill
