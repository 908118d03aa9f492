// Records of one size in memory that grows without moving. A large arena uses huge pages where the system has them:
// records are accessed in random order, and with 4 kB pages most accesses would miss the TLB.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "core/simd/dispatch.hpp"

namespace gristmill {

inline constexpr std::size_t kLargePage = std::size_t{1} << 21;

// Allocator of a vector that is accessed in random order.
template <class T>
struct LargePages {
    using value_type = T;
    LargePages() = default;
    template <class U>
    LargePages(const LargePages<U>&) {}
    T* allocate(std::size_t n) {
        const std::size_t bytes = n * sizeof(T);
        auto* p = static_cast<T*>(::operator new(bytes, alignment(n)));
#if defined(__linux__)
        if (is_large(n)) ::madvise(p, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
        return p;
    }
    void deallocate(T* p, std::size_t n) { ::operator delete(p, alignment(n)); }
    bool operator==(const LargePages&) const { return true; }

  private:
    static bool is_large(std::size_t n) { return n * sizeof(T) >= kLargePage; }
    static std::align_val_t alignment(std::size_t n) { return std::align_val_t(is_large(n) ? kLargePage : kLineBytes); }
};

class Arena {
  public:
    explicit Arena(std::size_t record_bytes)
        : record_bytes_(record_bytes), shift_(static_cast<std::size_t>(std::countr_zero(
                                           std::bit_floor(std::max<std::size_t>(kSlabBytes / record_bytes, 1))))) {}

    std::byte* at(std::size_t i) const {
        return slabs_[i >> shift_].get() + (i & ((std::size_t{1} << shift_) - 1)) * record_bytes_;
    }
    std::size_t records() const { return records_; }

    // Makes room for `records` records. Existing records keep their address, unless all of them fit into the first
    // small slab.
    void grow(std::size_t records) {
        const std::size_t each = std::size_t{1} << shift_;
        if (records <= records_) return;
        if (records <= each) {
            const std::size_t capacity = std::min(each, std::max(records, 2 * records_));
            Slab wider = make(capacity, false);
            if (records_) std::memcpy(wider.get(), slabs_[0].get(), records_ * record_bytes_);
            slabs_.clear();
            slabs_.push_back(std::move(wider));
            records_ = capacity;
            return;
        }
        if (records_ > 0 && records_ < each) grow(each);
        while (records_ < records) {
            slabs_.push_back(make(each, slabs_.size() >= kSmallSlabs));
            records_ += each;
        }
    }
    void shrink(std::size_t records) {
        const std::size_t each = std::size_t{1} << shift_;
        while (slabs_.size() > 1 && records_ - each >= records) {
            slabs_.pop_back();
            records_ -= each;
        }
    }
    Arena copy() const {
        Arena other(record_bytes_);
        other.grow(records_);
        for (std::size_t i = 0, each = std::size_t{1} << shift_; i < slabs_.size(); ++i)
            std::memcpy(other.slabs_[i].get(), slabs_[i].get(), std::min(each, records_) * record_bytes_);
        return other;
    }
    // Bytes with `used` records in use; memory never written to is not counted, because the system has not mapped it.
    std::size_t bytes(std::size_t used) const {
        std::size_t total = sizeof *this + slabs_.capacity() * sizeof(Slab);
        const std::size_t each = std::size_t{1} << shift_;
        for (std::size_t left = used, i = 0; i < slabs_.size(); ++i, left -= std::min(left, each)) {
            const std::size_t part = std::min(left, each) * record_bytes_;
            total += i >= kSmallSlabs ? large(part) : part;
        }
        return total;
    }

  private:
    // The first few slabs are on small pages: a mostly unused huge page would dominate a small arena.
    static constexpr std::size_t kSlabBytes = 4 * kLargePage, kSmallSlabs = 8;
    struct Free {
        std::align_val_t alignment;
        void operator()(std::byte* p) const { ::operator delete(p, alignment); }
    };
    using Slab = std::unique_ptr<std::byte, Free>;

    static std::size_t large(std::size_t bytes) { return (bytes + kLargePage - 1) / kLargePage * kLargePage; }
    Slab make(std::size_t records, bool is_large) const {
        // Vector code reads past the end of a record, up to one cache line.
        const std::size_t bytes = records * record_bytes_ + kLineBytes;
        const auto alignment = std::align_val_t(is_large ? kLargePage : kLineBytes);
        const std::size_t whole = is_large ? large(bytes) : bytes;
        Slab slab(static_cast<std::byte*>(::operator new(whole, alignment)), Free{alignment});
#if defined(__linux__)
        if (is_large) ::madvise(slab.get(), whole, MADV_HUGEPAGE);
#endif
        return slab;
    }

    std::size_t record_bytes_, shift_, records_ = 0;
    std::vector<Slab> slabs_;
};

}  // namespace gristmill
