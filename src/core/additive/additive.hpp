// sum_i coef_i k(x_i, .) for an additive kernel and several outputs, scored and updated in O(coordinates x log terms).
//
// An additive kernel is a weighted sum of one-coordinate kernels; a coordinate is a column or the product of two. A
// coordinate with value NaN is missing and contributes nothing. The sum owns neither points nor scale: the hypothesis
// does, and passes the coordinates of a term again when it is removed.
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
    int order = -1;     // order of the spline; -1: Laplacian
    double gamma = 1;   // gamma of the Laplacian
    std::size_t column = 0;
    std::size_t other = kNone;  // the other column of a product
    double weight = 1;

    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    double of(const double* row) const { return (other == kNone ? row[column] : row[column] * row[other]) + 0.0; }
};

// The trees of all coordinates with the same kernel.
class CoordinateGroup {
  public:
    virtual ~CoordinateGroup() = default;
    virtual double score(std::size_t output, const double* keys) const = 0;
    virtual void parts(std::size_t output, const double* keys, double* out) const = 0;  // one number per coordinate
    virtual void slopes(std::size_t output, const double* keys, double* out) const = 0;  // derivatives by the keys
    virtual double self(const double* keys) const = 0;
    virtual const char* refusal(double key) const = 0;
    virtual void add(std::size_t output, const double* keys, double coef) = 0;
    virtual void remove(std::size_t output, const double* keys, double coef) = 0;
    virtual void clear() = 0;
    virtual void rescale(std::size_t output, double factor) = 0;
    virtual std::size_t outputs() const = 0;
    virtual void add_output() = 0;
    // afterwards one add to each of these outputs does not allocate
    virtual void reserve_event(std::span<const std::size_t> outputs) = 0;
    virtual void reserve_terms(std::size_t terms) = 0;  // afterwards nothing allocates up to this number of terms
    virtual std::vector<TreeEntry> entries(std::size_t output, std::size_t member) const = 0;
    virtual std::vector<std::uint8_t> shape(std::size_t output, std::size_t member) const = 0;
    virtual void build(std::size_t output, std::size_t member, std::span<const TreeEntry> entries,
                       std::span<const std::uint8_t> shape) = 0;
    virtual void compile() = 0;
    virtual void drop_compiled() = 0;
    // Adds its part to out[r] for each row of keys; requires: compiled.
    virtual void serve(std::size_t output, const double* keys, std::size_t rows, std::size_t stride,
                       double* out) const = 0;
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
    // Coordinates of an input row.
    void keys(const double* row, double* out) const {
        for (std::size_t c = 0; c < coordinates_.size(); ++c) out[c] = coordinates_[c].of(row);
    }
    double score(std::size_t output, const double* keys) const;
    void parts(std::size_t output, const double* keys, double* out) const;
    void slopes(std::size_t output, const double* keys, double* out) const;
    double self(const double* keys) const;
    // Why coordinate c refuses a value; nullptr if it accepts it.
    const char* refusal(std::size_t c, double key) const { return groups_[place_[c].group]->refusal(key); }

    void add(std::size_t output, const double* keys, double coef);
    void remove(std::size_t output, const double* keys, double coef);  // requires: exactly this term was added
    void clear();
    void rescale(double factor);
    void add_output();
    void split_output(double factor);  // replaces the one output f by -factor f and factor f
    void reserve_event(std::span<const std::size_t> outputs);
    void reserve_terms(std::size_t terms);

    std::vector<TreeEntry> entries(std::size_t output, std::size_t c) const;
    std::vector<std::uint8_t> shape(std::size_t output, std::size_t c) const;
    void build(std::size_t output, std::size_t c, std::span<const TreeEntry> entries,
               std::span<const std::uint8_t> shape);

    // Builds sorted arrays for fast prediction; the next change discards them. They agree with the trees up to
    // rounding.
    void compile();
    bool compiled() const { return compiled_; }
    void serve(std::size_t output, const double* keys, std::size_t rows, double* out) const;

    std::size_t bytes() const;
    // Transactions. A long chunk copies the state before, a short one logs its changes: the cost is that of the cheaper
    // one.
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
