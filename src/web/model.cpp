#include "web/model.hpp"

#include <array>
#include <cmath>

#include "core/expansion/projected.hpp"
#include "core/learner/learner.hpp"

namespace gristmill::web {

namespace {

Task task_named(const std::string& name) {
    static constexpr auto tasks = std::to_array<std::pair<std::string_view, Task>>(
        {{"classification", Task::classification}, {"regression", Task::regression}, {"novelty", Task::novelty}});
    return named(tasks, name, "task");
}

const Expansion& store_of(const Expansion& hypothesis) { return hypothesis; }
const Expansion& store_of(const ProjectedExpansion& hypothesis) { return hypothesis.expansion(); }

// exp(-a |x - y|^2), exp(-a |x - y|) and exp(a x y) in two dimensions are products of one factor a coordinate.
std::optional<Node> separable(const std::vector<Node>& kernel) {
    const Op op = kernel.back().op;
    const bool factors = op == Op::gaussian || op == Op::laplacian || op == Op::exponential;
    return kernel.size() == 1 && factors ? std::optional(kernel.back()) : std::nullopt;
}
double factor(const Node& node, double x, double y) {
    switch (node.op) {
        case Op::gaussian: return std::exp(-node.a * (x - y) * (x - y));
        case Op::laplacian: return std::exp(-node.a * std::abs(x - y));
        default: return std::exp(node.a * x * y);
    }
}

// (a <x, y> + b)^n, with or without normalisation, of a degree whose monomials in two coordinates are few.
struct Power {
    double a, b;
    std::size_t n;
    bool normalized;
    double of(double t) const { return std::pow(a * t + b, static_cast<double>(n)); }
};
std::optional<Power> power(const std::vector<Node>& kernel) {
    constexpr int kFew = 12;
    const Node& node = kernel.front();
    const bool normalized = kernel.size() == 2 && kernel.back().op == Op::normalized;
    if (node.op != Op::polynomial || node.n > kFew || !(normalized || kernel.size() == 1)) return std::nullopt;
    return Power{node.a, node.b, static_cast<std::size_t>(node.n), normalized};
}

template <class H>
class LearnerModel final : public Model {
  public:
    LearnerModel(const TextSettings& settings, Budget budget, std::optional<Archive> saved, const SavedPoints& points)
        : task_(task_named(settings.text("task"))), kernel_(settings.nodes()), single_(settings.flag("single")),
          local_(settings.given("neighbours") && settings.number("neighbours") > 0),
          learner_(rule_from(settings, settings.text("task")), std::move(budget), task_, settings.flag("average"),
                   static_cast<std::uint64_t>(settings.whole("seed")), Kernel(kernel_),
                   make_points(size_from(settings.whole("columns")), false, single_)) {
        if (settings.flag("balanced")) learner_.balance_classes();
        if (settings.given("targets") && settings.whole("targets") > 1)
            learner_.set_targets(size_from(settings.whole("targets")));
        if (!saved) return;
        if (single_) saved->points = DenseRows<float>{points.floats.data(), points.count, width()};
        else saved->points = DenseRows<double>{points.doubles.data(), points.count, width()};
        learner_.check(*saved->points);
        learner_.visit(*saved);
    }

    std::size_t width() const override { return learner_.width(); }
    std::size_t outputs() const override { return learner_.outputs(); }
    std::size_t classes() const override { return learner_.classes(); }
    std::size_t size() const override { return store().size(); }
    std::uint64_t seen() const override { return learner_.seen(); }
    std::size_t bytes() const override { return learner_.bytes(); }

    void learn(std::span<const double> rows, std::span<const double> labels, std::span<const double> weights,
               std::size_t classes, std::vector<double>* scores) override {
        const Rows batch = checked(rows);
        learner_.learn(batch.view, labels, weights, scores, classes);
    }
    std::vector<double> score(std::span<const double> rows) const override {
        const Rows batch = checked(rows);
        std::vector<double> scores(batch_count(batch.view) * outputs());
        learner_.score(batch.view, scores.data());
        return scores;
    }
    std::vector<double> probabilities(std::span<const double> scores) const override {
        const std::size_t count = scores.size() / outputs(), known = std::max<std::size_t>(classes(), 1);
        std::vector<double> shares(count * known);
        for (std::size_t r = 0; r < count; ++r)
            learner_.probabilities(scores.subspan(r * outputs(), outputs()), shares.data() + r * known);
        return shares;
    }

    void score(const Grid& grid, std::vector<double>& out) const override {
        out.assign(grid.columns * grid.rows * outputs(), 0.0);
        const auto node = separable(kernel_);
        if (node && !local_) return factored(grid, *node, out);
        const auto polynomial = power(kernel_);
        if (polynomial && !local_) return expanded(grid, *polynomial, out);
        std::vector<double> line(2 * grid.columns);
        for (std::size_t j = 0; j < grid.rows; ++j) {
            for (std::size_t i = 0; i < grid.columns; ++i) line[2 * i] = grid.x(i), line[2 * i + 1] = grid.y(j);
            const Rows batch = checked(line);
            learner_.score(batch.view, out.data() + j * grid.columns * outputs());
        }
    }

    Stored stored() const override {
        Stored all;
        std::vector<float> narrow(width());
        for (std::size_t s = store().oldest(); s != Points::npos; s = store().newer(s)) {
            const std::size_t start = all.points.size();
            all.points.resize(start + width());
            copy_point(s, all.points.data() + start, narrow);
            all.ids.push_back(store().id(s));
            for (std::size_t o = 0; o < outputs(); ++o) all.coefs.push_back(store().shown_coef(s, o));
        }
        return all;
    }

    Archive save(SavedPoints& points) const override {
        Archive archive;
        const_cast<LearnerModel*>(this)->learner_.visit(archive);  // saving changes nothing
        points = {};
        points.count = size();
        if (single_) points.floats.resize(size() * width());
        else points.doubles.resize(size() * width());
        for (std::size_t s = 0; s < size(); ++s)
            if (single_) floats().copy_out(s, points.floats.data() + s * width());
            else doubles().copy_out(s, points.doubles.data() + s * width());
        return archive;
    }

  private:
    struct Rows {
        std::vector<float> narrow;
        Batch view;
    };
    Rows checked(std::span<const double> rows) const {
        const std::size_t count = rows.size() / width();
        Rows batch;
        if (single_) {
            batch.narrow.assign(rows.begin(), rows.end());
            batch.view = DenseRows<float>{batch.narrow.data(), count, width()};
        } else {
            batch.view = DenseRows<double>{rows.data(), count, width()};
        }
        learner_.check(batch.view);
        return batch;
    }
    const Expansion& store() const { return store_of(learner_.hypothesis()); }
    const DensePoints<double>& doubles() const { return dynamic_cast<const DensePoints<double>&>(store().points()); }
    const DensePoints<float>& floats() const { return dynamic_cast<const DensePoints<float>&>(store().points()); }
    void copy_point(std::size_t slot, double* to, std::vector<float>& narrow) const {
        if (!single_) return doubles().copy_out(slot, to);
        floats().copy_out(slot, narrow.data());
        std::copy(narrow.begin(), narrow.end(), to);
    }

    // f on a grid from its factors along both sides: so many exponentials as the sides are long, not as the grid has places.
    void factored(const Grid& grid, const Node& node, std::vector<double>& out) const {
        constexpr std::size_t kTogether = 4;  // points a sweep, so that a line is read and written less often
        const Stored all = stored();
        const std::size_t n = all.ids.size(), padded = (n + kTogether - 1) / kTogether * kTogether;
        std::vector<double> across(padded * grid.columns), down(padded * grid.rows), plane(grid.columns * grid.rows);
        for (std::size_t s = 0; s < n; ++s) {
            for (std::size_t i = 0; i < grid.columns; ++i)
                across[s * grid.columns + i] = factor(node, grid.x(i), all.points[2 * s]);
            for (std::size_t j = 0; j < grid.rows; ++j)
                down[s * grid.rows + j] = factor(node, grid.y(j), all.points[2 * s + 1]);
        }
        for (std::size_t o = 0; o < outputs(); ++o) {
            const double offset = learner_.shown_intercept(o) - learner_.margin();
            std::fill(plane.begin(), plane.end(), offset);
            for (std::size_t j = 0; j < grid.rows; ++j) {
                double* line = plane.data() + j * grid.columns;
                for (std::size_t s = 0; s < n; s += kTogether) {
                    std::array<double, kTogether> c = {};
                    for (std::size_t p = 0; p < std::min(kTogether, n - s); ++p)
                        c[p] = all.coefs[(s + p) * outputs() + o] * down[(s + p) * grid.rows + j];
                    const double* a = across.data() + s * grid.columns;
                    const double *b = a + grid.columns, *d = b + grid.columns, *e = d + grid.columns;
                    for (std::size_t i = 0; i < grid.columns; ++i)
                        line[i] += c[0] * a[i] + c[1] * b[i] + (c[2] * d[i] + c[3] * e[i]);
                }
            }
            for (std::size_t p = 0; p < plane.size(); ++p) out[p * outputs() + o] = plane[p];
        }
    }

    // f on a grid as one polynomial in two variables: the stored points are read once, not at each place.
    void expanded(const Grid& grid, const Power& kernel, std::vector<double>& out) const {
        const Stored all = stored();
        const std::size_t n = kernel.n, side = n + 1;
        std::vector<double> share(side * side);  // of x^i y^j: the multinomial coefficient and the powers of a and b
        for (std::size_t i = 0; i <= n; ++i)
            for (std::size_t j = 0; i + j <= n; ++j) {
                double ways = 1;
                for (std::size_t k = 1; k <= j; ++k)
                    ways = ways * static_cast<double>(n - j + k) / static_cast<double>(k);
                for (std::size_t k = 1; k <= i; ++k)
                    ways = ways * static_cast<double>(n - j - i + k) / static_cast<double>(k);
                share[i * side + j] = ways * std::pow(kernel.a, static_cast<double>(i + j)) *
                                      std::pow(kernel.b, static_cast<double>(n - i - j));
            }
        std::vector<double> terms(side * side);
        for (std::size_t o = 0; o < outputs(); ++o) {
            std::fill(terms.begin(), terms.end(), 0.0);
            for (std::size_t s = 0; s < all.ids.size(); ++s) {
                const double x = all.points[2 * s], y = all.points[2 * s + 1];
                double c = all.coefs[s * outputs() + o];
                if (kernel.normalized) c /= std::sqrt(kernel.of(x * x + y * y));
                for (std::size_t i = 0; i <= n; ++i, c *= x) {
                    double product = c;
                    for (std::size_t j = 0; i + j <= n; ++j, product *= y)
                        terms[i * side + j] += share[i * side + j] * product;
                }
            }
            const double offset = learner_.shown_intercept(o) - learner_.margin();
            for (std::size_t row = 0; row < grid.rows; ++row)
                for (std::size_t column = 0; column < grid.columns; ++column) {
                    const double x = grid.x(column), y = grid.y(row);
                    double sum = 0;
                    for (std::size_t i = side; i-- > 0;) {
                        double inner = 0;
                        for (std::size_t j = side - i; j-- > 0;) inner = inner * y + terms[i * side + j];
                        sum = sum * x + inner;
                    }
                    if (kernel.normalized) sum /= std::sqrt(kernel.of(x * x + y * y));
                    out[(row * grid.columns + column) * outputs() + o] = sum + offset;
                }
        }
    }

    Task task_;
    std::vector<Node> kernel_;
    bool single_;
    bool local_;  // a score is measured by the neighbours, not by a sum over all points
    Learner<H> learner_;
};

}  // namespace

std::unique_ptr<Model> make_model(const TextSettings& settings, std::optional<Archive> saved,
                                  const SavedPoints& points) {
    Budget budget = budget_from(settings);
    if (needs_of(budget).span)
        return std::make_unique<LearnerModel<ProjectedExpansion>>(settings, std::move(budget), std::move(saved),
                                                                  points);
    return std::make_unique<LearnerModel<Expansion>>(settings, std::move(budget), std::move(saved), points);
}

}  // namespace gristmill::web
