// The core without Python: small checks that run under the sanitizers.
#include <cmath>
#include <cstdio>
#include <random>

#include "check.hpp"
#include "core/expansion/expansion.hpp"
#include "core/kernels/sparse_points.hpp"
#include "core/learner/learner.hpp"

using namespace gristmill;

namespace {

using Generator = std::mt19937_64;

template <class T = double>
std::vector<T> numbers(Generator& random, std::size_t n, double zeros = 0) {
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> share;
    std::vector<T> values(n);
    for (T& x : values) x = share(random) < zeros ? T(0) : static_cast<T>(0.3 * normal(random));
    return values;
}

bool close(double found, double wanted, double tolerance) {
    return std::abs(found - wanted) <= tolerance * std::max(1.0, std::abs(wanted));
}

// The non-zeros of dense rows.
template <class T>
struct Sparse {
    std::vector<std::int64_t> start{0};
    std::vector<std::int32_t> column;
    std::vector<T> value;
    std::size_t width;

    Sparse(const std::vector<T>& dense, std::size_t width, std::size_t spread = 1) : width(width * spread) {
        for (std::size_t i = 0; i < dense.size(); ++i) {
            if (dense[i] != T(0)) {
                column.push_back(static_cast<std::int32_t>(i % width * spread));
                value.push_back(dense[i]);
            }
            if (i % width == width - 1) start.push_back(static_cast<std::int64_t>(value.size()));
        }
    }
    Batch batch() const { return SparseRows<T>{start.data(), column.data(), value.data(), start.size() - 1, width}; }
};

Kernel leaf(Op op, double a = 0, double b = 0, int n = 0) { return Kernel({{op, -1, -1, n, a, b}}); }
Kernel gaussian(double gamma = 1) { return leaf(Op::gaussian, gamma); }

// ---- vector code ------------------------------------------------------------------------------------------------

template <class T>
void dots_of_every_shape() {
    Generator random(1);
    const double tolerance = sizeof(T) == 8 ? 1e-13 : 1e-5;
    for (const std::size_t width : {1u, 2u, 7u, 64u, 159u, 160u, 161u, 321u})
        for (const std::size_t rows : {1u, 2u, 3u, 5u, 7u, 13u})
            for (const std::size_t blocks : {1u, 2u, 3u, 4u, 5u, 8u, 9u}) {
                constexpr std::size_t lanes = kLanes<T>;
                const std::size_t slots = blocks * lanes, stride = slots + lanes;
                const auto x = numbers<T>(random, rows * width), y = numbers<T>(random, slots * width);
                Lines<T> stored(slots * width), dot(rows * stride), l1(rows * stride), alone(stride);
                for (std::size_t s = 0; s < slots; ++s)
                    for (std::size_t j = 0; j < width; ++j)
                        stored[(s / lanes * width + j) * lanes + s % lanes] = y[s * width + j];
                std::vector<const T*> at;
                for (std::size_t r = 0; r < rows; ++r) at.push_back(x.data() + r * width);
                isa<T>().dots(at.data(), rows, stored.data(), blocks, width, dot.data(), stride);
                isa<T>().l1s(at.data(), rows, stored.data(), blocks, width, l1.data(), stride);
                bool fine = true, bits = true;
                for (std::size_t r = 0; r < rows; ++r) {
                    isa<T>().dots(at.data() + r, 1, stored.data(), blocks, width, alone.data(), stride);
                    for (std::size_t s = 0; s < slots; ++s) {
                        double sum = 0, distance = 0;
                        for (std::size_t j = 0; j < width; ++j) {
                            sum += double(at[r][j]) * double(y[s * width + j]);
                            distance += std::abs(double(at[r][j]) - double(y[s * width + j]));
                        }
                        fine &= close(dot[r * stride + s], sum, tolerance) &&
                                close(l1[r * stride + s], distance, tolerance);
                        bits &= dot[r * stride + s] == alone[s];
                    }
                }
                CHECK(fine);
                CHECK(bits);  // one row and a block of rows agree bit for bit
            }
}

template <class T>
void exp_over_its_range() {
    const Kernel kernel = leaf(Op::exponential, 1);
    const double low = sizeof(T) == 8 ? -707 : -86, high = sizeof(T) == 8 ? 709 : 88;
    Lines<T> t(kPad), norm2(kPad), scratch(kernel.scratch_rows() * kPad);
    Lines<double> out(kPad);
    double worst = 0;
    for (int i = 0; i < 20000; ++i) {
        for (std::size_t l = 0; l < kPad; ++l) t[l] = static_cast<T>(low + (high - low) * (16.0 * i + l) / 320000);
        kernel.values(Pairs<T>{t.data(), nullptr, T(0), norm2.data(), kPad}, scratch.data(), out.data());
        for (std::size_t l = 0; l < kPad; ++l) {
            const long double exact = std::exp(static_cast<long double>(t[l]));
            const T near = static_cast<T>(exact);
            const long double place = std::nextafter(near, std::numeric_limits<T>::infinity()) - near;
            worst = std::max(worst, static_cast<double>(std::abs(out[l] - exact) / place));
        }
    }
    CHECK(worst < 2);
}

// ---- points -----------------------------------------------------------------------------------------------------

std::vector<double> row_of(const Points& points, const Kernel& kernel, const Batch& batch, std::size_t i) {
    const auto kernel_rows = points.kernel_rows(kernel, batch);
    std::vector<double> out(padded(points.size()));
    kernel_rows->load(i, 1);
    kernel_rows->rows(out.data(), out.size());
    out.resize(points.size());
    return out;
}

template <class T>
void sparse_and_dense_agree() {
    Generator random(2);
    const std::size_t width = 30, count = 50;
    const auto x = numbers<T>(random, count * width, 0.7);
    const Batch dense = DenseRows<T>{x.data(), count, width};
    const Sparse<T> narrow(x, width), wide(x, width, 100);
    const Kernel sum({{Op::gaussian, -1, -1, 0, 0.5, 0},
                      {Op::laplacian, -1, -1, 0, 0.3, 0},
                      {Op::sum, 0, 1, 0, 0, 0},
                      {Op::polynomial, -1, -1, 2, 1, 1},
                      {Op::normalized, 3, -1, 0, 0, 0},
                      {Op::product, 2, 4, 0, 0, 0}});
    const auto a = make_points(width, false, sizeof(T) == 4), b = make_points(width, true, sizeof(T) == 4),
               c = make_points(width * 100, true, sizeof(T) == 4);
    CHECK(dynamic_cast<SparsePoints<T>*>(c.get()) != nullptr);
    CHECK(row_of(*c, sum, wide.batch(), 0).empty());  // no points yet
    for (std::size_t i = 0; i < count; ++i) {
        a->put(i, i, dense, i);
        b->put(i, i, narrow.batch(), i);
        c->put(i, i, wide.batch(), i);
    }
    for (std::size_t i = 0; i < count; ++i) {
        const auto left = row_of(*a, sum, dense, i), middle = row_of(*b, sum, narrow.batch(), i),
                   right = row_of(*c, sum, wide.batch(), i);
        for (std::size_t s = 0; s < count; ++s) {
            CHECK(close(middle[s], left[s], sizeof(T) == 8 ? 1e-12 : 1e-4));
            CHECK(close(right[s], left[s], sizeof(T) == 8 ? 1e-12 : 1e-4));
        }
    }
}

std::vector<std::int64_t> by_age(const Points& points) {
    std::vector<std::int64_t> ids;
    for (std::size_t s = points.oldest(); s != Points::npos; s = points.newer(s)) ids.push_back(points.id(s));
    return ids;
}

void points_come_back_after_a_rollback() {
    for (const bool sparse : {false, true}) {
        Generator random(3);
        const std::size_t width = 5, count = 400, spread = sparse ? 500 : 1;
        const auto x = numbers(random, count * width, 0.3);
        const Sparse<double> rows(x, width, spread);
        const Batch batch = sparse ? rows.batch() : Batch(DenseRows<double>{x.data(), count, width});
        const auto points = make_points(width * spread, sparse, false);
        std::vector<std::int64_t> model;  // ids by age
        std::int64_t next = 0;
        auto shuffle = [&](int steps) {
            for (int i = 0; i < steps && next < static_cast<std::int64_t>(count); ++i, ++next) {
                const std::size_t slot = points->size() > 0 ? random() % (points->size() + 1) : 0;
                if (slot < points->size()) std::erase(model, points->id(slot));
                if (random() % 3 == 0 && slot < points->size()) {
                    points->remove(slot);
                } else {
                    points->put(slot, next, batch, next);
                    model.push_back(next);
                }
            }
        };
        for (int round = 0; round < 8; ++round) {
            shuffle(20);
            CHECK(by_age(*points) == model);
            const auto before = model;
            const auto values = row_of(*points, gaussian(), batch, 7);
            points->begin();
            shuffle(25);
            if (round % 3 == 0) points->clear(), model.clear();
            points->rollback();
            model = before;
            CHECK(by_age(*points) == before);
            CHECK(row_of(*points, gaussian(), batch, 7) == values);
        }
    }
}

// ---- the expansion ----------------------------------------------------------------------------------------------

void expansion_describes_one_function() {
    Generator random(4);
    const std::size_t width = 3, count = 300;
    const auto x = numbers(random, count * width);
    const Batch batch = DenseRows<double>{x.data(), count, width};
    Expansion f(gaussian(), make_points(width, false, false), 1, true, false);
    struct Term {
        std::size_t row;
        double coef;
    };
    std::vector<Term> twin;  // by slot
    auto k = [&](std::size_t i, std::size_t j) {
        double square = 0;
        for (std::size_t d = 0; d < width; ++d) square += std::pow(x[i * width + d] - x[j * width + d], 2);
        return std::exp(-square);
    };
    auto naive = [&](std::size_t i) {
        double sum = 0;
        for (const Term& term : twin) sum += term.coef * k(term.row, i);
        return sum;
    };
    auto stored_row = [&](std::size_t slot) {
        Lines<double> row(padded(f.size()));
        f.points().stored_row(f.kernel(), slot, row.data());
        return row;
    };
    for (std::size_t i = 0; i < count; ++i) {
        const double c = std::sin(static_cast<double>(i)) + 0.1;
        f.shrink(i % 50 == 49 ? 1e-60 : 0.9);
        for (Term& term : twin) term.coef *= i % 50 == 49 ? 1e-60 : 0.9;
        std::size_t slot = f.size();
        if (f.size() > 10) {
            slot = random() % f.size();
            f.release(slot, stored_row(slot).data());
            twin[slot].coef = 0;
        }
        Lines<double> row(padded(f.size()));
        const auto values = row_of(f.points(), f.kernel(), batch, i);
        std::copy(values.begin(), values.end(), row.begin());
        CHECK(close(f.score(0, row.data()), naive(i), 1e-12));
        f.add(slot, static_cast<std::int64_t>(i), batch, i, std::span(&c, 1), row.data(), 1.0);
        slot == twin.size() ? twin.push_back({i, c}) : void(twin[slot] = {i, c});
        if (i % 7 == 6) {
            const std::size_t gone = random() % f.size();
            f.remove(gone, stored_row(gone).data());
            twin[gone] = twin.back();
            twin.pop_back();
        }
        f.repair_norm();
        double norm2 = 0;
        for (const Term& a : twin) norm2 += a.coef * naive(a.row);
        CHECK(close(f.norm2(), norm2, 1e-10));
        CHECK(close(f.exact_inner()[0], norm2, 1e-10));
    }
    f.stay_inside(0.25);
    CHECK(close(f.exact_inner()[0], 0.0625, 1e-12));
    f.shrink(0);
    CHECK(f.size() == 0 && f.norm2() == 0);
}

// ---- the learner ------------------------------------------------------------------------------------------------

struct Stream {
    std::size_t width = 6, count = 700;
    std::vector<double> x, y;
    Stream() {
        Generator random(5);
        x = numbers(random, count * width, 0.2);
        for (std::size_t i = 0; i < count; ++i) y.push_back(x[i * width] > x[i * width + 1] * x[i * width + 2] ? 1 : 0);
    }
    Batch rows(std::size_t from, std::size_t n) const { return DenseRows<double>{x.data() + from * width, n, width}; }
    std::span<const double> labels(std::size_t from, std::size_t n) const { return {y.data() + from, n}; }
};

Sgd hinge() {
    Sgd rule;
    rule.loss.width = 1.0;
    rule.loss.nu = 0.3;
    rule.rate = 0.2;
    rule.reg = 0.1;
    return rule;
}

template <class B>
B sized(std::size_t size) {
    B budget;
    budget.size = size;
    return budget;
}

Window window(std::int64_t steps, double growth = 0) {
    Window budget;
    budget.steps = steps;
    budget.growth = growth;
    return budget;
}

Foreign foreign(std::shared_ptr<ForeignRule> code) {
    Foreign rule;
    rule.norm = true;
    rule.rule = std::move(code);
    return rule;
}

using PointLearner = Learner<Expansion>;

PointLearner learner(const Stream& stream, Rule rule, Budget budget, bool average = false) {
    return PointLearner(std::move(rule), std::move(budget), Task::classification, average, 42, gaussian(),
                        make_points(stream.width, false, false));
}

// Every saved number, and the order of the points by age.
bool same(PointLearner& a, PointLearner& b) {
    Archive left, right;
    a.visit(left);
    b.visit(right);
    bool alike = left.fields.size() == right.fields.size();
    for (std::size_t i = 0; alike && i < left.fields.size(); ++i)
        alike = left.fields[i].second.values == right.fields[i].second.values;
    return alike && by_age(a.hypothesis().points()) == by_age(b.hypothesis().points());
}

void chunks_give_the_same_bits() {
    const Stream stream;
    const Budget budgets[] = {
        Unbounded{}, window(40), window(0, 0.1), sized<DropOldest>(33), sized<DropSmallest>(33), sized<DropRandom>(33)};
    for (const Budget& budget : budgets)
        for (const std::size_t step : {1u, 3u, 50u, 699u}) {
            PointLearner whole = learner(stream, hinge(), budget), cut = learner(stream, hinge(), budget);
            std::vector<double> scores, piece, pieces;
            whole.learn(stream.rows(0, stream.count), stream.labels(0, stream.count), {}, &scores);
            for (std::size_t at = 0; at < stream.count; at += step) {
                const std::size_t n = std::min(step, stream.count - at);
                cut.learn(stream.rows(at, n), stream.labels(at, n), {}, &piece);
                pieces.insert(pieces.end(), piece.begin(), piece.end());
            }
            CHECK(scores == pieces);
            CHECK(same(whole, cut));
        }
}

// Keeps ||f|| inside a ball, and throws on request.
struct Fragile final : ForeignRule {
    int left = 1 << 30;
    Step propose(const Trial& trial) override {
        if (left-- == 0) throw std::runtime_error("the rule broke");
        return {.coefficient = trial.label * trial.score < 1 ? 0.5 * trial.label : 0.0, .shrink = 0.99, .radius = 1.5};
    }
};

void a_failed_chunk_is_undone() {
    const Stream stream;
    const Budget budgets[] = {Unbounded{}, window(25), sized<DropOldest>(20), sized<DropSmallest>(20),
                              sized<DropRandom>(20)};
    for (const Budget& budget : budgets)
        for (const int fails_after : {0, 1, 17, 150}) {
            auto rule = std::make_shared<Fragile>();
            auto calm = std::make_shared<Fragile>();
            PointLearner tried = learner(stream, foreign(rule), budget),
                         spared = learner(stream, foreign(calm), budget);
            for (PointLearner* one : {&tried, &spared})
                one->learn(stream.rows(0, 300), stream.labels(0, 300), {}, nullptr);
            rule->left = fails_after;
            bool threw = false;
            try {
                tried.learn(stream.rows(300, 200), stream.labels(300, 200), {}, nullptr);
            } catch (const std::runtime_error&) {
                threw = true;
            }
            CHECK(threw);
            CHECK(same(tried, spared));
            rule->left = 1 << 30;
            for (PointLearner* one : {&tried, &spared})
                one->learn(stream.rows(300, 400), stream.labels(300, 400), {}, nullptr);
            CHECK(same(tried, spared));
            CHECK(close(tried.hypothesis().norm2(), tried.hypothesis().exact_inner()[0], 1e-9));
        }
}

void bad_steps_are_refused() {
    struct Given final : ForeignRule {
        Step step;
        Step propose(const Trial&) override { return step; }
    };
    const Stream stream;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const Step& step :
         {Step{nan}, Step{1, nan}, Step{1, 1, nan}, Step{1, 1, 0, -1}, Step{1, 1, 0, nan}, Step{1e200}}) {
        auto rule = std::make_shared<Given>();
        PointLearner one = learner(stream, foreign(rule), sized<DropOldest>(5)),
                     other = learner(stream, foreign(rule), sized<DropOldest>(5));
        rule->step = Step{0.5, 0.9};
        for (PointLearner* l : {&one, &other}) l->learn(stream.rows(0, 20), stream.labels(0, 20), {}, nullptr);
        rule->step = step;
        for (const std::size_t n : {1u, 10u}) {
            bool refused = false;
            try {
                one.learn(stream.rows(20, n), stream.labels(20, n), {}, nullptr);
            } catch (const RowError&) {
                refused = true;
            }
            CHECK(refused);
            CHECK(same(one, other));
        }
    }
}

void memory_stops_growing() {
    const Stream stream;
    const Budget budgets[] = {sized<DropOldest>(32), sized<DropSmallest>(32), sized<DropRandom>(32)};
    for (const Budget& budget : budgets) {
        PointLearner one = learner(stream, hinge(), budget);
        std::size_t full = 0;
        for (int pass = 0; pass < 20; ++pass)
            for (std::size_t i = 0; i < stream.count; ++i) {
                one.learn(stream.rows(i, 1), stream.labels(i, 1), {}, nullptr);
                if (full == 0 && one.hypothesis().size() == 32) full = one.bytes();
            }
        CHECK(full > 0 && one.bytes() == full);
    }
}

void a_third_class_keeps_the_scores() {
    const Stream stream;
    PointLearner one = learner(stream, hinge(), sized<DropOldest>(30));
    one.learn(stream.rows(0, 300), stream.labels(0, 300), {}, nullptr);
    std::vector<double> before(10), after(30);
    one.score(stream.rows(0, 10), before.data());
    // A weight of 0: the class is added, and nothing is learned.
    const std::vector<double> third{2}, none{0};
    one.learn(stream.rows(0, 1), third, none, nullptr);
    CHECK(one.outputs() == 3);
    one.score(stream.rows(0, 10), after.data());
    for (std::size_t i = 0; i < 10; ++i) {
        CHECK(close(after[3 * i + 1] - after[3 * i], before[i], 1e-14));
        CHECK(after[3 * i + 2] == 0);
    }
    const std::vector<double> classes{0, 1, 2, 2, 1, 0, 2, 2, 2, 0};
    one.learn(stream.rows(0, 10), classes, {}, nullptr);
    CHECK(one.seen() == 311);
}

void a_class_enters_at_its_event() {
    const Stream stream;
    std::vector<double> classes(stream.count);
    for (std::size_t i = 0; i < classes.size(); ++i)
        classes[i] = static_cast<double>(i < 2 ? i : i < 90 ? i % 2 : i < 200 ? i % 3 : i % 5);
    for (const std::size_t step : {1u, 7u, 95u, 300u}) {
        PointLearner whole = learner(stream, hinge(), sized<DropOldest>(30)),
                     cut = learner(stream, hinge(), sized<DropOldest>(30));
        std::vector<double> scores, piece;
        whole.learn(stream.rows(0, stream.count), classes, {}, &scores);
        CHECK(whole.outputs() == 5 && scores.size() == 5 * stream.count);
        for (std::size_t at = 0; at < stream.count; at += step) {
            const std::size_t n = std::min(step, stream.count - at);
            cut.learn(stream.rows(at, n), std::span(classes).subspan(at, n), {}, &piece);
        }
        CHECK(same(whole, cut));
    }
}

void rows_that_are_too_long_are_refused() {
    const std::vector<double> huge{1e200, 0, 0, 0, 0, 0};
    const Stream stream;
    PointLearner one = learner(stream, hinge(), sized<DropOldest>(30));
    bool refused = false;
    try {
        one.learn(DenseRows<double>{huge.data(), 1, 6}, stream.labels(0, 1), {}, nullptr);
    } catch (const RowError& error) {
        refused = error.row == 0;
    }
    CHECK(refused && one.seen() == 0);
}

}  // namespace

int main() {
    std::printf("core tests on %s\n", isa_name());
    dots_of_every_shape<double>();
    dots_of_every_shape<float>();
    exp_over_its_range<double>();
    exp_over_its_range<float>();
    sparse_and_dense_agree<double>();
    sparse_and_dense_agree<float>();
    points_come_back_after_a_rollback();
    expansion_describes_one_function();
    chunks_give_the_same_bits();
    a_failed_chunk_is_undone();
    bad_steps_are_refused();
    memory_stops_growing();
    a_third_class_keeps_the_scores();
    a_class_enters_at_its_event();
    rows_that_are_too_long_are_refused();
    return summary("main");
}
