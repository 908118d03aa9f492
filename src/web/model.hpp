// A learner as a browser holds it: dense rows of doubles in, numbers out, fields to save and to load.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/archive.hpp"
#include "web/settings.hpp"

namespace gristmill::web {

// Row j, column i of a grid is the point (left + i * (right - left) / (columns - 1), top + j * (bottom - top) / (rows - 1)).
struct Grid {
    double left, right, top, bottom;
    std::size_t columns, rows;
    double x(std::size_t i) const {
        return left + static_cast<double>(i) * (right - left) / static_cast<double>(columns - 1);
    }
    double y(std::size_t j) const {
        return top + static_cast<double>(j) * (bottom - top) / static_cast<double>(rows - 1);
    }
};

// The stored points, oldest first.
struct Stored {
    std::vector<double> points, coefs;  // width numbers a point; outputs numbers a point
    std::vector<std::int64_t> ids;
};

// The points of a saved model: as doubles, or as floats where it keeps floats.
struct SavedPoints {
    std::vector<double> doubles;
    std::vector<float> floats;
    std::size_t count = 0;
};

class Model {
  public:
    virtual ~Model() = default;
    virtual std::size_t width() const = 0;
    virtual std::size_t outputs() const = 0;
    virtual std::size_t classes() const = 0;
    virtual std::size_t size() const = 0;
    virtual std::uint64_t seen() const = 0;
    virtual std::size_t bytes() const = 0;
    // One pass; labels: class numbers in order of arrival, targets, or nothing. scores: of each row before it was learned.
    virtual void learn(std::span<const double> rows, std::span<const double> labels, std::span<const double> weights,
                       std::size_t classes, std::vector<double>* scores) = 0;
    virtual std::vector<double> score(std::span<const double> rows) const = 0;
    virtual std::vector<double> probabilities(std::span<const double> scores) const = 0;
    // Scores on a grid, outputs() numbers a place, row after row. requires: width() == 2.
    virtual void score(const Grid& grid, std::vector<double>& out) const = 0;
    virtual Stored stored() const = 0;
    virtual Archive save(SavedPoints& points) const = 0;
};

// single: points are kept as floats. Throws std::invalid_argument where the parts do not fit together or to what was saved.
std::unique_ptr<Model> make_model(const TextSettings& settings, std::optional<Archive> saved,
                                  const SavedPoints& points);

}  // namespace gristmill::web
