// The stored terms of an additive sum: input rows, positions in the stream, coefficients, ages. Slots are always
// 0..size-1; the last term fills the slot of a removed one. Storage grows in chunks that never move, so that growing
// causes no pause, and changes are logged, so that a transaction costs what it changes and not what is stored.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace gristmill {

template <class T>
class ChunkedArray {
  public:
    explicit ChunkedArray(std::size_t width = 1) : width_(width) {}
    T* operator[](std::size_t slot) { return chunks_[slot / kSlots].get() + slot % kSlots * width_; }
    const T* operator[](std::size_t slot) const { return chunks_[slot / kSlots].get() + slot % kSlots * width_; }
    std::size_t width() const { return width_; }
    void reserve(std::size_t slots) {
        while (chunks_.size() * kSlots < slots) chunks_.push_back(std::make_unique<T[]>(kSlots * width_));
    }
    std::size_t bytes() const { return chunks_.size() * kSlots * width_ * sizeof(T); }

  private:
    static constexpr std::size_t kSlots = 64;
    std::size_t width_;
    std::vector<std::unique_ptr<T[]>> chunks_;
};

class Terms {
  public:
    static constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);
    static constexpr std::size_t kMost = kNone;

    // single: rows are stored in single precision; smallest: whether smallest() is used
    Terms(std::size_t width, std::size_t outputs, bool single, bool smallest);

    std::size_t size() const { return size_; }
    std::size_t outputs() const { return coefs_.width(); }
    std::size_t width() const { return rows_.width(); }
    bool single() const { return single_; }
    void row(std::size_t slot, double* to) const {
        if (single_) std::copy_n(floats_[slot], width(), to);
        else std::copy_n(rows_[slot], width(), to);
    }
    std::span<const double> coefs(std::size_t slot) const { return {coefs_[slot], outputs()}; }
    std::int64_t id(std::size_t slot) const { return *ids_[slot]; }
    std::size_t oldest() const { return oldest_; }  // requires: size() > 0
    std::size_t newer(std::size_t slot) const { return ages_[slot]->newer; }  // kNone after the newest
    double magnitude(std::size_t slot) const;  // largest |coefficient|
    std::size_t smallest() const { return heap_[0]; }  // the oldest of the smallest; requires: size() > 0

    void reserve(std::size_t slots);
    void append(std::int64_t id, const double* row, std::span<const double> coefs);  // requires: reserved
    void remove(std::size_t slot);
    void clear();
    // Non-zero coefficients stay non-zero: 0 means that the term is not in the output's trees.
    void rescale(double factor);
    void set_outputs(std::vector<std::vector<double>> coefs);  // by output, then slot; requires: no transaction

    void order_by_id();  // recomputes ages from positions in the stream

    void begin(bool long_chunk);  // as in AdditiveSum
    void commit();
    void rollback();
    std::size_t bytes() const;

  private:
    struct Age {
        std::uint32_t older, newer;
    };
    struct Record {  // previous content of a slot, or (slot == kNone) all previous coefficients
        std::uint32_t slot;
        std::int64_t id;
        std::vector<double> row, coefs;
    };
    void log(std::size_t slot);
    void write(std::size_t slot, std::int64_t id, const double* row, const double* coefs);
    void unlink(std::size_t slot);
    void link_newest(std::size_t slot);
    bool before(std::size_t a, std::size_t b) const;  // whether slot a is evicted before slot b
    void place(std::size_t at, std::uint32_t slot);
    void sift(std::size_t at);  // up or down to its position
    void sink(std::size_t at);
    void make_heap();

    bool single_;
    ChunkedArray<double> rows_, coefs_;
    ChunkedArray<float> floats_;  // used instead of rows_ in single precision
    ChunkedArray<std::int64_t> ids_;
    ChunkedArray<Age> ages_;
    std::size_t size_ = 0;
    std::uint32_t oldest_ = kNone, newest_ = kNone;
    bool keep_heap_;
    std::vector<std::uint32_t> heap_, where_;  // slots as a heap by (magnitude, id); position of each slot in it
    bool logging_ = false;  // whether changes are logged; in a long chunk all slots are logged at the beginning
    std::size_t size_before_ = 0;
    std::vector<Record> log_;
};

}  // namespace gristmill
