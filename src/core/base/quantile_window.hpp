// A window of the last numbers of a stream (1,000 by default) with quantiles. Copies share memory until one of them
// changes (copy on write): a rule is copied at every event, and a transaction keeps the rule from before the chunk.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/elementary.hpp"

namespace gristmill {

template <std::size_t Most>
class BasicQuantileWindow {
  public:
    static constexpr std::size_t kMost = Most;

    std::size_t size() const { return storage_ ? storage_->values.size() : 0; }
    // Upper bound of the memory, however full the window is.
    static constexpr std::size_t bytes() { return sizeof(Storage) + kMost * (sizeof(double) + sizeof(std::uint16_t)); }

    // The quantile of `share`: the (n + 1) share-th smallest number, interpolated linearly (Weibull's plotting
    // position). requires: size() > 0.
    double quantile(double share) const {
        const auto n = static_cast<double>(size());
        const double place = std::clamp((n + 1) * share, 1.0, n);
        const auto below = static_cast<std::size_t>(place);
        const double low = ranked(below - 1);
        if (below == size()) return low;
        return low + (place - static_cast<double>(below)) * (ranked(below) - low);
    }

    // The share of the window below `value`; beyond the extremes an exponential tail with scale `unit`. requires:
    // size() > 0, unit > 0.
    double share(double value, double unit) const {
        const std::size_t n = size();
        const double each = 1 / static_cast<double>(n + 1);
        if (value < ranked(0)) return each * elementary::exp(std::max((value - ranked(0)) / unit, -kTail));
        if (value >= ranked(n - 1)) return 1 - each * elementary::exp(std::max((ranked(n - 1) - value) / unit, -kTail));
        const auto below = static_cast<std::size_t>(rank(value, false));  // how many are <= value
        const double low = ranked(below - 1), high = ranked(below);
        return each * (static_cast<double>(below) + (value - low) / (high - low));
    }

    // How far those below a number are from it in the mean; 0 if there are none.
    double mean_below(double value) const {
        const std::ptrdiff_t count = rank(value, true);
        double sum = 0;
        for (std::ptrdiff_t i = 0; i < count; ++i) sum += value - ranked(static_cast<std::size_t>(i));
        return count == 0 ? 0.0 : sum / static_cast<double>(count);
    }

    void push(double value) {
        if (!storage_) storage_ = std::make_shared<Storage>();
        else if (storage_.use_count() > 1) storage_ = std::make_shared<Storage>(*storage_);
        Storage& k = *storage_;
        if (k.values.capacity() < kMost) {
            k.values.reserve(kMost);
            k.order.reserve(kMost);
        }
        auto place = static_cast<std::uint16_t>(k.oldest);
        if (k.values.size() < kMost) {
            place = static_cast<std::uint16_t>(k.values.size());
            k.values.push_back(value);
        } else {
            k.order.erase(std::find(k.order.begin() + rank(k.values[place], true), k.order.end(), place));
            k.values[place] = value;
            k.oldest = (k.oldest + 1) % kMost;
        }
        k.order.insert(k.order.begin() + rank(value, false), place);
    }

    // Allocates, so that the next push() cannot fail.
    void make_room() {
        if (!storage_) storage_ = std::make_shared<Storage>();
        else if (storage_.use_count() > 1) storage_ = std::make_shared<Storage>(*storage_);
        storage_->values.reserve(kMost);
        storage_->order.reserve(kMost);
    }

    // In order of arrival.
    std::vector<double> values() const {
        if (!storage_) return {};
        std::vector<double> list(storage_->values);
        std::rotate(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(storage_->oldest), list.end());
        return list;
    }

  private:
    static constexpr double kTail = 600;  // largest distance into a tail, in units
    struct Storage {
        std::vector<double> values;        // ring buffer
        std::vector<std::uint16_t> order;  // indices into the ring, sorted by value
        std::size_t oldest = 0;            // index of the oldest number, once the ring is full
    };
    double ranked(std::size_t i) const { return storage_->values[storage_->order[i]]; }
    // How many numbers are below `value`, or not above it.
    std::ptrdiff_t rank(double value, bool below) const {
        const Storage& k = *storage_;
        auto before = [&](std::uint16_t place, double v) { return below ? k.values[place] < v : k.values[place] <= v; };
        return std::lower_bound(k.order.begin(), k.order.end(), value, before) - k.order.begin();
    }

    std::shared_ptr<Storage> storage_;
};

using QuantileWindow = BasicQuantileWindow<1000>;

}  // namespace gristmill
