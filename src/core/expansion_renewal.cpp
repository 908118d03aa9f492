// An expansion whose stored points are learned anew.
#include "core/expansion.hpp"

#include <algorithm>
#include <cmath>

namespace gristmill {

namespace {

// Rows that are stored already: all that is left to ask of them is k(x, x).
class StoredRows final : public Ahead {
  public:
    explicit StoredRows(std::vector<double> selves) : selves_(std::move(selves)) {}
    void load(std::size_t, std::size_t) override {}
    void rows(double*, std::size_t) override {}
    void among(std::size_t, double*) override {}
    double self(std::size_t i) override { return selves_[i]; }

  private:
    std::vector<double> selves_;
};

}  // namespace

Sight Expansion::look_at_stored() const {
    Sight sight(nullptr);
    sight.replays = true;
    sight.count = size();
    sight.stride = padded(size());
    sight.values.resize(sight.count * sight.stride);
    sight.start = 0;
    for (std::size_t slot = oldest(); slot != Points::npos; slot = newer(slot))
        sight.slots.emplace(static_cast<std::int64_t>(sight.slots.size()), slot);
    look_anew(sight);
    return sight;
}

void Expansion::look_anew(Sight& stored) const {
    constexpr std::size_t block = 128;  // what is worked out of so many rows stays in the cache
    std::vector<std::size_t> slots(stored.count);
    std::vector<double> selves(stored.count);
    for (std::size_t i = 0; i < stored.count; ++i) {
        slots[i] = stored.slots.at(static_cast<std::int64_t>(i));
        selves[i] = points_->stored_self(kernel_, slots[i]);
    }
    for (std::size_t i = 0; i < stored.count; i += block)
        points_->stored_rows(kernel_, std::span(slots).subspan(i, std::min(block, stored.count - i)), stored.row(i), stored.stride);
    stored.ahead = std::make_unique<StoredRows>(std::move(selves));
}

void Expansion::pair_again(Sight& stored) {
    if (!partners_) return;
    std::vector<double> selves(size());
    for (const auto& [i, slot] : stored.slots) selves[slot] = stored.self(static_cast<std::size_t>(i));
    partners_->meet_again(*points_, selves);
    for (std::size_t i = 0; i < stored.count; ++i)
        partners_->meet_again(*points_, stored.slots.at(static_cast<std::int64_t>(i)), stored.row(i));
}

void Expansion::restart() {
    for (auto& coef : coef_) std::fill(coef.begin(), coef.end(), 0.0);
    std::fill(inner_.begin(), inner_.end(), 0.0);
    scale_ = 1;
    doubt_ = floor_ = 0;
}

std::vector<std::vector<double>> Expansion::coefs() const {
    std::vector<std::vector<double>> found(coef_.size());
    for (std::size_t o = 0; o < coef_.size(); ++o)
        for (std::size_t slot = 0; slot < size(); ++slot) found[o].push_back(coef(slot, o));
    return found;
}

void Expansion::set_coefs(const std::vector<std::vector<double>>& coefs) {
    restart();
    for (std::size_t o = 0; o < coefs.size(); ++o) std::copy(coefs[o].begin(), coefs[o].end(), coef_[o].begin());
    if (track_norm_) inner_ = exact_inner();
}

void Expansion::keep_scores(Sight& stored, std::span<const double> scores) {
    constexpr int kSweeps = 2;
    constexpr double kRidge = 0.3;
    for (int sweep = 0; sweep < kSweeps; ++sweep)
        for (std::size_t i = 0; i < stored.count; ++i) {
            const double self = stored.self(i);
            if (!(self > 0)) continue;
            const std::size_t slot = stored.slots[static_cast<std::int64_t>(i)];
            for (std::size_t o = 0; o < outputs(); ++o) {
                const double left = scores[i * outputs() + o] - score(o, stored.row(i)) - kRidge * self * coef(slot, o);
                change(slot, o, left / (self * (1 + kRidge)) / scale_);
            }
        }
}

}  // namespace gristmill
