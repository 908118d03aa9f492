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
    return "left at event " + std::to_string(seen) + ": " + (colon == std::string::npos ? text : text.substr(colon + 2));
}

}  // namespace

// ---- a kernel learner ---------------------------------------------------------------------------------------------------

LearnerExpert::LearnerExpert(const PointLearner& fresh, std::size_t scaling, bool weighs, bool scales)
    : learner(fresh), pristine_(fresh), scaling_(scaling),
      single_(dynamic_cast<const DensePoints<float>*>(&fresh.hypothesis().points()) != nullptr) {
    scales_target = scales;
    if (weighs) relevance.emplace().weights.assign(fresh.width(), 1.0);
}

LearnerExpert::LearnerExpert(const LearnerExpert& other)
    : Expert(other), learner(other.learner), relevance(other.relevance), pristine_(other.pristine_), scaling_(other.scaling_),
      single_(other.single_) {}

Batch LearnerExpert::batch_of(const ScaledRows& rows, Room& room) const {
    const double* scaled = rows.scaled[scaling_];
    const std::size_t numbers = rows.count * rows.width;
    if (!relevance) {
        if (!single_) return DenseRows<double>{scaled, rows.count, rows.width};
        if (rows.singles[scaling_]) return DenseRows<float>{rows.singles[scaling_], rows.count, rows.width};
        room.singles.resize(numbers);
        for (std::size_t i = 0; i < numbers; ++i) room.singles[i] = static_cast<float>(scaled[i]);
        return DenseRows<float>{room.singles.data(), rows.count, rows.width};
    }
    if (single_) {
        room.singles.resize(numbers);
        relevance->weigh(scaled, rows.count, room.singles.data());
        return DenseRows<float>{room.singles.data(), rows.count, rows.width};
    }
    room.doubles.resize(numbers);
    relevance->weigh(scaled, rows.count, room.doubles.data());
    return DenseRows<double>{room.doubles.data(), rows.count, rows.width};
}

void LearnerExpert::learn(const ScaledRows& rows, std::span<const double> labels, std::size_t classes, double* out) {
    const Batch batch = batch_of(rows, chunk_);
    const std::size_t outputs = outputs_of(classes);
    std::vector<double> scores;
    auto some = [&](const Batch& part, std::size_t count) {
        learner.check(part);
        learner.learn(part, labels.first(count), {}, &scores, classes);
        std::copy(scores.begin(), scores.end(), out);
    };
    try {
        some(batch, rows.count);
    } catch (const RowError& error) {
        // It learns up to the event that it cannot take, whatever chunk that came in, and leaves.
        const std::size_t good = error.row;
        std::fill(out, out + rows.count * outputs, elementary::kNaN);
        const std::string why = error.what();
        if (good) some(std::visit([&](auto view) -> Batch { view.count = good; return view; }, batch), good);
        note = left_at(learner.seen(), RowError(good, why));
    }
}

bool LearnerExpert::plan(const ScaledRows& row, double label, std::size_t classes, double* out) {
    if (!learner.takes_singly() || outputs_of(classes) != learner.outputs()) return false;
    // The event stands where the one before it stood, so that what looks at it need not be made again.
    Room& room = lone_.row;
    const std::size_t before = single_ ? room.singles.size() : room.doubles.size();
    const double* scaled = row.scaled[scaling_];
    if (before != row.width) lone_.event.reset();
    auto fill = [&](auto& to) {
        to.resize(row.width);
        if (relevance) relevance->weigh(scaled, 1, to.data());
        else for (std::size_t c = 0; c < row.width; ++c) to[c] = static_cast<std::remove_reference_t<decltype(to[c])>>(scaled[c]);
    };
    single_ ? fill(room.singles) : fill(room.doubles);
    if (!lone_.event) {
        const Batch batch = single_ ? Batch(DenseRows<float>{room.singles.data(), 1, row.width})
                                    : Batch(DenseRows<double>{room.doubles.data(), 1, row.width});
        lone_.event = std::make_unique<PointLearner::Single>(learner, batch);
    }
    lone_.note.clear();
    lone_.passes = false;
    try {
        lone_.event->plan(learner, label, 1.0, classes, out);
    } catch (const RowError& error) {
        std::fill(out, out + outputs_of(classes), elementary::kNaN);
        lone_.note = left_at(learner.seen(), error);
    }
    return true;
}

void LearnerExpert::commit() {
    if (!lone_.note.empty()) note.swap(lone_.note);
    else lone_.event->commit(learner);
}

void LearnerExpert::score(const ScaledRows& rows, std::size_t classes, double* out) const {
    Room room;
    const Batch batch = batch_of(rows, room);
    learner.check(batch);
    const std::size_t wanted = outputs_of(classes), own = learner.outputs();
    if (own == wanted) return learner.score(batch, out);
    // One that has just come back has met no class yet.
    std::vector<double> scores(rows.count * own);
    learner.score(batch, scores.data());
    for (std::size_t r = 0; r < rows.count; ++r) {
        double* to = out + r * wanted;
        std::fill(to, to + wanted, 0.0);
        if (own == 1) to[0] = -0.5 * scores[r], to[1] = 0.5 * scores[r];
        else std::copy_n(scores.data() + r * own, std::min(own, wanted), to);
    }
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
    const Batch batch = std::visit([&](auto view) -> Batch {
        if constexpr (requires { view.data + 0; }) view.data += missed * rows.width;
        view.count -= missed;
        return view;
    }, batch_of(rows, chunk_));
    const auto start = static_cast<std::int64_t>(seen) - static_cast<std::int64_t>(rows.count) + static_cast<std::int64_t>(missed);
    try {
        learner.check(batch);
        learner.revisit(batch, labels.subspan(missed), {}, start);
    } catch (const RowError&) {  // undone: it stays as it was
    }
}

void LearnerExpert::widen(std::size_t width) {
    lone_.event.reset();
    learner.widen(width);
    pristine_.widen(width);
    if (relevance) relevance->widen(width);
}

void LearnerExpert::begin(std::size_t width) {
    lone_.event.reset();
    learner = PointLearner(pristine_);
    if (relevance) {
        relevance->weights.assign(width, 1.0);
        relevance->history.clear();
    }
}

void LearnerExpert::resize(std::size_t memory) { learner.resize(memory); }

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

void Baseline::say(std::size_t classes, double* out) const {
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
        std::fill(shares, shares + k, last < 0 ? 1.0 / static_cast<double>(k) : other / (same + other) / static_cast<double>(k - 1));
        if (last >= 0) shares[static_cast<std::size_t>(last)] = same / (same + other);
    }
    as_scores(shares, k, out);
}

void Baseline::take(double label) {
    switch (kind) {
        case Kind::majority: numbers[static_cast<std::size_t>(label)] += 1; break;
        case Kind::no_change:
            if (numbers[0] >= 0) numbers[numbers[0] == label ? 1 : 2] += 1;
            numbers[0] = label;
            break;
        case Kind::mean:
            if (numbers[2] == 0) numbers[0] = label;
            numbers[1] += label - numbers[0];
            numbers[2] += 1;
            break;
        case Kind::last: numbers[0] = label; break;
    }
}

void Baseline::learn(const ScaledRows& rows, std::span<const double> labels, std::size_t classes, double* out) {
    const std::size_t outputs = outputs_of(classes);
    if (kind == Kind::majority && numbers.size() < classes) numbers.resize(classes);
    for (std::size_t r = 0; r < rows.count; ++r) {
        say(classes, out + r * outputs);
        take(labels[r]);
    }
}

bool Baseline::plan(const ScaledRows&, double label, std::size_t classes, double* out) {
    if (kind == Kind::majority && numbers.size() < classes) return false;
    say(classes, out);
    label_ = label;
    return true;
}

void Baseline::score(const ScaledRows& rows, std::size_t classes, double* out) const {
    const std::size_t outputs = outputs_of(classes);
    for (std::size_t r = 0; r < rows.count; ++r) say(classes, out + r * outputs);
}

std::size_t Baseline::bytes() const {
    switch (kind) {
        case Kind::no_change: return 32;
        case Kind::mean: return 24;
        default: return 8;
    }
}

// ---- straight lines -------------------------------------------------------------------------------------------------------

void LinearExpert::set_features(const double* x, std::size_t width, std::vector<double>& out) const {
    out.resize(width + (changes ? 0 : 1));
    if (changes) {
        for (std::size_t c = 0; c < width; ++c) out[c] = x[c] - row[c];
        return;
    }
    out[0] = 1;
    std::copy_n(x, width, out.begin() + 1);
}

double LinearExpert::take(const double* x, std::size_t width, double target) {
    if (!line) {
        begin(width);
        first = target;
        row.assign(x, x + width);
    }
    set_features(x, width, features_);
    const double base = changes && seen > 0 ? last : first;
    const double said = base + line->learn(features_.data(), target - base);
    const bool known = seen > 0;
    last = target;
    ++seen;
    row.assign(x, x + width);
    return known ? said : 0.0;
}

void LinearExpert::learn(const ScaledRows& rows, std::span<const double> labels, std::size_t, double* out) {
    for (std::size_t r = 0; r < rows.count; ++r) out[r] = take(rows.scaled[scaling_] + r * rows.width, rows.width, labels[r]);
}

bool LinearExpert::plan(const ScaledRows& rows, double label, std::size_t, double* out) {
    if (!line || seen == 0) return false;
    planned_ = rows.scaled[scaling_], width_ = rows.width, label_ = label;
    set_features(planned_, width_, features_);
    *out = (changes ? last : first) + line->score(features_.data());
    return true;
}

void LinearExpert::commit() { take(planned_, width_, label_); }

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

void LinearExpert::widen(std::size_t width) {
    if (!line) return;
    begin(width);
    row.resize(width);
}

}  // namespace gristmill
