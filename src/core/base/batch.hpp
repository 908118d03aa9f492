// Folder base: input batches, the archive of saved fields, portable exp and log, random numbers, threads.
// It includes simd/ only (cache line and lane constants); every folder above may include it.
// Begin with this file: views of incoming rows. They own no memory; the caller keeps the data alive for the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "core/simd/dispatch.hpp"

namespace gristmill {

template <class T>
struct DenseRows {
    const T* data = nullptr;
    std::size_t count = 0, width = 0;
    const T* row(std::size_t i) const { return data + i * width; }
};

template <class T>
struct SparseRows {  // columns are ascending within a row
    const std::int64_t* start = nullptr;
    const std::int32_t* column = nullptr;
    const T* value = nullptr;
    std::size_t count = 0, width = 0;
    const std::int32_t* columns(std::size_t i) const { return column + start[i]; }
    const T* values(std::size_t i) const { return value + start[i]; }
    std::size_t nonzeros(std::size_t i) const { return static_cast<std::size_t>(start[i + 1] - start[i]); }
};

struct ForeignRows {  // Python objects, understood only by ForeignPoints
    const void* objects = nullptr;
    std::size_t count = 0;
};

using Batch = std::variant<DenseRows<double>, DenseRows<float>, SparseRows<double>, SparseRows<float>, ForeignRows>;

inline std::size_t batch_count(const Batch& batch) {
    return std::visit([](const auto& rows) { return rows.count; }, batch);
}

// An event that cannot be learned or scored; `row` is its index in the chunk.
struct RowError : std::runtime_error {
    std::size_t row;
    RowError(std::size_t row, const std::string& what) : std::runtime_error(what), row(row) {}
};

template <class T>
struct LineAllocator {  // aligned to cache lines, so that a block of lanes is one line per feature
    using value_type = T;
    LineAllocator() = default;
    template <class U>
    LineAllocator(const LineAllocator<U>&) {}
    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(kLineBytes))); }
    void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t(kLineBytes)); }
    bool operator==(const LineAllocator&) const { return true; }
};
template <class T>
using Lines = std::vector<T, LineAllocator<T>>;

// Lines without zero initialisation, for large tables in which every number is written before it is read.
template <class T>
struct UnsetAllocator : LineAllocator<T> {
    template <class U>
    struct rebind {
        using other = UnsetAllocator<U>;
    };
    UnsetAllocator() = default;
    template <class U>
    UnsetAllocator(const UnsetAllocator<U>&) {}
    template <class U>
    void construct(U* p) {
        ::new (static_cast<void*>(p)) U;
    }
};
template <class T>
using UnsetLines = std::vector<T, UnsetAllocator<T>>;

}  // namespace gristmill
