#include "core/expansion/compress.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "core/base/threads.hpp"
#include "core/kernels/sparse_points.hpp"

namespace gristmill {

namespace {

constexpr std::size_t kChunk = 24 * kLanes<double>;  // points whose data fit into the L1 cache
constexpr std::size_t kMost = 64, kFewest = 16;      // pivots proposed in one round
constexpr std::size_t kPool = 1024;                  // points among which pivots are sought
// A squared distance from the span below this share of k(x,x) is rounding error: the point is in the span. Kernel
// values in single precision have larger errors, and large coefficients that cancel in theory would not cancel.
constexpr double kDependent = 1e-8, kDependentSingle = 1e-4;

struct Pivot {
    std::size_t slot;
    double loss;                // squared residual over the visible outputs when it was chosen
    Lines<double> row;          // row of the factor: its coordinates, and last its distance from the span before it
    std::vector<double> share;  // coordinate of each output on the new basis vector
    double distance() const { return row.back(); }
};

// State of all points or of the pool. Both go through the same operations, so the bits agree.
struct State {
    std::vector<Lines<double>> left;    // residual r_o at each point
    Lines<double> distance2, self;      // squared distance of k(x,.) from the span; k(x,x)
    double dependent = kDependent;

    // The squared residual of a point that can still be chosen, otherwise 0.
    double loss(std::size_t i, std::size_t visible) const {
        if (!(distance2[i] > dependent * self[i])) return 0;
        double total = 0;
        for (std::size_t o = 0; o < visible; ++o) total += left[o][i] * left[o][i];
        return total;
    }
    // Adds a basis vector on which the points from `first` on have the coordinates z.
    void take(const Pivot& pivot, const double* z, std::size_t first, std::size_t count) {
        for (std::size_t o = 0; o < left.size(); ++o)
            isa_score().axpy(-pivot.share[o], z, left[o].data() + first, count);
        for (std::size_t i = 0; i < count; ++i) distance2[first + i] -= z[i] * z[i];
    }
    void leave(std::size_t i) {
        distance2[i] = 0;
        for (auto& line : left) line[i] = 0;
    }
};

// Coordinates on the newest basis vectors from kernel values: `sums` are the products with the earlier coordinates. z:
// kernel values in, coordinates out; the earlier lines of the round are `stride` apart.
void orthogonalise(const Pivot& pivot, std::size_t known, std::size_t k, const double* sums, double* lines,
                   std::size_t stride, std::size_t count) {
    double* z = lines + k * stride;
    for (std::size_t i = 0; i < count; ++i) z[i] -= sums[i];
    for (std::size_t l = 0; l < k; ++l) isa_score().axpy(-pivot.row[known + l], lines + l * stride, z, count);
    isa_score().scale(1 / pivot.distance(), z, count);
}

// Kernel values among some of the points: row(i) gives the values of the i-th at all of them, padded.
class Among {
  public:
    Among(const Kernel& kernel, const Points& points, const std::vector<std::size_t>& slots)
        : kernel_(kernel), points_(points), slots_(slots) {
        // L1 distances of points that arrived sparse are summed in another order: only their own rows have the same
        // bits.
        if (!kernel.needs_l1()) gather<double>() || gather<float>();
        if (!kernel_rows_) row_.resize(padded(points.size()));
    }
    void row(std::size_t i, double* out) {
        if (kernel_rows_) return kernel_rows_->among(i, out);
        points_.stored_row(kernel_, slots_[i], row_.data());
        for (std::size_t s = 0; s < slots_.size(); ++s) out[s] = row_[slots_[s]];
        std::fill(out + slots_.size(), out + padded(slots_.size()), 0.0);
    }

  private:
    // Dense points are copied into one batch, so that a row costs no more than necessary.
    template <class T>
    bool gather() {
        const auto* dense = dynamic_cast<const DensePoints<T>*>(&points_);
        if (!dense) return false;
        auto rows = std::make_shared<std::vector<T>>(slots_.size() * dense->width());
        for (std::size_t r = 0; r < slots_.size(); ++r) dense->copy_out(slots_[r], rows->data() + r * dense->width());
        batch_ = DenseRows<T>{rows->data(), slots_.size(), dense->width()};
        rows_ = rows;
        kernel_rows_ = points_.kernel_rows(kernel_, batch_);
        kernel_rows_->load(0, slots_.size());
        return true;
    }

    const Kernel& kernel_;
    const Points& points_;
    const std::vector<std::size_t>& slots_;
    std::shared_ptr<void> rows_;  // owner of the batch's data
    Batch batch_;
    std::unique_ptr<KernelRows> kernel_rows_;
    Lines<double> row_;
};

class Greedy {
  public:
    Greedy(const Kernel& kernel, const Points& points, const std::vector<Lines<double>>& coefs, std::size_t visible,
           const std::function<void()>& poll)
        : kernel_(kernel), points_(points), coefs_(coefs), visible_(visible), poll_(poll),
          slots_(padded(points.size())) {
        for (std::size_t first = 0; first < slots_; first += kChunk) chunks_.emplace_back();
        const bool single =
            dynamic_cast<const DensePoints<float>*>(&points) || dynamic_cast<const SparsePoints<float>*>(&points);
        if (single) all_.dependent = kDependentSingle;
    }

    // Pivots are proposed from the pool of the largest residuals, then verified against all points: a pivot is accepted
    // only if no point had a larger residual. So the choice is that of the plain loop, and nearly all work is a matrix
    // product.
    Compression run(std::size_t size) {
        measure();
        std::size_t wanted = kFewest;
        while (chosen_.size() < size) {
            std::vector<Pivot> pivots = propose(std::min(wanted, size - chosen_.size()));
            if (pivots.empty()) break;
            const std::size_t accepted = verify(pivots);
            accept(pivots, accepted);
            wanted = std::clamp(2 * accepted, kFewest, kMost);
            poll_();
        }
        return result();
    }

  private:
    // Computes f at every point.
    void measure() {
        const std::size_t n = points_.size(), block = std::clamp<std::size_t>((8u << 20) / (8 * (slots_ + 1)), 16, 128);
        all_.left.assign(coefs_.size(), Lines<double>(slots_));
        all_.self.assign(slots_, 0.0);
        std::vector<std::size_t> slots(n);
        std::iota(slots.begin(), slots.end(), std::size_t{0});
        Lines<double> values(std::min(n, block) * slots_);
        for (std::size_t first = 0; first < n; first += block) {
            const std::size_t count = std::min(block, n - first);
            points_.stored_rows(kernel_, std::span(slots).subspan(first, count), values.data(), slots_);
            for (std::size_t r = 0; r < count; ++r) {
                all_.self[first + r] = points_.stored_self(kernel_, first + r);
                for (std::size_t o = 0; o < coefs_.size(); ++o)
                    all_.left[o][first + r] = isa_score().dot(coefs_[o].data(), values.data() + r * slots_, slots_);
            }
            poll_();
        }
        all_.distance2 = all_.self;
        norm2_ = inner();
    }

    // <f, residual>, which is the squared norm of the residual.
    double inner() const {
        double total = 0;
        for (std::size_t o = 0; o < visible_; ++o)
            total += isa_score().dot(coefs_[o].data(), all_.left[o].data(), slots_);
        return std::max(total, 0.0);
    }

    // The points with the largest residuals, by slot.
    std::vector<std::size_t> pool() const {
        std::vector<double> loss(points_.size());
        std::vector<std::size_t> found;
        for (std::size_t i = 0; i < loss.size(); ++i)
            if ((loss[i] = all_.loss(i, visible_)) > 0) found.push_back(i);
        if (found.size() > kPool) {
            std::nth_element(found.begin(), found.begin() + kPool, found.end(), [&](std::size_t a, std::size_t b) {
                return loss[a] != loss[b] ? loss[a] > loss[b] : a < b;
            });
            found.resize(kPool);
        }
        std::sort(found.begin(), found.end());
        return found;
    }

    // Coordinates of some points, in blocks of lanes.
    Lines<double> gathered(const std::vector<std::size_t>& slots) const {
        constexpr std::size_t lanes = kLanes<double>;
        const std::size_t known = chosen_.size();
        Lines<double> z(padded(slots.size()) * known);
        for (std::size_t i = 0; i < slots.size(); ++i) {
            const double* from =
                chunks_[slots[i] / kChunk].data() + slots[i] % kChunk / lanes * known * lanes + slots[i] % lanes;
            double* to = z.data() + i / lanes * known * lanes + i % lanes;
            for (std::size_t j = 0; j < known; ++j) to[j * lanes] = from[j * lanes];
        }
        return z;
    }

    std::vector<Pivot> propose(std::size_t most) const {
        const auto slots = pool();
        const std::size_t known = chosen_.size(), count = padded(slots.size()), lanes = kLanes<double>;
        const auto z = gathered(slots);
        Among among(kernel_, points_, slots);
        State state = of(slots);
        Lines<double> lines(most * count), sums(count);
        std::vector<Pivot> pivots;
        for (std::size_t k = 0; k < most; ++k) {
            std::size_t best = slots.size();
            double loss = 0;
            for (std::size_t i = 0; i < slots.size(); ++i)
                if (const double here = state.loss(i, visible_); here > loss) {
                    best = i;
                    loss = here;
                }
            if (best == slots.size()) break;
            Pivot pivot{slots[best], loss, Lines<double>(known + k + 1), {}};
            for (std::size_t j = 0; j < known; ++j) pivot.row[j] = z[(best / lanes * known + j) * lanes + best % lanes];
            for (std::size_t l = 0; l < k; ++l) pivot.row[known + l] = lines[l * count + best];
            pivot.row.back() = std::sqrt(state.distance2[best]);
            for (const auto& line : state.left) pivot.share.push_back(line[best] / pivot.distance());
            among.row(best, lines.data() + k * count);
            const double* row = pivot.row.data();
            isa<double>().dots(&row, 1, z.data(), count / lanes, known, sums.data(), count);
            orthogonalise(pivot, known, k, sums.data(), lines.data(), count, count);
            state.take(pivot, lines.data() + k * count, 0, count);
            state.leave(best);
            pivots.push_back(std::move(pivot));
        }
        return pivots;
    }

    State of(const std::vector<std::size_t>& slots) const {
        State state;
        state.dependent = all_.dependent;
        auto take = [&](const Lines<double>& from) {
            Lines<double> to(padded(slots.size()));
            for (std::size_t i = 0; i < slots.size(); ++i) to[i] = from[slots[i]];
            return to;
        };
        for (const auto& line : all_.left) state.left.push_back(take(line));
        state.distance2 = take(all_.distance2);
        state.self = take(all_.self);
        return state;
    }

    // Computes the coordinates of all points on the proposed basis vectors into `lines_`; returns how many pivots are
    // the greedy choice.
    std::size_t verify(const std::vector<Pivot>& pivots) {
        std::vector<std::size_t> slots;
        for (const Pivot& pivot : pivots) slots.push_back(pivot.slot);
        lines_.resize(pivots.size() * slots_);
        points_.stored_rows(kernel_, slots, lines_.data(), slots_);
        std::vector<std::size_t> accepted(chunks_.size());
        parallel(chunks_.size(), [&](std::size_t c) { accepted[c] = verify(pivots, c); });
        return *std::min_element(accepted.begin(), accepted.end());
    }

    std::size_t verify(const std::vector<Pivot>& pivots, std::size_t c) {
        const std::size_t known = chosen_.size(), first = c * kChunk, count = std::min(kChunk, slots_ - first);
        Lines<double> sums(pivots.size() * kChunk);
        std::vector<const double*> rows;
        for (const Pivot& pivot : pivots) rows.push_back(pivot.row.data());
        isa<double>().dots(rows.data(), rows.size(), chunks_[c].data(), count / kLanes<double>, known, sums.data(),
                           kChunk);
        State state;
        state.dependent = all_.dependent;
        for (std::size_t o = 0; o < visible_; ++o)
            state.left.emplace_back(all_.left[o].begin() + as_offset(first),
                                    all_.left[o].begin() + as_offset(first + count));
        state.distance2.assign(all_.distance2.begin() + as_offset(first),
                               all_.distance2.begin() + as_offset(first + count));
        state.self.assign(all_.self.begin() + as_offset(first), all_.self.begin() + as_offset(first + count));
        const std::size_t here = std::min(count, points_.size() - std::min(first, points_.size()));
        std::size_t accepted = pivots.size();
        for (std::size_t k = 0; k < pivots.size(); ++k) {
            const Pivot& pivot = pivots[k];
            if (k < accepted && is_exceeded(pivot, state, first, here)) accepted = k;
            orthogonalise(pivot, known, k, sums.data() + k * kChunk, lines_.data() + first, slots_, count);
            state.take(pivot, lines_.data() + k * slots_ + first, 0, count);
            if (pivot.slot >= first && pivot.slot < first + count) state.leave(pivot.slot - first);
        }
        return accepted;
    }

    // Whether one of these points has a larger residual than the pivot had, or an equal one and a lower slot.
    bool is_exceeded(const Pivot& pivot, const State& state, std::size_t first, std::size_t count) const {
        for (std::size_t i = 0; i < count; ++i)
            if (const double loss = state.loss(i, visible_);
                loss > pivot.loss || (loss == pivot.loss && first + i < pivot.slot))
                return true;
        return false;
    }

    void accept(std::vector<Pivot>& pivots, std::size_t accepted) {
        constexpr std::size_t lanes = kLanes<double>;
        const std::size_t known = chosen_.size(), wider = known + accepted;
        parallel(chunks_.size(), [&](std::size_t c) {
            const std::size_t first = c * kChunk, blocks = std::min(kChunk, slots_ - first) / lanes;
            Lines<double> z(blocks * wider * lanes);
            for (std::size_t b = 0; b < blocks; ++b) {
                double* to = z.data() + b * wider * lanes;
                std::copy_n(chunks_[c].data() + b * known * lanes, known * lanes, to);
                for (std::size_t k = 0; k < accepted; ++k)
                    std::copy_n(lines_.data() + k * slots_ + first + b * lanes, lanes, to + (known + k) * lanes);
            }
            chunks_[c].swap(z);
        });
        for (std::size_t k = 0; k < accepted; ++k) {
            all_.take(pivots[k], lines_.data() + k * slots_, 0, slots_);
            all_.leave(pivots[k].slot);
            chosen_.push_back(std::move(pivots[k]));
        }
    }

    // Solves L^T c = g by back substitution.
    Compression result() const {
        Compression found;
        for (const Pivot& pivot : chosen_) found.slots.push_back(pivot.slot);
        for (std::size_t o = 0; o < coefs_.size(); ++o) {
            std::vector<double> coef;
            for (const Pivot& pivot : chosen_) coef.push_back(pivot.share[o]);
            found.coordinates.push_back(coef);
            for (std::size_t k = chosen_.size(); k-- > 0;) {
                coef[k] /= chosen_[k].distance();
                for (std::size_t j = 0; j < k; ++j) coef[j] -= chosen_[k].row[j] * coef[k];
            }
            found.coefs.push_back(std::move(coef));
        }
        found.norm2 = norm2_;
        found.left2 = inner();
        return found;
    }

    static std::ptrdiff_t as_offset(std::size_t n) { return static_cast<std::ptrdiff_t>(n); }

    const Kernel& kernel_;
    const Points& points_;
    const std::vector<Lines<double>>& coefs_;
    std::size_t visible_;
    const std::function<void()>& poll_;
    std::size_t slots_;
    State all_;
    std::vector<Lines<double>> chunks_;  // coordinates of all points: block, coordinate, lane
    Lines<double> lines_;  // coordinates of the round, one line per basis vector
    std::vector<Pivot> chosen_;
    double norm2_ = 0;
};

}  // namespace

Compression compress(const Kernel& kernel, const Points& points, const std::vector<Lines<double>>& coefs,
                     std::size_t visible, std::size_t size, const std::function<void()>& poll) {
    return Greedy(kernel, points, coefs, visible, poll).run(size);
}

}  // namespace gristmill
