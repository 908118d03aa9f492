// Targets of a regression as the experts of a race learn them: about 0, about 1 wide, and clipped where they are wild.
//
// Centre, spread and the bounds of clipping come from a sample of the last few thousand targets. They are renewed when the number
// of targets doubles, and from the newest ones where most of them lie far away: the level has moved. A wild target is clipped
// until the sample says that such targets are usual. All of it depends on the targets and their order only.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/adapt/robust.hpp"
#include "core/base/archive.hpp"
#include "core/base/random.hpp"
#include "core/pipeline/target_scale.hpp"

namespace gristmill {

class RobustTarget {
  public:
    using Move = TargetScale::Move;
    static constexpr std::uint64_t kFirst = 8;  // targets before anything is measured

    bool is_known() const { return spread_ > 0; }
    bool has_begun() const { return count_ >= kFirst; }
    std::uint64_t count() const { return count_; }
    double centre() const { return centre_; }
    double spread() const { return spread_; }
    double clipped(double target) const { return std::clamp(target, centre_ - reach_, centre_ + reach_); }
    // As experts learn it: a target out of reach says nothing of its row.
    double tamed(double target) const { return std::abs(target - centre_) <= reach_ ? target : centre_; }
    double inside(double target) const { return (tamed(target) - centre_) / spread_; }
    // The median where the spread is not known, and nothing is learned.
    double outside(double score) const { return is_known() ? centre_ + spread_ * score : median(); }
    // The median of the sample; 0 before the first target.
    double median() const {
        if (sample_.empty()) return 0;
        std::vector<double> sorted(sample_);
        std::sort(sorted.begin(), sorted.end());
        return quantile_of_sorted(sorted, 0.5);
    }
    std::span<const double> sample() const { return sample_; }

    // How many of these targets can be learned in one call of `learn`, at the end of which the scale may move. At least one.
    std::size_t run(std::span<const double> targets) const {
        const std::size_t most = static_cast<std::size_t>(std::min<std::uint64_t>(targets.size(), next_ - count_));
        double far = far_;
        for (std::size_t at = 0; at < most; ++at) {
            far += (is_far(targets[at]) - far) * kForget;
            if (far > kMoved) return at + 1;
        }
        return most;
    }
    // Whether the scale may move after this target.
    bool may_move(double target) const {
        return count_ + 1 >= next_ || far_ + (is_far(target) - far_) * kForget > kMoved;
    }

    // requires: as many targets as `run` allows. How the scale moves after the last of them, if it was known and does.
    std::optional<Move> learn(std::span<const double> targets) {
        for (const double target : targets) take(target);
        if (far_ > kMoved) {
            sample_.assign(newest_.begin(),
                           newest_.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(count_, kNewest)));
            far_ = 0;
            if (count_ == next_) next_ *= 2;
            return measure();
        }
        if (count_ < next_) return std::nullopt;
        next_ *= 2;
        return measure();
    }

    // As if the targets of all had come one after the other.
    void unite(std::span<const RobustTarget* const> parts) {
        sample_.clear();
        for (const RobustTarget* part : parts) {
            count_ += part->count_;
            newest_ = part->newest_;
            for (std::size_t at = 0; at < part->sample_.size() && sample_.size() < kSample; at += parts.size())
                sample_.push_back(part->sample_[at]);
        }
        while (next_ <= count_) next_ *= 2;
        if (has_begun()) measure();
    }

    std::size_t bytes() const { return sizeof *this + kSample * sizeof(double); }

    void visit(Archive& archive) {
        archive.count("count", count_);
        archive.number("centre", centre_);
        archive.number("spread", spread_);
        double reach = std::min(reach_, std::numeric_limits<double>::max());
        archive.number("reach", reach);
        archive.number("far", far_);
        archive.numbers("sample", sample_);
        std::vector<double> newest(newest_.begin(), newest_.end());
        archive.numbers("newest", newest, kNewest);
        if (!archive.loads) return;
        if (!(spread_ >= 0) || !(reach >= 0) || !(far_ >= 0 && far_ <= 1)) archive.refuse("spread", "is out of range");
        if (sample_.size() > kSample || (count_ > 0) != !sample_.empty())
            archive.refuse("sample", "does not fit the others");
        reach_ = reach < std::numeric_limits<double>::max() ? reach : std::numeric_limits<double>::infinity();
        std::copy(newest.begin(), newest.end(), newest_.begin());
        for (next_ = kFirst; next_ <= count_;) next_ *= 2;
    }

  private:
    static constexpr std::size_t kSample = 128, kNewest = 32;
    static constexpr std::uint64_t kRecent = 4096;  // targets that the sample is drawn from
    static constexpr double kClip = 5;  // quartile deviations in the spread; spreads that are not far
    static constexpr double kOutermost = 1.0 / 32;  // share of the targets, where more than half are equal
    static constexpr double kReach = 8;  // times the largest usual distance: what is farther is clipped
    static constexpr double kForget = 1.0 / 32, kMoved = 0.5;

    double is_far(double target) const {
        return spread_ > 0 && std::abs(target - centre_) > kClip * spread_ ? 1.0 : 0.0;
    }

    void take(double target) {
        far_ += (is_far(target) - far_) * kForget;
        newest_[count_ % kNewest] = target;
        if (sample_.size() < kSample) {
            sample_.push_back(target);
        } else {
            Random random{count_, 0};
            const std::uint64_t slot = random.next() % std::min(count_ + 1, kRecent);
            if (slot < kSample) sample_[static_cast<std::size_t>(slot)] = target;
        }
        ++count_;
    }
    std::optional<Move> measure() {
        std::vector<double> sorted(sample_);
        std::sort(sorted.begin(), sorted.end());
        RobustMoments found = robust_moments(sorted, kClip, kOutermost);
        if (!(found.deviation > 0 && std::isfinite(found.deviation))) return std::nullopt;
        std::vector<double> away(sorted);
        for (double& x : away) x = std::abs(x - found.median);
        std::sort(away.begin(), away.end());
        const std::size_t usual = 3 + away.size() / 50;  // this many distances may be wild, less one
        const double reach =
            std::max(kClip * found.deviation, kReach * away[away.size() - std::min(usual, away.size())]);
        if (away.back() > reach) {  // wild targets widen nothing
            std::erase_if(sorted, [&](double x) { return std::abs(x - found.median) > reach; });
            const RobustMoments usual_ones = robust_moments(sorted, kClip, kOutermost);
            if (usual_ones.deviation > 0) found = usual_ones;
        }
        const double old_centre = centre_, old_spread = spread_;
        centre_ = found.median, spread_ = found.deviation, reach_ = reach;
        if (!(old_spread > 0)) return std::nullopt;
        return Move{old_spread / spread_, (old_centre - centre_) / spread_};
    }

    std::uint64_t count_ = 0, next_ = kFirst;
    double centre_ = 0, spread_ = 0;  // spread 0: not known yet
    double reach_ = std::numeric_limits<double>::infinity();
    double far_ = 0;  // running share of targets that lie far away
    std::vector<double> sample_;
    std::array<double, kNewest> newest_ = {};
};

}  // namespace gristmill
