// operator new that fails on request, to be loaded before the C++ library (LD_PRELOAD): the calling thread counts its allocations
// of at least `smallest` bytes; after `skip` of them, the next `many` fail. The C allocator is left alone: NumPy and the library
// behind model files end the process if that fails.
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local bool counts = false;
thread_local long left = 0, refusals = 0, counted = 0;
thread_local std::size_t least = 0;

bool refuses(std::size_t size) {
    if (!counts || size < least) return false;
    ++counted;
    if (left > 0) {
        --left;
        return false;
    }
    if (refusals == 0) return false;
    --refusals;
    return true;
}

void* allocated(std::size_t size, std::size_t alignment) {
    if (refuses(size)) throw std::bad_alloc();
    void* found = nullptr;
    if (alignment <= alignof(std::max_align_t)) found = std::malloc(size ? size : 1);
    else if (posix_memalign(&found, alignment, size) != 0) found = nullptr;
    if (!found) throw std::bad_alloc();
    return found;
}

}  // namespace

extern "C" void fail_allocations(long skip, long many, std::size_t smallest) {
    left = skip, refusals = many, least = smallest, counted = 0;
    counts = true;
}

extern "C" long stop_counting() {
    counts = false;
    return counted;
}

void* operator new(std::size_t size) { return allocated(size, 1); }
void* operator new[](std::size_t size) { return allocated(size, 1); }
void* operator new(std::size_t size, std::align_val_t by) { return allocated(size, static_cast<std::size_t>(by)); }
void* operator new[](std::size_t size, std::align_val_t by) { return allocated(size, static_cast<std::size_t>(by)); }
void operator delete(void* at) noexcept { std::free(at); }
void operator delete[](void* at) noexcept { std::free(at); }
void operator delete(void* at, std::size_t) noexcept { std::free(at); }
void operator delete[](void* at, std::size_t) noexcept { std::free(at); }
void operator delete(void* at, std::align_val_t) noexcept { std::free(at); }
void operator delete[](void* at, std::align_val_t) noexcept { std::free(at); }
void operator delete(void* at, std::size_t, std::align_val_t) noexcept { std::free(at); }
void operator delete[](void* at, std::size_t, std::align_val_t) noexcept { std::free(at); }
