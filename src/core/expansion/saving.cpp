// Transactions and saved state of an expansion.
#include "core/expansion/expansion.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

namespace gristmill {

void Expansion::begin(std::size_t, bool) {
    saved_ = State{coef_, lag_, sum_, label_, inner_, scale_, error_bound_, error_floor_, weight_, ticks_, partners_};
    points_->begin();
}

void Expansion::rollback() {
    points_->rollback();
    coef_ = std::move(saved_->coef);
    lag_ = std::move(saved_->lag);
    sum_ = std::move(saved_->sum);
    label_ = std::move(saved_->label);
    inner_ = std::move(saved_->inner);
    scale_ = saved_->scale;
    error_bound_ = saved_->error_bound;
    error_floor_ = saved_->error_floor;
    weight_ = saved_->weight;
    ticks_ = saved_->ticks;
    partners_ = std::move(saved_->partners);
    saved_.reset();
    try {
        reserve(size());
    } catch (const std::bad_alloc&) {  // `plan` makes the memory that an event needs
    }
}

void Expansion::keep() {
    points_->commit();
    saved_.reset();
}

void Expansion::visit(Archive& archive, std::uint64_t seen) {
    std::vector<std::int64_t> ids(points_->ids().begin(), points_->ids().end());
    archive.numbers("ids", ids);
    const std::size_t n = ids.size(), all = coef_.size(), averaged = average_ ? all : 0;
    if (archive.loads) {
        if (size() != 0 || !archive.points || batch_count(*archive.points) != n)
            archive.refuse("ids", "does not fit the points");
        check_ids(archive, ids, seen);
        reserve(n);
        for (std::size_t s = 0; s < n; ++s) points_->put(s, ids[s], *archive.points, s, false);
        points_->order_by_id();
    }
    archive.table("coef", coef_, all, n);
    archive.table("lag", lag_, averaged, n);
    archive.table("sum", sum_, averaged, n);
    for (std::size_t t = 0; t < label_.size(); ++t) {
        archive.known(t == 0 ? "labels" : ("labels" + std::to_string(t)).c_str(), label_[t], n);
        label_[t].resize(padded(label_[t].size()));
    }
    std::vector<std::uint8_t> sparse = points_->came_sparse();
    if (!archive.loads || archive.has("came_sparse")) archive.numbers("came_sparse", sparse, n);
    if (archive.loads) points_->set_came_sparse(sparse);
    // With `derive` (states combined from other models) norm and partners are computed from points and coefficients.
    const bool derive = archive.loads && archive.has("derive");
    if (!derive) archive.numbers("inner", inner_, inner_.size());
    archive.number("scale", scale_);
    constexpr double kMost = std::numeric_limits<double>::max();
    // A file holds finite numbers only; the largest one has the effect of an infinite bound.
    if (!(error_bound_ <= kMost)) error_bound_ = kMost;
    if (!(error_floor_ <= kMost)) error_floor_ = kMost;
    archive.number("doubt", error_bound_);
    archive.number("floor", error_floor_);
    archive.number("weight", weight_);
    archive.count("ticks", ticks_);
    if (partners_ && !derive) partners_->visit(archive, n);
    if (archive.loads && scale_ == 0) archive.refuse("scale", "is 0");
    if (!archive.loads) return;
    reserve(n);
    if (derive && track_norm_) {
        error_bound_ = std::numeric_limits<double>::max();
        repair_norm();
    }
    if (derive) refresh_partners();
    if (partners_) partners_->reserve(label_[0].size());
}

}  // namespace gristmill
