// sum_i coef_i k(x_i, .) for an additive kernel, several outputs: scored and changed in O(coordinates x log terms).
//
// An additive kernel is a weighted sum of one-coordinate kernels; a coordinate is a column or the product of two. A
// coordinate whose value is NaN is missing: it contributes nothing. The sum owns no points and no scale: the learner
// does, and hands a term's coordinates back when it leaves.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/additive/tree.hpp"

namespace gristmill {

struct Coordinate {
    int order = -1;     // of the spline; -1: Laplacian
    double gamma = 1;   // of the Laplacian
    std::size_t column = 0;
    std::size_t other = kNone;  // the column it is multiplied by
    double weight = 1;

    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    double of(const double* row) const { return (other == kNone ? row[column] : row[column] * row[other]) + 0.0; }
};

// The trees of all coordinates that share one kernel.
class CoordinateGroup {
  public:
    virtual ~CoordinateGroup() = default;
    virtual double score(std::size_t output, const double* keys) const = 0;
    virtual void parts(std::size_t output, const double* keys, double* out) const = 0;  // one number a coordinate
    virtual void slopes(std::size_t output, const double* keys, double* out) const = 0;  // their derivatives by the keys
    virtual double self(const double* keys) const = 0;
    virtual const char* refusal(double key) const = 0;
    virtual void add(std::size_t output, const double* keys, double coef) = 0;
    virtual void remove(std::size_t output, const double* keys, double coef) = 0;
    virtual void clear() = 0;
    virtual void rescale(std::size_t output, double factor) = 0;
    virtual std::size_t outputs() const = 0;
    virtual void add_output() = 0;
    virtual void reserve_event(std::span<const std::size_t> outputs) = 0;  // an add to each of them will not allocate
    virtual void reserve_terms(std::size_t terms) = 0;  // nor will anything while there are no more terms than this
    virtual std::vector<TreeEntry> entries(std::size_t output, std::size_t member) const = 0;
    virtual std::vector<std::uint8_t> shape(std::size_t output, std::size_t member) const = 0;
    virtual void build(std::size_t output, std::size_t member, std::span<const TreeEntry> entries,
                       std::span<const std::uint8_t> shape) = 0;
    virtual void compile() = 0;
    virtual void drop_compiled() = 0;
    // Adds its share to out[r] for each row of keys; requires: compiled.
    virtual void serve(std::size_t output, const double* keys, std::size_t rows, std::size_t stride, double* out) const = 0;
    virtual std::size_t bytes() const = 0;
    virtual void begin(bool long_chunk) = 0;
    virtual void commit() = 0;
    virtual void rollback() = 0;
};

class AdditiveSum {
  public:
    AdditiveSum(std::vector<Coordinate> coordinates, std::size_t outputs);

    std::span<const Coordinate> coordinates() const { return coordinates_; }
    std::size_t outputs() const { return outputs_; }
    // The coordinates of an input row.
    void keys(const double* row, double* out) const {
        for (std::size_t c = 0; c < coordinates_.size(); ++c) out[c] = coordinates_[c].of(row);
    }
    double score(std::size_t output, const double* keys) const;
    void parts(std::size_t output, const double* keys, double* out) const;
    void slopes(std::size_t output, const double* keys, double* out) const;
    double self(const double* keys) const;
    // Why coordinate c cannot take a value; nothing if it can.
    const char* refusal(std::size_t c, double key) const { return groups_[place_[c].group]->refusal(key); }

    void add(std::size_t output, const double* keys, double coef);
    void remove(std::size_t output, const double* keys, double coef);  // requires: exactly this was added
    void clear();
    void rescale(double factor);
    void add_output();
    void split_output(double factor);  // one output f becomes two: -factor f and factor f
    void reserve_event(std::span<const std::size_t> outputs);
    void reserve_terms(std::size_t terms);

    std::vector<TreeEntry> entries(std::size_t output, std::size_t c) const;
    std::vector<std::uint8_t> shape(std::size_t output, std::size_t c) const;
    void build(std::size_t output, std::size_t c, std::span<const TreeEntry> entries, std::span<const std::uint8_t> shape);

    // Sorted arrays for serving; dropped by the next change. They agree with the trees to rounding, not to the bit.
    void compile();
    bool compiled() const { return compiled_; }
    void serve(std::size_t output, const double* keys, std::size_t rows, double* out) const;

    std::size_t bytes() const;
    // A chunk is one transaction. Of a long one the state before is copied, of a short one the changes are logged: either
    // way it costs no more than the smaller of the two.
    void begin(bool long_chunk);
    void commit();
    void rollback();

  private:
    struct Place {
        std::size_t group, member;
    };
    void changed();

    std::vector<Coordinate> coordinates_;
    std::size_t outputs_;
    std::vector<std::unique_ptr<CoordinateGroup>> groups_;
    std::vector<Place> place_;  // by coordinate
    bool compiled_ = false;
};

}  // namespace gristmill
