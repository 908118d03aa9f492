// One span an output over one shared store of points: what the budget `Project` keeps in place of coefficients.
#pragma once

#include "core/expansion.hpp"
#include "core/span.hpp"

namespace gristmill {

class Projections {
  public:
    Projections(std::size_t outputs, double tolerance) : tolerance_(tolerance), spans_(outputs) {}

    // Coordinates of the look-ahead's rows on every output's basis.
    class Window {
      public:
        double* row(std::size_t output, std::size_t i) { return z_[output].data() + i * stride_; }

      private:
        friend class Projections;
        std::size_t count_ = 0, stride_ = 0;
        std::vector<Lines<double>> z_;
        Lines<double> values_;  // kernel values of an output's members, gathered
    };
    // values: kernel values of `count` rows at all slots, `stride` apart.
    void load(Window& window, const double* values, std::size_t stride, std::size_t count) const;

    double tolerance() const { return tolerance_; }
    double score(Window& window, std::size_t i, std::size_t output) const;
    double average_score(Window& window, std::size_t i, std::size_t output, std::uint64_t ticks) const;
    double norm2() const;

    // How row i lies to the spans of the outputs that a step would touch (those with a coefficient).
    struct Fit {
        double residual = 0, projected2 = 0;  // over those outputs together
    };
    Fit fit(Window& window, std::size_t i, std::span<const double> coefs, double self) const;

    void scale(double factor);
    void tick();
    // f_o += c_o P_o k(x,.)
    void fold(Window& window, std::size_t i, std::span<const double> coefs);
    // f_o += c_o k(x,.), x being the point in `slot`; an output whose span holds it already folds it. column: its kernel
    // values at the rows of the window, which get their new coordinate.
    void add(Window& window, std::size_t i, std::span<const double> coefs, double self, std::size_t slot,
             const double* column);
    void stay_inside(double radius);
    void add_output() { spans_.emplace_back(); }
    void split_output(double factor);  // one output f becomes two: -factor f and factor f

    // Coefficients of the points, from the coordinates; or of the mean over time.
    void refresh(Expansion& expansion, bool mean, std::uint64_t ticks) const;
    std::size_t bytes() const;
    const std::vector<Span>& spans() const { return spans_; }
    // Rebuilds the factors from the points: the same numbers in the same order, so the same bits.
    void restore(const Expansion& expansion, const std::vector<std::vector<std::size_t>>& members,
                 const std::vector<std::vector<double>>& g, const std::vector<std::vector<double>>& sum);

    void begin();
    void rollback();
    void commit() { marks_.clear(); }

  private:
    double tolerance_;
    std::vector<Span> spans_;
    std::vector<Span::Mark> marks_;
};

}  // namespace gristmill
