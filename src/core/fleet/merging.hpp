// Merge for members: the merge partners are stored with the member and loaded into a MergePartners
// (expansion/merge_partners.hpp) for each event, so that a member and a single learner merge the same points in the
// same order by the same code.
#pragma once

#include <span>
#include <vector>

#include "core/expansion/merge_partners.hpp"
#include "core/kernels/kernels.hpp"
#include "core/parts/budgets.hpp"
#include "core/simd/fleet_dispatch.hpp"

namespace gristmill {

template <class T>
class Merging {
  public:
    Merging(const Kernel& kernel, std::size_t width, std::size_t slots)
        : kernel_(&kernel), width_(width), stride_(padded(slots + 1)), points_(width * stride_), x_(width),
          dots_(stride_), l1s_(stride_), norms_(stride_), lines_(kernel.scratch_rows() * stride_) {}

    void reset(std::uint64_t rows) { partners_.begin(rows); }
    template <class M>
    void load(const M& member) {
        partners_.begin(member.partner_rows());
        for (std::size_t s = 0; s < member.size(); ++s) partners_.add(member.partner_state(s));
    }
    template <class M>
    void save(const M& member) const {
        member.partner_rows() = partners_.rows();
        for (std::size_t s = 0; s < member.size(); ++s) member.set_partner_state(s, partners_.partner_state(s));
    }

    template <class M>
    Entry cheapest_fold(const M& member, const Newcomer& newcomer) {
        squares_.assign(member.size(), 0.0);
        for (std::size_t o = 0; o < newcomer.coefs.size(); ++o)
            for (std::size_t s = 0; s < member.size(); ++s) squares_[s] += member.coef(o, s) * member.coef(o, s);
        const double all = member.scale() * newcomer.shrink, square = all * all;
        for (double& x : squares_) x *= square;
        double own = 0;
        for (const double c : newcomer.coefs) own += c * c;
        const auto fold =
            partners_.choose(View<M>{*this, member}, *kernel_, squares_, own, newcomer.row, newcomer.self);
        if (fold.slot == MergePartners::kNone) return {Entry::Kind::fold, 0, 1, fold.partner, fold.share};
        return {Entry::Kind::replace, fold.slot, 1, fold.partner, fold.share};
    }
    // A point with these kernel values was stored in `slot`.
    template <class M>
    void stored(const M& member, std::size_t slot, const double* row, double self) {
        partners_.stored(View<M>{*this, member}, slot, row, self);
    }

  private:
    template <class M>
    struct View {
        Merging& merging;
        const M& member;
        std::size_t size() const { return member.size(); }
        std::int64_t id(std::size_t slot) const { return member.id(slot); }
        void stored_row(const Kernel& kernel, std::size_t slot, double* out) const {
            merging.row(kernel, member, slot, out);
        }
    };

    template <class M>
    void row(const Kernel& kernel, const M& member, std::size_t slot, double* out) {
        const std::size_t slots = padded(member.size());
        for (std::size_t j = 0; j < width_; ++j) {
            for (std::size_t s = 0; s < member.size(); ++s) points_[j * stride_ + s] = member.point(s, j);
            x_[j] = member.point(slot, j);
        }
        const auto& vectors = isa_fleet<T>();
        vectors.record_norms(points_.data(), stride_, slots, width_, norms_.data());
        if (kernel.needs_dot()) vectors.record_dots(x_.data(), points_.data(), stride_, slots, width_, dots_.data());
        if (kernel.needs_l1()) vectors.record_l1s(x_.data(), points_.data(), stride_, slots, width_, l1s_.data());
        kernel.values(Pairs<T>{dots_.data(), l1s_.data(), gristmill::norm2(x_.data(), width_), norms_.data(), slots},
                      lines_.data(), out);
    }

    const Kernel* kernel_;
    std::size_t width_, stride_;
    Lines<T> points_, x_, dots_, l1s_, norms_, lines_;
    std::vector<double> squares_;
    MergePartners partners_;
};

}  // namespace gristmill
