#include "core/race/race.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/threads.hpp"

namespace gristmill {

namespace {

constexpr double kLargest = 1e140;               // of a column: a million squares of such numbers can still be added
constexpr std::size_t kBlock = std::size_t{1} << 17;  // numbers that go through all experts at a time
constexpr std::size_t kMostPasses = 6;           // over a batch, where none are asked for
constexpr std::size_t kMostKept = 1000, kLeastKept = 40;  // rows kept back to see whether another pass helps
constexpr double kUnknown = 20.0;                // how much less than the least likely class one is that has not come yet
constexpr std::uint64_t kNever = std::uint64_t{1} << 62;

double log_of_share(double share) { return share >= 0x1p-1022 ? elementary::quick_log(share) : elementary::log(share); }

// Probabilities as scores: log odds of two classes, logarithms of more; numbers as they are.
void scores_of(const Mixture& mixture, const double* mixed, std::size_t rows, double* out) {
    const std::size_t k = mixture.columns(), outputs = mixture.outputs();
    for (std::size_t r = 0; r < rows; ++r) {
        const double* from = mixed + r * k;
        if (k == 1) out[r] = from[0];
        else if (outputs == 1) out[r] = log_of_share(from[1]) - log_of_share(from[0]);
        else
            for (std::size_t c = 0; c < k; ++c) out[r * k + c] = log_of_share(from[c]);
    }
}

// Scores of fewer classes as those of more: of two each gets one, classes that had not come yet next to nothing.
std::vector<double> widened(const std::vector<double>& scores, std::size_t rows, std::size_t outputs) {
    const std::size_t own = scores.size() / rows;
    if (own == outputs) return scores;
    std::vector<double> wide(rows * outputs);
    for (std::size_t r = 0; r < rows; ++r) {
        double* to = wide.data() + r * outputs;
        const std::size_t known = std::max<std::size_t>(own, 2);
        if (own == 1) to[0] = -0.5 * scores[r], to[1] = 0.5 * scores[r];
        else std::copy_n(scores.data() + r * own, own, to);
        std::fill(to + known, to + outputs, *std::min_element(to, to + known) - kUnknown);
    }
    return wide;
}

Intervals intervals_of(Task task) { return Intervals(task == Task::regression ? 1 : 0); }

std::variant<Mixture, NoveltyMixture> mixture_of(Task task, std::size_t experts, double share) {
    if (task == Task::novelty) return NoveltyMixture(experts, share);
    return Mixture(task == Task::classification ? Mixture::Kind::classes : Mixture::Kind::numbers, experts, share);
}

}  // namespace

// ---- the state ------------------------------------------------------------------------------------------------------------

RaceState::RaceState(Task task, std::size_t experts, double share, std::size_t memory)
    : task(task), mixed(mixture_of(task, experts, share)), errors(intervals_of(task)), shares(memory, task != Task::novelty) {}

RaceState::RaceState(const RaceState& other)
    : task(other.task), width(other.width), scalings(other.scalings), mixed(other.mixed), errors(other.errors),
      target(other.target), shares(other.shares), quiet(other.quiet) {
    for (const auto& expert : other.experts) experts.push_back(expert->clone());
}

std::size_t RaceState::mixture_bytes_for(std::size_t classes) const {
    if (task == Task::novelty) return std::get<NoveltyMixture>(mixed).bytes();
    return mixture().bytes_for(classes);
}

std::size_t RaceState::bytes() const {
    std::size_t total = std::visit([](const auto& m) { return m.bytes(); }, mixed) + errors.bytes();
    for (const auto& expert : experts) total += expert->bytes();
    for (const auto& scaling : scalings) total += 24 * scaling.width();
    return total;
}

// ---- rows -----------------------------------------------------------------------------------------------------------------

std::size_t Race::scaling(bool by_range, std::uint64_t warmup) {
    auto& all = state.scalings;
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& s) { return s.by_range == by_range && s.warmup == warmup; });
    if (found == all.end()) {
        all.emplace_back(by_range, warmup);
        return all.size();
    }
    return 1 + static_cast<std::size_t>(found - all.begin());
}

void Race::begin(std::size_t width) {
    state.width = width;
    state.shares.begin(state);
}

void Race::widen(std::size_t width) {
    RaceState before(state);
    try {
        const std::vector<double> fresh(width - state.width);
        for (auto& scaling : state.scalings) scaling.widen(fresh, state.seen());
        for (auto& expert : state.experts) expert->widen(width);
        state.width = width;
        state.shares.fit(state);
        state.quiet = 0;
    } catch (...) {
        state = std::move(before);
        throw;
    }
}

void Race::check(const DenseRows<double>& rows) const {
    if (rows.width != state.width)
        throw std::invalid_argument("X has " + std::to_string(rows.width) + " features, but the model was started with " +
                                    std::to_string(state.width));
    const std::size_t numbers = rows.count * rows.width;
    double largest = 0, doubt = 0;
    for (std::size_t i = 0; i < numbers; ++i) {
        largest = std::max(largest, std::abs(rows.data[i]));
        doubt += rows.data[i] - rows.data[i];
    }
    if (largest < kLargest && doubt == 0) return;
    for (std::size_t i = 0; i < numbers; ++i) {
        const double value = rows.data[i];
        if (std::abs(value) < kLargest) continue;
        const char* kind = std::isnan(value) ? "NaN" : std::isinf(value) ? "infinity" : "a number that is too large";
        char text[160];
        std::snprintf(text, sizeof text, "Input X contains %s: row %zu, column %zu is %g", kind, i / rows.width, i % rows.width, value);
        throw std::invalid_argument(text);
    }
}

void Race::point(const DenseRows<double>& rows, Scaled& out) const {
    const std::size_t numbers = rows.count * rows.width, all = state.scalings.size();
    out.at.resize(all + 1);
    out.singles_at.assign(all + 1, nullptr);
    out.singles.resize(all + 1);
    out.at[0] = rows.data;
    for (std::size_t s = 0; s < all; ++s) out.at[s + 1] = out.scaled[s].data();
    for (const auto& expert : state.experts) {
        const auto* learner = dynamic_cast<const LearnerExpert*>(expert.get());
        if (!learner || !learner->runs() || !learner->wants_singles()) continue;
        const std::size_t s = learner->scaling();
        if (out.singles_at[s]) continue;
        out.singles[s].resize(numbers);
        for (std::size_t i = 0; i < numbers; ++i) out.singles[s][i] = static_cast<float>(out.at[s][i]);
        out.singles_at[s] = out.singles[s].data();
    }
    out.rows = {rows.count, rows.width, out.at, out.singles_at};
}

void Race::scale(const DenseRows<double>& rows, Scaled& out, bool lone) {
    const std::size_t numbers = rows.count * rows.width;
    out.scaled.resize(state.scalings.size());
    for (std::size_t s = 0; s < state.scalings.size(); ++s) {
        ColumnScaling& scaling = state.scalings[s];
        if (lone) scaling.begin();
        if (scaling.seen == 0) scaling.widen({rows.data, rows.width}, 0);
        out.scaled[s].resize(numbers);
        scaling.learn(rows.data, rows.count, out.scaled[s].data());
    }
    point(rows, out);
}

void Race::make_lookahead(const DenseRows<double>& rows, Scaled& out) const {
    out.scaled.resize(state.scalings.size());
    for (std::size_t s = 0; s < state.scalings.size(); ++s) {
        out.scaled[s].resize(rows.count * rows.width);
        state.scalings[s].scale(rows.data, rows.count, out.scaled[s].data());
    }
    point(rows, out);
}

// ---- learning -------------------------------------------------------------------------------------------------------------

// Events until something is due: memory moves, columns are weighed, targets are measured anew.
std::uint64_t Race::due() const {
    std::uint64_t least = state.shares.due(state.seen()).value_or(kNever);
    for (std::size_t place = 0; place < state.experts.size(); ++place)
        if (state.is_learner(place) && state.learner(place).relevance) least = std::min(least, Relevance::due(state.seen()));
    if (state.target) least = std::min(least, state.target->due());
    return least;
}

Race::Step Race::cut(std::span<const double> labels, std::size_t start, std::size_t known) {
    if (state.quiet == 0) state.quiet = due();
    std::size_t stop = std::min(labels.size() - start, std::max<std::size_t>(64, kBlock / state.width));
    stop = start + static_cast<std::size_t>(std::min<std::uint64_t>(stop, state.quiet));
    if (state.task != Task::classification) return {stop, 0};
    std::size_t classes = std::max({state.classes(), known, static_cast<std::size_t>(labels[start]) + 1});
    const auto most = static_cast<double>(std::max<std::size_t>(classes, 2));
    for (std::size_t at = start + 1; at < stop; ++at)
        if (labels[at] >= most) stop = at;
    for (std::size_t at = start; at < stop; ++at) classes = std::max(classes, static_cast<std::size_t>(labels[at]) + 1);
    return {stop, classes};
}

void Race::tell(Expert& expert, const ScaledRows& rows, std::span<const double> labels, std::span<const double> inside,
                std::size_t classes, double* out) {
    if (!state.target || !expert.scales_target) return expert.learn(rows, labels, classes, out);
    if (!state.target->is_known()) {  // events count, and teach nothing before it is known how targets are measured
        static_cast<LearnerExpert&>(expert).pass_over(rows);
        return state.target->means(labels, out);
    }
    expert.learn(rows, inside, classes, out);
    for (std::size_t r = 0; r < rows.count; ++r) out[r] = state.target->outside(out[r]);
}

void Race::step(const DenseRows<double>& rows, std::span<const double> labels, std::size_t classes, std::vector<double>& out) {
    const std::size_t met = state.classes();
    if (classes > std::max<std::size_t>(met, 2)) state.shares.add_classes(state, classes);
    if (state.task == Task::classification) state.mixture().add_classes(classes);
    scale(rows, scaled_, false);
    inside_.clear();
    if (state.target && state.target->is_known())
        for (const double label : labels) inside_.push_back(state.target->inside(label));
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < state.experts.size(); ++place)
        if (state.experts[place]->runs()) places.push_back(place);
    const std::size_t outputs = outputs_of(classes), each = rows.count * outputs;
    said_.resize(places.size() * each);
    auto work = [&](std::size_t line) {
        tell(*state.experts[places[line]], scaled_.rows, labels, inside_, classes, said_.data() + line * each);
    };
    if (threads_allowed() > 1 && rows.count >= 8) {
        // The slowest first, so that the last to finish is a small one; each writes its own part, so the order does not matter.
        std::vector<std::size_t> order(places.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return state.experts[places[a]]->bytes() > state.experts[places[b]]->bytes();
        });
        parallel(order.size(), [&](std::size_t i) { work(order[i]); });
    } else {
        for (std::size_t line = 0; line < places.size(); ++line) work(line);
    }
    if (auto* novelty = std::get_if<NoveltyMixture>(&state.mixed)) {
        out.resize(rows.count);
        std::vector<double> row(state.experts.size(), elementary::kNaN);
        for (std::size_t r = 0; r < rows.count; ++r) {
            for (std::size_t line = 0; line < places.size(); ++line) row[places[line]] = said_[line * each + r];
            out[r] = novelty->learn(row);
        }
    } else {
        heard_.clear();
        for (std::size_t line = 0; line < places.size(); ++line) heard_.push_back({places[line], said_.data() + line * each});
        mixed_.resize(rows.count * state.mixture().columns());
        state.mixture().learn(heard_, rows.count, labels, met, mixed_.data());
        out.resize(each);
        scores_of(state.mixture(), mixed_.data(), rows.count, out.data());
    }
    if (state.task == Task::regression)
        for (std::size_t r = 0; r < rows.count; ++r) state.errors.learn({out.data() + r, 1}, labels.data() + r);
    settle(labels);
}

// What is due after a step.
void Race::settle(std::span<const double> labels) {
    std::optional<TargetScale::Move> moved;
    if (state.target) moved = state.target->learn(labels);
    state.quiet -= std::min<std::uint64_t>(state.quiet, labels.size());
    if (state.quiet > 0) return;
    for (std::size_t place = 0; place < state.experts.size(); ++place) {
        Expert& expert = *state.experts[place];
        if (moved && state.is_learner(place) && expert.runs() && expert.scales_target)
            state.learner(place).learner.rescale_targets({&moved->factor, 1}, {&moved->shift, 1});
    }
    for (const std::size_t place : to_weigh()) {
        LearnerExpert& expert = state.learner(place);
        expert.relevance->relearn(expert.learner, state.seen(), patient_);
    }
    if (state.shares.is_due(state.seen())) state.shares.move(state);
}

// Whose columns are weighed anew now: all that are due, or the heaviest where memory is shared out, for it takes its time.
std::vector<std::size_t> Race::to_weigh() const {
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < state.experts.size(); ++place)
        if (state.is_learner(place) && state.experts[place]->runs() && state.learner(place).relevance &&
            Relevance::is_due(state.seen()) && state.learner(place).learner.seen() > 0)
            places.push_back(place);
    if (state.shares.memory == 0 || patient_ || state.task == Task::novelty) return places;
    const auto weights = state.mixture().weights();
    std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
    places.resize(std::min<std::size_t>(places.size(), state.task == Task::classification ? 2 : 3));
    return places;
}

void Race::learn_steps(const DenseRows<double>& rows, std::span<const double> labels, std::vector<double>* out, std::size_t known) {
    std::vector<std::pair<std::size_t, std::vector<double>>> parts;
    std::vector<double> part;
    for (std::size_t start = 0; start < labels.size();) {
        const Step next = cut(labels, start, known);
        const std::size_t count = next.stop - start;
        step({rows.row(start), count, rows.width}, labels.subspan(start, count), next.classes, part);
        if (out) parts.emplace_back(count, part);
        start = next.stop;
        if (poll) poll();
    }
    if (!out) return;
    for (const auto& [count, scores] : parts) {
        const auto wide = widened(scores, count, state.outputs());
        out->insert(out->end(), wide.begin(), wide.end());
    }
}

std::vector<double> Race::learn(const DenseRows<double>& rows, std::span<const double> labels, bool want, std::size_t known) {
    check(rows);
    if (state.task == Task::classification) {
        std::size_t classes = known;
        for (const double label : labels) classes = std::max(classes, static_cast<std::size_t>(label) + 1);
        state.shares.check(state, classes);
    }
    std::vector<double> out;
    if (want) out.reserve(rows.count * state.outputs());
    RaceState before(state);
    try {
        learn_steps(rows, labels, want ? &out : nullptr, known);
    } catch (...) {
        state = std::move(before);
        throw;
    }
    return out;
}

void Race::learn_one(const double* row, std::size_t width, double label) {
    const DenseRows<double> rows{row, 1, width};
    check(rows);
    if (learn_single(row, label)) return;
    learn(rows, {&label, 1}, false, 0);
}

// One event that brings nothing new and after which nothing is due: planned by all experts, then committed by all. False, and
// nothing is changed, where it has to be learned as a chunk.
bool Race::learn_single(const double* row, double label) {
    if (state.quiet < 2 || state.seen() == 0 || (state.target && !state.target->is_known())) return false;
    std::size_t classes = 0;
    if (state.task == Task::classification) {
        classes = state.classes();
        if (!(label >= 0 && label < static_cast<double>(classes))) return false;
    }
    const std::size_t outputs = outputs_of(classes), all = state.experts.size();
    planned_.assign(all, 0);
    said_.resize(all * outputs);
    heard_.clear();
    heard_.reserve(all);
    Mixture* mixture = std::get_if<Mixture>(&state.mixed);
    const double inside = state.target ? state.target->inside(label) : label;
    bool whole = true;
    try {
        mixed_.resize(mixture ? mixture->columns() : all);
        scale({row, 1, state.width}, scaled_, true);
        for (std::size_t place = 0; whole && place < all; ++place) {
            Expert& expert = *state.experts[place];
            if (!expert.runs()) continue;
            double* out = said_.data() + place * outputs;
            whole = expert.plan(scaled_.rows, expert.scales_target ? inside : label, classes, out);
            if (expert.scales_target && state.target) *out = state.target->outside(*out);
            planned_[place] = 1;
            heard_.push_back({place, out});
        }
        if (whole) std::visit([](auto& m) { m.make_room(); }, state.mixed);
    } catch (...) {
        for (auto& scaling : state.scalings) scaling.rollback();
        throw;
    }
    if (!whole) {
        for (auto& scaling : state.scalings) scaling.rollback();
        return false;
    }
    for (std::size_t place = 0; place < all; ++place)
        if (planned_[place]) state.experts[place]->commit();
    if (mixture) {
        mixture->learn(heard_, 1, {&label, 1}, classes, mixed_.data());
        if (state.task == Task::regression) state.errors.learn({mixed_.data(), 1}, &label);
    } else {
        std::fill(mixed_.begin(), mixed_.end(), elementary::kNaN);
        for (const auto& one : heard_) mixed_[one.expert] = one.scores[0];
        std::get<NoveltyMixture>(state.mixed).learn(mixed_);
    }
    if (state.target) state.target->learn({&label, 1});
    --state.quiet;
    return true;
}

// ---- batches --------------------------------------------------------------------------------------------------------------

void Race::learn_batch(const DenseRows<double>& rows, std::span<const double> labels, std::size_t known, std::size_t passes) {
    const bool automatic = passes == 0;
    const std::size_t count = labels.size(), tail = automatic ? std::min(kMostKept, count / 5) : 0, head = count - tail;
    patient_ = true;
    try {
        if (automatic && tail < kLeastKept) {
            learn(rows, labels, false, known);
        } else {
            const DenseRows<double> first{rows.data, head, rows.width}, rest{rows.row(head), tail, rows.width};
            learn(first, labels.first(head), false, known);
            const std::size_t often = automatic ? passes_that_help(rows, labels, head) : passes;
            if (!automatic) {
                for (std::size_t pass = 1; pass < often; ++pass) revisit(rows, labels);
            } else {
                learn(rest, labels.subspan(head), false, known);
                for (std::size_t pass = 1; pass < often; ++pass) revisit(rest, labels.subspan(head));
            }
        }
    } catch (...) {
        patient_ = false;
        throw;
    }
    patient_ = false;
}

// As many passes over the first rows as the others are told better for.
std::size_t Race::passes_that_help(const DenseRows<double>& rows, std::span<const double> labels, std::size_t head) {
    const DenseRows<double> first{rows.data, head, rows.width}, rest{rows.row(head), rows.count - head, rows.width};
    double best = tail_error(rest, labels.subspan(head));
    std::size_t often = 1;
    while (often < kMostPasses) {
        RaceState before(state);
        revisit(first, labels.first(head));
        const double error = tail_error(rest, labels.subspan(head));
        if (!(error < best)) {
            state = std::move(before);
            break;
        }
        best = error, ++often;
    }
    return often;
}

double Race::tail_error(const DenseRows<double>& rows, std::span<const double> labels) const {
    const std::size_t outputs = state.outputs();
    std::vector<double> scores(rows.count * outputs);
    score(rows, scores.data());
    double total = 0;
    for (std::size_t r = 0; r < rows.count; ++r) {
        const double* row = scores.data() + r * outputs;
        if (state.task == Task::regression) total += std::abs(row[0] - labels[r]);
        else total += static_cast<double>(outputs == 1 ? row[0] >= 0 : std::max_element(row, row + outputs) - row) != labels[r];
    }
    return total / static_cast<double>(rows.count);
}

// One more pass of the learners over the events that came last.
void Race::revisit(const DenseRows<double>& rows, std::span<const double> labels) {
    make_lookahead(rows, scaled_);
    const bool known = state.target && state.target->is_known();
    inside_.clear();
    if (known)
        for (const double label : labels) inside_.push_back(state.target->inside(label));
    for (std::size_t place = 0; place < state.experts.size(); ++place) {
        if (!state.is_learner(place) || !state.experts[place]->runs()) continue;
        LearnerExpert& expert = state.learner(place);
        if (!expert.scales_target) expert.revisit(scaled_.rows, labels);
        else if (known) expert.revisit(scaled_.rows, inside_);
        if (poll) poll();
    }
}

// ---- answers --------------------------------------------------------------------------------------------------------------

void Race::score(const DenseRows<double>& rows, double* out) const {
    check(rows);
    Scaled scaled;
    make_lookahead(rows, scaled);
    const std::size_t classes = state.classes(), outputs = outputs_of(classes), each = rows.count * outputs;
    const auto* mixture = std::get_if<Mixture>(&state.mixed);
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < state.experts.size(); ++place)
        if (state.experts[place]->runs() && (!mixture || mixture->counts(place))) places.push_back(place);
    std::vector<double> said(places.size() * each);
    auto work = [&](std::size_t line) {
        const Expert& expert = *state.experts[places[line]];
        double* to = said.data() + line * each;
        expert.score(scaled.rows, classes, to);
        if (state.target && expert.scales_target)
            for (std::size_t r = 0; r < rows.count; ++r) to[r] = state.target->outside(to[r]);
    };
    if (threads_allowed() > 1 && rows.count >= 8) parallel(places.size(), work);
    else
        for (std::size_t line = 0; line < places.size(); ++line) work(line);
    if (mixture) {
        std::vector<Mixture::ExpertScores> heard;
        for (std::size_t line = 0; line < places.size(); ++line) heard.push_back({places[line], said.data() + line * each});
        std::vector<double> mixed(rows.count * mixture->columns());
        mixture->mix(heard, rows.count, mixed.data());
        scores_of(*mixture, mixed.data(), rows.count, out);
        return;
    }
    std::vector<double> row(state.experts.size(), elementary::kNaN);
    for (std::size_t r = 0; r < rows.count; ++r) {
        for (std::size_t line = 0; line < places.size(); ++line) row[places[line]] = said[line * each + r];
        out[r] = std::get<NoveltyMixture>(state.mixed).mix(row);
    }
}

}  // namespace gristmill
