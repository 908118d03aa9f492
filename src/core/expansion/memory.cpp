// Memory of an expansion, and shrinking to fewer points.
#include "core/expansion/expansion.hpp"

#include <algorithm>
#include <cmath>

namespace gristmill {

std::size_t Expansion::bytes() const {
    std::size_t total = sizeof *this + points_->bytes() + (partners_ ? partners_->bytes() : 0);
    for (const auto* lines : {&coef_, &lag_, &sum_, &label_})
        for (const auto& line : *lines) total += line.capacity() * sizeof(double);
    return total;
}

std::size_t Expansion::points_within(std::size_t bytes, std::size_t outputs) const {
    if (points_->bytes_for(1) == 0) return 0;
    const std::size_t lines =
        outputs * (hidden_ > 0 ? 2 : 1) * (average_ ? 3 : 1) + label_.size();  // coefficients and labels
    auto needs = [&](std::size_t n) {
        return sizeof *this + points_->bytes_for(n) + padded(n) * lines * sizeof(double) +
               (partners_ ? MergePartners::bytes_for(padded(n)) : 0);
    };
    std::size_t low = 0, high = bytes / sizeof(double) + 1;  // invariant: low fits, high does not
    while (high - low > 1) {
        const std::size_t middle = low + (high - low) / 2;
        (needs(middle) <= bytes ? low : high) = middle;
    }
    return low;
}

void Expansion::resize(std::size_t limit, const Budget& budget, Random& random) {
    Lines<double> removed, partner;
    while (size() > limit) {
        const Entry entry = leave(budget, *this, random);
        if (track_norm_) {
            removed.resize(padded(size()));
            partner.resize(padded(size()));
            points_->stored_row(kernel_, entry.slot, removed.data());
            if (entry.onto != Points::npos) points_->stored_row(kernel_, entry.onto, partner.data());
        }
        if (entry.onto != Points::npos) fold(entry.slot, entry.onto, entry.share, partner.data());
        remove(entry.slot, removed.data());
    }
    set_limit(limit);
    points_->shrink_to_limit();
    auto fit = [&](Lines<double>& line) {
        if (line.size() <= padded(limit)) return;
        Lines<double> fresh(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(padded(limit)));
        line.swap(fresh);
    };
    for (auto* lines : {&coef_, &lag_, &sum_, &label_})
        for (auto& line : *lines) fit(line);
    if (partners_) partners_->shrink(padded(limit));
}

}  // namespace gristmill
