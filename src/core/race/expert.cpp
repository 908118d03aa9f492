#include "core/race/expert.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/elementary.hpp"

namespace gristmill {

namespace {

// Log odds of two classes, logarithms of more.
void as_scores(const double* shares, std::size_t classes, double* out) {
    auto log = [](double share) { return share >= 0x1p-1022 ? elementary::quick_log(share) : elementary::log(share); };
    if (classes == 2) {
        out[0] = log(shares[1]) - log(shares[0]);
        return;
    }
    for (std::size_t c = 0; c < classes; ++c) out[c] = log(shares[c]);
}

std::string left_at(std::uint64_t seen, const RowError& error) {
    const std::string text = error.what();
    const std::size_t colon = text.find(": ");
    return "left at event " + std::to_string(seen) + ": " +
           (colon == std::string::npos ? text : text.substr(colon + 2));
}

}  // namespace

void spread_outputs(const double* scores, std::size_t rows, std::size_t own, std::size_t wanted, double* out) {
    for (std::size_t r = 0; r < rows; ++r) {
        double* to = out + r * wanted;
        std::fill(to, to + wanted, 0.0);
        if (own == 1) to[0] = -0.5 * scores[r], to[1] = 0.5 * scores[r];
        else std::copy_n(scores + r * own, std::min(own, wanted), to);
    }
}

void Expert::visit(Archive& archive, std::size_t, std::size_t) {
    archive.text("note", note);
    std::uint8_t resting = rests;
    archive.number("rests", resting);
    rests = resting != 0;
}

// ---- a kernel learner ---------------------------------------------------------------------------------------------------

LearnerExpert::LearnerExpert(const PointLearner& fresh, std::size_t scaling, bool weighs, bool scales)
    : TrainedExpert(scaling), learner(fresh), pristine_(fresh),
      single_(dynamic_cast<const DensePoints<float>*>(&fresh.hypothesis().points()) != nullptr) {
    scales_target = scales;
    if (weighs) relevance.emplace().weights.assign(fresh.width(), 1.0);
}

LearnerExpert::LearnerExpert(const LearnerExpert& other)
    : TrainedExpert(other), learner(other.learner), relevance(other.relevance), pristine_(other.pristine_),
      single_(other.single_) {}

Batch LearnerExpert::batch_of(const ScaledRows& rows, RowBuffer& buffer) const {
    const double* scaled = rows.scaled[scaling_];
    const std::size_t numbers = rows.count * rows.width;
    if (!relevance) {
        if (!single_) return DenseRows<double>{scaled, rows.count, rows.width};
        if (rows.singles[scaling_]) return DenseRows<float>{rows.singles[scaling_], rows.count, rows.width};
        buffer.singles.resize(numbers);
        for (std::size_t i = 0; i < numbers; ++i) buffer.singles[i] = static_cast<float>(scaled[i]);
        return DenseRows<float>{buffer.singles.data(), rows.count, rows.width};
    }
    if (single_) {
        buffer.singles.resize(numbers);
        relevance->weigh(scaled, rows.count, buffer.singles.data());
        return DenseRows<float>{buffer.singles.data(), rows.count, rows.width};
    }
    buffer.doubles.resize(numbers);
    relevance->weigh(scaled, rows.count, buffer.doubles.data());
    return DenseRows<double>{buffer.doubles.data(), rows.count, rows.width};
}

void LearnerExpert::learn(const ScaledRows& rows, std::span<const double> labels, std::size_t classes, double* out) {
    const Batch batch = batch_of(rows, chunk_);
    const std::size_t outputs = outputs_of(classes);
    std::vector<double> scores;
    auto some = [&](const Batch& part, std::size_t count) {
        learner.check(part);
        learner.learn(part, labels.first(count), rows.weights_of(count), &scores, classes);
        std::copy(scores.begin(), scores.end(), out);
    };
    try {
        some(batch, rows.count);
    } catch (const RowError& error) {
        // It learns up to the sample that it cannot learn, for any cut of the stream, and leaves.
        const std::size_t good = error.row;
        std::fill(out, out + rows.count * outputs, elementary::kNaN);
        const std::string why = error.what();
        if (good)
            some(std::visit(
                     [&](auto view) -> Batch {
                         view.count = good;
                         return view;
                     },
                     batch),
                 good);
        note = left_at(learner.seen(), RowError(good, why));
    }
}

bool LearnerExpert::plan(const ScaledRows& row, double label, std::size_t classes, double* out) {
    if (!learner.takes_singly() || outputs_of(classes) != learner.outputs()) return false;
    // The row is kept at one address, so that its view and the memory for planning can be reused.
    RowBuffer& buffer = planned_.row;
    const std::size_t before = single_ ? buffer.singles.size() : buffer.doubles.size();
    const double* scaled = row.scaled[scaling_];
    if (before != row.width) planned_.sample.reset();
    auto fill = [&](auto& to) {
        to.resize(row.width);
        if (relevance) relevance->weigh(scaled, 1, to.data());
        else
            for (std::size_t c = 0; c < row.width; ++c)
                to[c] = static_cast<std::remove_reference_t<decltype(to[c])>>(scaled[c]);
    };
    single_ ? fill(buffer.singles) : fill(buffer.doubles);
    if (!planned_.sample) {
        const Batch batch = single_ ? Batch(DenseRows<float>{buffer.singles.data(), 1, row.width})
                                    : Batch(DenseRows<double>{buffer.doubles.data(), 1, row.width});
        planned_.sample = std::make_unique<PointLearner::Single>(learner, batch);
    }
    planned_.note.clear();
    try {
        planned_.sample->plan(learner, label, row.weight(0), classes, out);
    } catch (const RowError& error) {
        std::fill(out, out + outputs_of(classes), elementary::kNaN);
        planned_.note = left_at(learner.seen(), error);
    }
    return true;
}

void LearnerExpert::commit() {
    if (!planned_.note.empty()) note.swap(planned_.note);
    else planned_.sample->commit(learner);
}

void LearnerExpert::score(const ScaledRows& rows, std::size_t classes, double* out) const {
    RowBuffer buffer;
    const Batch batch = batch_of(rows, buffer);
    learner.check(batch);
    const std::size_t wanted = outputs_of(classes), own = learner.outputs();
    if (own == wanted) return learner.score(batch, out);
    std::vector<double> scores(rows.count * own);  // after a rest it knows fewer classes than the race
    learner.score(batch, scores.data());
    spread_outputs(scores.data(), rows.count, own, wanted, out);
}

void LearnerExpert::pass_over(const ScaledRows& rows) {
    const Batch batch = batch_of(rows, chunk_);
    const std::vector<double> zeros(rows.count);
    learner.check(batch);
    learner.learn(batch, zeros, zeros, nullptr, 0);
}

void LearnerExpert::revisit(const ScaledRows& rows, std::span<const double> labels) {
    const std::size_t seen = learner.seen(), missed = rows.count > seen ? rows.count - seen : 0;
    if (missed == rows.count) return;
    const Batch batch = std::visit(
        [&](auto view) -> Batch {
            if constexpr (requires { view.data + 0; }) view.data += missed * rows.width;
            view.count -= missed;
            return view;
        },
        batch_of(rows, chunk_));
    const auto start =
        static_cast<std::int64_t>(seen) - static_cast<std::int64_t>(rows.count) + static_cast<std::int64_t>(missed);
    try {
        learner.check(batch);
        const auto weights = rows.weights_of(rows.count);
        learner.revisit(batch, labels.subspan(missed), weights.empty() ? weights : weights.subspan(missed), start);
    } catch (const RowError&) {  // undone: it stays as it was
    }
}

void LearnerExpert::widen(std::size_t width) {
    planned_.sample.reset();
    learner.widen(width);
    pristine_.widen(width);
    if (relevance) relevance->widen(width);
}

void LearnerExpert::begin(std::size_t width) {
    planned_.sample.reset();
    learner = PointLearner(pristine_);
    if (relevance) {
        relevance->weights.assign(width, 1.0);
        relevance->history.clear();
    }
}

void LearnerExpert::follow(const RowChange& change) {
    planned_.sample.reset();
    const std::vector<double> none, &weights = relevance ? relevance->weights : none;
    learner.change_points([&](double* row) {
        for (std::size_t c = 0; c < weights.size(); ++c) row[c] /= weights[c];
        change(row);
        for (std::size_t c = 0; c < weights.size(); ++c) row[c] *= weights[c];
    });
}

void LearnerExpert::visit(Archive& archive, std::size_t width, std::size_t classes) {
    Expert::visit(archive, width, classes);
    if (relevance) relevance->visit(archive, width);
    archive.within("core", [&] {
        const Points& points = learner.hypothesis().points();
        auto rows = [&]<class T>(const DensePoints<T>& dense) {
            if (archive.loads) {
                archive.points = archive.rows<T>("points", width);
                try {
                    learner.check(*archive.points);
                } catch (const RowError& error) {
                    archive.refuse("points", error.what());
                }
                return;
            }
            std::vector<T> values(dense.size() * width);
            for (std::size_t s = 0; s < dense.size(); ++s) dense.copy_out(s, values.data() + s * width);
            archive.keep("points", std::move(values), {dense.size(), width});
        };
        single_ ? rows(static_cast<const DensePoints<float>&>(points))
                : rows(static_cast<const DensePoints<double>&>(points));
        learner.visit(archive);
        archive.points.reset();
        // An expert that rested may know fewer classes than the race.
        if (archive.loads && learner.classes() > classes) archive.refuse("classes", "does not fit the others");
    });
}

std::size_t LearnerExpert::points_within(std::size_t memory, std::size_t outputs) const {
    try {
        return learner.points_within(memory, outputs);
    } catch (const std::invalid_argument&) {
        return 0;
    }
}

std::size_t LearnerExpert::weighing_bytes() const {
    return relevance && runs() ? 8 * relevance->weights.size() * (3 + relevance->history.size()) : 0;
}

std::size_t LearnerExpert::bytes() const {
    if (!runs()) return 0;
    return learner.bytes() + (relevance ? 8 * relevance->weights.size() * (1 + relevance->history.size()) : 0);
}

// ---- baselines ------------------------------------------------------------------------------------------------------------

void Baseline::predict(std::size_t classes, double* out) const {
    if (kind == Kind::mean) {
        *out = numbers[2] > 0 ? numbers[0] + numbers[1] / numbers[2] : 0.0;
        return;
    }
    if (kind == Kind::last) {
        *out = numbers[0];
        return;
    }
    constexpr std::size_t kFew = 16;
    const std::size_t k = std::max<std::size_t>(classes, 2);
    double few[kFew];
    std::vector<double> many(k > kFew ? k : 0);
    double* shares = k > kFew ? many.data() : few;
    if (kind == Kind::majority) {
        double sum = 0;
        for (const double count : numbers) sum += count;
        const double total = sum + 0.5 * static_cast<double>(k);
        for (std::size_t c = 0; c < k; ++c) shares[c] = ((c < numbers.size() ? numbers[c] : 0.0) + 0.5) / total;
    } else {
        const double last = numbers[0], same = numbers[1], other = numbers[2];
        std::fill(shares, shares + k,
                  last < 0 ? 1.0 / static_cast<double>(k) : other / (same + other) / static_cast<double>(k - 1));
        if (last >= 0) shares[static_cast<std::size_t>(last)] = same / (same + other);
    }
    as_scores(shares, k, out);
}

void Baseline::take(double label, double weight) {
    switch (kind) {
        case Kind::majority: numbers[static_cast<std::size_t>(label)] += weight; break;
        case Kind::no_change:
            if (numbers[0] >= 0) numbers[numbers[0] == label ? 1 : 2] += weight;
            numbers[0] = label;
            break;
        case Kind::mean:
            if (numbers[2] == 0) numbers[0] = label;
            numbers[1] += weight * (label - numbers[0]);
            numbers[2] += weight;
            break;
        case Kind::last: numbers[0] = label; break;
    }
}

void Baseline::learn(const ScaledRows& rows, std::span<const double> labels, std::size_t classes, double* out) {
    const std::size_t outputs = outputs_of(classes);
    if (kind == Kind::majority && numbers.size() < classes) numbers.resize(classes);
    for (std::size_t r = 0; r < rows.count; ++r) {
        predict(classes, out + r * outputs);
        take(labels[r], rows.weight(r));
    }
}

bool Baseline::plan(const ScaledRows& row, double label, std::size_t classes, double* out) {
    if (kind == Kind::majority && numbers.size() < classes) return false;
    predict(classes, out);
    label_ = label, weight_ = row.weight(0);
    return true;
}

void Baseline::score(const ScaledRows& rows, std::size_t classes, double* out) const {
    const std::size_t outputs = outputs_of(classes);
    for (std::size_t r = 0; r < rows.count; ++r) predict(classes, out + r * outputs);
}

std::size_t Baseline::bytes() const {
    switch (kind) {
        case Kind::no_change: return 32;
        case Kind::mean: return 24;
        default: return 8;
    }
}

void Baseline::visit(Archive& archive, std::size_t width, std::size_t classes) {
    Expert::visit(archive, width, classes);
    const std::size_t before = numbers.size(), least = std::max<std::size_t>(classes, 2);
    archive.numbers("numbers", numbers);
    if (!archive.loads) return;
    auto counts = [&](std::size_t from) {
        return std::all_of(numbers.begin() + static_cast<std::ptrdiff_t>(from), numbers.end(),
                           [](double n) { return n >= 0; });
    };
    bool fine = kind == Kind::majority ? numbers.size() == least : numbers.size() == before;
    if (fine && kind == Kind::majority) fine = counts(0);
    if (fine && kind == Kind::no_change)
        fine = counts(1) && numbers[0] >= -1 && numbers[0] < static_cast<double>(least) &&
               numbers[0] == std::floor(numbers[0]);
    if (fine && kind == Kind::mean) fine = counts(2);
    if (!fine) archive.refuse("numbers", "does not fit the others");
}

// ---- linear models --------------------------------------------------------------------------------------------------------

void LinearExpert::set_features(const double* x, std::size_t width, std::vector<double>& out) const {
    out.resize(width + (changes ? 0 : 1));
    if (changes) {
        for (std::size_t c = 0; c < width; ++c) out[c] = x[c] - row[c];
        return;
    }
    out[0] = 1;
    std::copy_n(x, width, out.begin() + 1);
}

double LinearExpert::take(const double* x, std::size_t width, double target, double weight) {
    if (!line) {
        begin(width);
        first = target;
        row.assign(x, x + width);
    }
    set_features(x, width, features_);
    const double base = changes && seen > 0 ? last : first;
    const double root = weight == 1 ? 1.0 : std::sqrt(weight);
    if (root != 1)
        for (double& feature : features_) feature *= root;
    const double score = base + line->learn(features_.data(), root * (target - base)) / root;
    const bool known = seen > 0;
    last = target;
    ++seen;
    row.assign(x, x + width);
    return known ? score : 0.0;
}

void LinearExpert::learn(const ScaledRows& rows, std::span<const double> labels, std::size_t, double* out) {
    for (std::size_t r = 0; r < rows.count; ++r)
        out[r] = take(rows.scaled[scaling_] + r * rows.width, rows.width, labels[r], rows.weight(r));
}

bool LinearExpert::plan(const ScaledRows& rows, double label, std::size_t, double* out) {
    if (!line || seen == 0) return false;
    planned_ = rows.scaled[scaling_], width_ = rows.width, label_ = label, weight_ = rows.weight(0);
    set_features(planned_, width_, features_);
    *out = (changes ? last : first) + line->score(features_.data());
    return true;
}

void LinearExpert::commit() { take(planned_, width_, label_, weight_); }

void LinearExpert::score(const ScaledRows& rows, std::size_t, double* out) const {
    std::vector<double> features;
    for (std::size_t r = 0; r < rows.count; ++r) {
        if (!line) {
            out[r] = 0;
            continue;
        }
        set_features(rows.scaled[scaling_] + r * rows.width, rows.width, features);
        out[r] = (changes ? last : first) + line->score(features.data());
    }
}

void LinearExpert::visit(Archive& archive, std::size_t width, std::size_t classes) {
    Expert::visit(archive, width, classes);
    archive.count("seen", seen);
    archive.number("first", first);
    archive.number("last", last);
    archive.numbers("row", row);
    if (archive.loads) {
        if (!row.empty() && row.size() != width) archive.refuse("row", "does not fit the others");
        if (seen > 0 && row.empty()) archive.refuse("row", "is missing");
        line.reset();
        if (!row.empty()) begin(row.size());
    }
    if (line) line->visit(archive);
}

void LinearExpert::widen(std::size_t width) {
    if (!line) return;
    begin(width);
    row.resize(width);
}

}  // namespace gristmill
