// A pool of nodes in few large allocations that never move. After begin(), rollback() frees the nodes taken since.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace gristmill {

template <class Node>
class Pool {
  public:
    Node* take() {
        if (free_.empty()) {
            if (slabs_.empty() || offset_ == slabs_[slab_].count) next_slab();
            return slabs_[slab_].nodes.get() + offset_++;
        }
        Node* node = free_.back();
        free_.pop_back();
        return node;
    }
    void give(Node* node) { free_.push_back(node); }

    // ensures: the next `nodes` calls of take() do not allocate. exact: allocates no node more than that.
    void reserve(std::size_t nodes, bool exact = false) {
        if (spare() < nodes) add_slab(exact ? nodes - spare() : std::max(nodes - spare(), growth()));
    }
    std::size_t live() const { return total_ - spare(); }
    std::size_t spare() const {
        std::size_t unused = free_.size();
        for (std::size_t s = slab_; s < slabs_.size(); ++s) unused += slabs_[s].count - (s == slab_ ? offset_ : 0);
        return unused;
    }
    std::size_t bytes() const { return total_ * sizeof(Node); }

    void begin() {
        free_before_ = free_;
        slab_before_ = slab_;
        offset_before_ = offset_;
    }
    void rollback() {
        slab_ = slab_before_;
        offset_ = offset_before_;
        free_.assign(free_before_.begin(), free_before_.end());  // keeps the capacity
    }

  private:
    struct Release {
        void operator()(Node* nodes) const { ::operator delete(nodes, std::align_val_t(alignof(Node))); }
    };
    struct Slab {
        std::unique_ptr<Node, Release> nodes;
        std::size_t count;
    };
    static constexpr std::size_t kHuge = std::size_t{1} << 21;

    // An eighth of the present size, up to a few megabytes: little memory is unused, and no event waits long.
    std::size_t growth() const {
        return std::clamp<std::size_t>(total_ / 8, 4, std::max<std::size_t>(4 * kHuge / sizeof(Node), 4));
    }
    // The cursor stays at the end of a used-up slab until the next one is needed.
    void next_slab() {
        const std::size_t next = slabs_.empty() ? 0 : slab_ + 1;
        if (next >= slabs_.size()) add_slab(growth());
        slab_ = next;
        offset_ = 0;
    }
    void add_slab(std::size_t count) {
        const std::size_t bytes = count * sizeof(Node);
        auto* nodes = static_cast<Node*>(::operator new(bytes, std::align_val_t(alignof(Node))));
        slabs_.push_back({std::unique_ptr<Node, Release>(nodes), count});
        total_ += count;
        if (free_.capacity() < total_) free_.reserve(total_ + total_ / 2);  // so that give() never allocates
#if defined(__linux__) && defined(MADV_HUGEPAGE)
        // A search touches a few lines in each of many large arrays: with small pages it would spend much time on TLB
        // misses.
        if (bytes >= kHuge) {
            const auto from = (reinterpret_cast<std::uintptr_t>(nodes) + kHuge - 1) / kHuge * kHuge;
            const auto to = (reinterpret_cast<std::uintptr_t>(nodes) + bytes) / kHuge * kHuge;
            if (to > from) madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
        }
#endif
    }

    std::vector<Slab> slabs_;
    std::size_t slab_ = 0, offset_ = 0, total_ = 0;  // slab and offset of the next unused node; nodes in all slabs
    std::vector<Node*> free_, free_before_;
    std::size_t slab_before_ = 0, offset_before_ = 0;
};

}  // namespace gristmill
