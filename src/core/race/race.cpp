#include "core/race/race.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/threads.hpp"

namespace gristmill {

namespace {

constexpr double kLargest = 1e140;               // of a column: the sum of a million squares is still finite
constexpr std::size_t kBlock = std::size_t{1} << 17;  // numbers that go through all experts at a time
constexpr std::size_t kMostPasses = 6;           // over a batch, if their number is not given
constexpr std::size_t kMostKept = 1000, kLeastKept = 40;  // rows held out to see whether another pass helps
constexpr double kUnknown = 20.0;                // a class that has not come yet scores this much below the lowest
constexpr std::size_t kWorthPoints = 256;  // stored points for which waking a second thread pays off
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

// Scores of fewer classes as those of more: of two classes each gets half, classes that had not come yet a low score.
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

[[noreturn]] void refuse_value(double value, std::size_t row, std::size_t column) {
    const char* kind = std::isnan(value) ? "NaN" : std::isinf(value) ? "infinity" : "a number that is too large";
    char text[160];
    std::snprintf(text, sizeof text, "Input X contains %s: row %zu, column %zu is %g", kind, row, column, value);
    throw std::invalid_argument(text);
}

}  // namespace

// ---- rows -----------------------------------------------------------------------------------------------------------------

std::size_t Race::scaling(RaceScaling::Method method, std::uint64_t warmup) {
    auto& all = state.scalings;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& s) { return s.method == method && s.warmup == warmup; });
    if (found == all.end()) {
        all.emplace_back(method, warmup);
        return all.size();
    }
    return 1 + static_cast<std::size_t>(found - all.begin());
}

void Race::begin(std::size_t width, std::size_t outside) {
    state.width = width;
    state.shares.outside = state.shares.memory > 0 ? outside : 0;
    const std::size_t memory = state.shares.moves ? state.shares.memory : 0;
    for (auto& scaling : state.scalings) scaling.begin(width, memory);
    state.shares.begin(state);
}

void Race::widen(std::size_t width, std::size_t outside) {
    if (state.wide_columns) {
        state.wide_columns->width = width;
        return;
    }
    RaceState before(state);
    try {
        state.shares.outside = state.shares.memory > 0 ? outside : 0;
        const std::size_t memory = state.shares.moves ? state.shares.memory : 0;
        for (std::size_t s = 0; s < state.scalings.size(); ++s) {
            RaceScaling& scaling = state.scalings[s];
            if (const auto ranks = scaling.drop_ranks(width, memory); ranks && ranks->seen > 0)
                follow(s, [&](double* row) {
                    ranks->restore_values(row);
                    const std::vector<double> values(row, row + ranks->width());
                    scaling.scale(values.data(), 1, row);
                });
            scaling.widen(width, state.seen());
        }
        const std::size_t narrow = state.width, held = state.held_labels.size();
        std::vector<double> wider(held * width);
        for (std::size_t r = 0; r < held; ++r)
            std::copy_n(state.held_rows.data() + r * narrow, narrow, wider.data() + r * width);
        state.held_rows.swap(wider);
        state.set_width(width);
        state.shares.fit(state);
    } catch (...) {
        state = std::move(before);
        throw;
    }
}

void Race::check(const RaceRows& rows) const {
    if (rows.width != state.width)
        throw std::invalid_argument("X has " + std::to_string(rows.width) +
                                    " features, but the model was started with " + std::to_string(state.width));
    const std::size_t numbers = rows.count * rows.width;
    double largest = 0, doubt = 0;
    for (std::size_t i = 0; i < numbers; ++i) {
        largest = std::max(largest, std::abs(rows.data[i]));
        doubt += rows.data[i] - rows.data[i];
    }
    if (largest < kLargest && doubt == 0) return;
    for (std::size_t i = 0; i < numbers; ++i) {
        const double value = rows.data[i];
        if (!(std::abs(value) < kLargest)) refuse_value(value, i / rows.width, i % rows.width);
    }
}

void Race::set_views(const RaceRows& rows, Scaled& out) const {
    const std::size_t numbers = rows.count * rows.width, all = state.scalings.size();
    out.at.resize(all + 1);
    out.singles_at.assign(all + 1, nullptr);
    out.singles.resize(all + 1);
    out.at[0] = rows.data;
    for (std::size_t s = 0; s < all; ++s) out.at[s + 1] = out.scaled[s].data();
    for (const auto& expert : state.experts) {
        const auto* learner = dynamic_cast<const TrainedExpert*>(expert.get());
        if (!learner || !learner->runs() || !learner->wants_singles()) continue;
        const std::size_t s = learner->scaling();
        if (out.singles_at[s]) continue;
        out.singles[s].resize(numbers);
        for (std::size_t i = 0; i < numbers; ++i) out.singles[s][i] = static_cast<float>(out.at[s][i]);
        out.singles_at[s] = out.singles[s].data();
    }
    out.rows = {rows.count, rows.width, out.at, out.singles_at, rows.wide, rows.first, rows.weights};
}

// Calls work(expert) for each of these experts, each of which changes itself alone; on several threads where they store enough
// points, the largest first.
void Race::each_expert(std::vector<std::size_t> places, const std::function<void(TrainedExpert&)>& work) {
    std::size_t points = 0;
    for (const std::size_t place : places) points += state.trained(place).size();
    if (threads_allowed() == 1 || places.size() < 2 || points < kWorthPoints) {
        for (const std::size_t place : places) work(state.trained(place));
        return;
    }
    std::stable_sort(places.begin(), places.end(),
                     [&](std::size_t a, std::size_t b) { return state.trained(a).size() > state.trained(b).size(); });
    parallel(places.size(), [&](std::size_t i) { work(state.trained(places[i])); });
}

// Stored points of the experts behind a scaling become what they are by its present state.
void Race::follow(std::size_t scaling, const RowChange& change) {
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < state.experts.size(); ++place)
        if (state.is_trained(place) && state.experts[place]->runs() && state.trained(place).scaling() == scaling + 1)
            places.push_back(place);
    each_expert(std::move(places), [&](TrainedExpert& expert) { expert.follow(change); });
}

void Race::scale(const RaceRows& rows, Scaled& out, bool single) {
    const std::size_t numbers = rows.count * rows.width;
    out.scaled.resize(state.scalings.size());
    for (std::size_t s = 0; s < state.scalings.size(); ++s) {
        RaceScaling& scaling = state.scalings[s];
        if (single) scaling.begin_single();
        out.scaled[s].resize(numbers);
        if (!scaling.learn(rows.data, rows.count, out.scaled[s].data())) continue;
        const RankScaling& ranks = *scaling.rank();
        follow(s, [&](double* row) {
            for (std::size_t c = 0; c < ranks.width(); ++c) row[c] = ranks.followed(c, row[c]);
        });
    }
    set_views(rows, out);
}

void Race::apply_scalings(const RaceRows& rows, Scaled& out) const {
    out.scaled.resize(state.scalings.size());
    for (std::size_t s = 0; s < state.scalings.size(); ++s) {
        out.scaled[s].resize(rows.count * rows.width);
        state.scalings[s].scale(rows.data, rows.count, out.scaled[s].data());
    }
    set_views(rows, out);
}

// ---- learning -------------------------------------------------------------------------------------------------------------

// Samples until something is due: memory moves, columns are weighed, the target scale is renewed.
std::uint64_t Race::due() const {
    std::uint64_t least = state.shares.due(state.seen()).value_or(kNever);
    for (std::size_t place = 0; place < state.experts.size(); ++place)
        if (state.is_trained(place) && state.trained(place).weighs())
            least = std::min(least, Relevance::due(state.seen()));
    if (state.target && state.target->plain()) least = std::min(least, state.target->plain()->due());
    for (const auto& scaling : state.scalings) least = std::min(least, scaling.run());
    return least;
}

Race::Step Race::cut(const RaceRows& rows, std::span<const double> labels, std::size_t start, std::size_t known) {
    if (state.quiet == 0) state.quiet = due();
    std::size_t stop = std::min(labels.size() - start, std::max<std::size_t>(64, kBlock / state.width));
    stop = start + static_cast<std::size_t>(std::min<std::uint64_t>(stop, state.quiet));
    const bool counts = rows.weight(start) > 0;
    for (std::size_t at = start + 1; at < stop; ++at)
        if ((rows.weight(at) > 0) != counts) stop = at;
    if (!counts) return {stop, std::max(state.classes(), known)};
    if (state.target) stop = start + state.target->run(labels.subspan(start, stop - start));
    if (state.task != Task::classification) return {stop, 0};
    std::size_t classes = std::max({state.classes(), known, static_cast<std::size_t>(labels[start]) + 1});
    const auto most = static_cast<double>(std::max<std::size_t>(classes, 2));
    for (std::size_t at = start + 1; at < stop; ++at)
        if (labels[at] >= most) stop = at;
    for (std::size_t at = start; at < stop; ++at) classes = std::max(classes, static_cast<std::size_t>(labels[at]) + 1);
    return {stop, classes};
}

void Race::learn_expert(Expert& expert, const ScaledRows& rows, std::span<const double> labels,
                        std::span<const double> inside, std::size_t classes, double* out) {
    if (!state.target || !expert.scales_target) return expert.learn(rows, labels, classes, out);
    if (!state.target->is_known()) {  // samples are counted and not learned before the target scale is known
        static_cast<TrainedExpert&>(expert).pass_over(rows);
        return state.target->unknown(labels, out);
    }
    expert.learn(rows, inside, classes, out);
    for (std::size_t r = 0; r < rows.count; ++r) out[r] = state.target->outside(out[r]);
}

// With this many classes the expert of class means comes, or leaves if it takes too much memory.
void Race::add_class_means(std::size_t classes) {
    if (!state.means_scaling || classes < ClassMeans::kClasses) return;
    if (!state.has_class_means) state.add_class_means();
    auto& means = static_cast<ClassMeans&>(*state.experts.back());
    if (!means.runs() || means.fits(classes)) return;
    means.leave("left at event " + std::to_string(state.seen()) + ": its means take too much memory");
    state.leave(state.experts.size() - 1);
}

void Race::step(const RaceRows& rows, std::span<const double> labels, std::size_t classes, std::vector<double>& out) {
    const std::size_t met = state.classes();
    if (classes > std::max<std::size_t>(met, 2)) {
        add_class_means(classes);
        state.shares.add_classes(state, classes);
    }
    if (state.task == Task::classification) state.mixture().add_classes(classes);
    scale(rows, scaled_, false);
    if (state.target && state.target->holds()) {
        hold(rows, labels, out);
        return finish_step(labels);
    }
    const std::span<const double> unclipped = labels;
    set_targets(labels);
    if (state.target) labels = clipped_;
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < state.experts.size(); ++place)
        if (state.experts[place]->runs()) places.push_back(place);
    const std::size_t outputs = outputs_of(classes), each = rows.count * outputs;
    scores_.resize(places.size() * each);
    const std::span<const double> tamed = state.target ? std::span<const double>(tamed_) : labels;
    auto work = [&](std::size_t line) {
        learn_expert(*state.experts[places[line]], scaled_.rows, tamed, targets_, classes,
                     scores_.data() + line * each);
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
            for (std::size_t line = 0; line < places.size(); ++line) row[places[line]] = scores_[line * each + r];
            out[r] = novelty->learn(row);
        }
    } else {
        expert_scores_.clear();
        for (std::size_t line = 0; line < places.size(); ++line)
            expert_scores_.push_back({places[line], scores_.data() + line * each});
        mixed_.resize(rows.count * state.mixture().columns());
        state.mixture().learn(expert_scores_, rows.count, labels, met, mixed_.data(), rows.weights);
        out.resize(each);
        scores_of(state.mixture(), mixed_.data(), rows.count, out.data());
    }
    if (state.task == Task::regression)
        for (std::size_t r = 0; r < rows.count; ++r) state.errors.learn({out.data() + r, 1}, unclipped.data() + r);
    finish_step(unclipped);
}

// Samples of weight 0, of which only the columns are followed; they are predicted by what was learned before.
void Race::pass_over(const RaceRows& rows, std::size_t classes, std::vector<double>& out) {
    if (state.task == Task::classification) {
        if (classes > std::max<std::size_t>(state.classes(), 2)) {
            add_class_means(classes);
            state.shares.add_classes(state, classes);
        }
        state.mixture().add_classes(classes);
    }
    scale(rows, scaled_, false);
    out.resize(rows.count * state.outputs());
    score_scaled(scaled_.rows, out.data());
    const bool begun = state.task != Task::classification || state.classes() > 0;
    for (std::size_t place = 0; begun && place < state.experts.size(); ++place)
        if (state.is_trained(place) && state.experts[place]->runs()) state.trained(place).pass_over(scaled_.rows);
    state.mixture().pass_over(rows.count);
    finish(rows.count);
}

// Targets as the mixture is judged by them, as experts learn them, and as those learn them that scale them.
void Race::set_targets(std::span<const double> labels) {
    targets_.clear();
    clipped_.clear();
    tamed_.clear();
    if (!state.target) return;
    for (const double label : labels) clipped_.push_back(state.target->clipped(label));
    for (const double label : labels) tamed_.push_back(state.target->tamed(label));
    if (state.target->is_known())
        for (const double label : labels) targets_.push_back(state.target->inside(label));
}

// Samples before the targets are measured: the median so far is predicted, and the experts learn them once it is known which
// targets are wild.
void Race::hold(const RaceRows& rows, std::span<const double> labels, std::vector<double>& out) {
    state.held_rows.insert(state.held_rows.end(), rows.data, rows.data + rows.count * rows.width);
    state.held_labels.insert(state.held_labels.end(), labels.begin(), labels.end());
    if (rows.weights || !state.held_weights.empty()) {
        state.held_weights.resize(state.held_labels.size() - rows.count, 1.0);
        for (std::size_t r = 0; r < rows.count; ++r) state.held_weights.push_back(rows.weight(r));
    }
    out.resize(rows.count);
    state.target->unknown(labels, out.data());
    expert_scores_.clear();
    for (std::size_t place = 0; place < state.experts.size(); ++place)
        if (state.experts[place]->runs()) expert_scores_.push_back({place, out.data()});
    mixed_.resize(rows.count);
    state.mixture().learn(expert_scores_, rows.count, out, 0, mixed_.data());  // no loss: no expert has predicted
    for (std::size_t r = 0; r < rows.count; ++r) state.errors.learn({out.data() + r, 1}, labels.data() + r);
}

void Race::learn_held() {
    const std::vector<double> rows = std::move(state.held_rows), labels = std::move(state.held_labels),
                              weights = std::move(state.held_weights);
    state.held_rows = {}, state.held_labels = {}, state.held_weights = {};
    RaceRows held{{rows.data(), labels.size(), state.width}};
    if (!weights.empty()) held.weights = weights.data();
    apply_scalings(held, scaled_);
    set_targets(labels);
    state.mixture().forget_residuals();
    std::vector<double> unused(labels.size());
    for (const auto& expert : state.experts)
        if (expert->runs() && !expert->is_wide())
            learn_expert(*expert, scaled_.rows, tamed_, targets_, 0, unused.data());
}

// What is due after a step.
void Race::finish_step(std::span<const double> labels) {
    std::optional<RaceTarget::Move> moved;
    if (state.target) moved = state.target->learn(labels);
    for (std::size_t place = 0; moved && place < state.experts.size(); ++place) {
        Expert& expert = *state.experts[place];
        if (state.is_trained(place) && expert.runs() && expert.scales_target)
            state.trained(place).rescale_targets(*moved);
    }
    if (!state.held_labels.empty() && !state.target->holds()) learn_held();
    finish(labels.size());
}

void Race::finish(std::size_t count) {
    state.quiet -= std::min<std::uint64_t>(state.quiet, count);
    if (state.quiet > 0) return;
    each_expert(experts_to_weigh(), [&](TrainedExpert& expert) { expert.relearn(state.seen(), in_batch_); });
    if (state.shares.is_due(state.seen())) state.shares.move(state);
}

// Experts whose column weights are renewed now: all that are due, or those with the largest weights where memory is shared out,
// because it is expensive.
std::vector<std::size_t> Race::experts_to_weigh() const {
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < state.experts.size(); ++place)
        if (state.is_trained(place) && state.experts[place]->runs() && state.trained(place).weighs() &&
            Relevance::is_due(state.seen()) && state.trained(place).seen() > 0)
            places.push_back(place);
    if (state.shares.memory == 0 || in_batch_ || state.task == Task::novelty) return places;
    const auto weights = state.mixture().weights();
    std::stable_sort(places.begin(), places.end(),
                     [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
    places.resize(std::min<std::size_t>(places.size(), state.task == Task::classification ? 2 : 3));
    return places;
}

// Weights of samples times those of their classes.
std::vector<double> Race::balanced(const RaceRows& rows, std::span<const double> labels) {
    std::vector<double> weights(labels.size());
    for (std::size_t r = 0; r < labels.size(); ++r) {
        const auto label = static_cast<std::size_t>(labels[r]);
        weights[r] = rows.weight(r);
        if (weights[r] == 0) continue;
        weights[r] *= state.balance.weight(label, true);
        state.balance.count(label);
    }
    return weights;
}

void Race::learn_steps(RaceRows rows, std::span<const double> labels, std::vector<double>* out, std::size_t known) {
    const std::vector<double> weights = state.balance.on ? balanced(rows, labels) : std::vector<double>();
    if (state.balance.on) rows.weights = weights.data();
    std::vector<std::pair<std::size_t, std::vector<double>>> parts;
    std::vector<double> part;
    for (std::size_t start = 0; start < labels.size();) {
        const Step next = cut(rows, labels, start, known);
        const std::size_t count = next.stop - start;
        if (rows.weight(start) > 0) step(rows.part(start, count), labels.subspan(start, count), next.classes, part);
        else pass_over(rows.part(start, count), next.classes, part);
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

std::vector<double> Race::learn(const RaceRows& rows, std::span<const double> labels, bool want, std::size_t known) {
    check(rows);
    check_classes(labels, known);
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

void Race::check_classes(std::span<const double> labels, std::size_t known) const {
    if (state.task != Task::classification) return;
    std::size_t classes = known;
    for (const double label : labels) classes = std::max(classes, static_cast<std::size_t>(label) + 1);
    state.shares.check(state, classes);
}

void Race::learn_one(const double* row, std::size_t width, double label, double weight) {
    RaceRows rows{{row, 1, width}};
    if (weight != 1) rows.weights = &weight;
    check(rows);
    if (learn_single(rows, label)) return;
    learn(rows, {&label, 1}, false, 0);
}

// A single sample without a new class and after which nothing is due: planned by all experts, then committed by all. False, and
// nothing is changed, if it has to be learned as a chunk.
bool Race::learn_single(RaceRows row, double label) {
    if (state.quiet < 2 || !(row.weight(0) > 0) || state.seen() == 0 ||
        (state.target && (!state.target->is_known() || state.target->may_move(label))))
        return false;
    std::size_t classes = 0;
    if (state.task == Task::classification) {
        classes = state.classes();
        if (!(label >= 0 && label < static_cast<double>(classes))) return false;
    }
    double given = row.weight(0);
    if (state.balance.on) given *= state.balance.weight(static_cast<std::size_t>(label), true);
    row.weights = given == 1 ? nullptr : &given;
    const std::size_t outputs = outputs_of(classes), all = state.experts.size();
    planned_.assign(all, 0);
    scores_.resize(all * outputs);
    expert_scores_.clear();
    expert_scores_.reserve(all);
    Mixture* mixture = std::get_if<Mixture>(&state.mixed);
    const double clipped = state.target ? state.target->clipped(label) : label;
    const double tamed = state.target ? state.target->tamed(label) : label;
    const double inside = state.target ? state.target->inside(label) : label;
    bool whole = true;
    try {
        mixed_.resize(mixture ? mixture->columns() : all);
        scale(row, scaled_, true);
        for (std::size_t place = 0; whole && place < all; ++place) {
            Expert& expert = *state.experts[place];
            if (!expert.runs()) continue;
            double* out = scores_.data() + place * outputs;
            whole = expert.plan(scaled_.rows, expert.scales_target ? inside : tamed, classes, out);
            if (expert.scales_target && state.target) *out = state.target->outside(*out);
            planned_[place] = 1;
            expert_scores_.push_back({place, out});
        }
        if (whole) std::visit([](auto& m) { m.make_room(); }, state.mixed);
        state.balance.make_room(classes);
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
        mixture->learn(expert_scores_, 1, {&clipped, 1}, classes, mixed_.data(), row.weights);
        if (state.task == Task::regression) state.errors.learn({mixed_.data(), 1}, &label);
    } else {
        std::fill(mixed_.begin(), mixed_.end(), elementary::kNaN);
        for (const auto& one : expert_scores_) mixed_[one.expert] = one.scores[0];
        std::get<NoveltyMixture>(state.mixed).learn(mixed_);
    }
    if (state.target) state.target->learn({&label, 1});
    if (state.balance.on) state.balance.count(static_cast<std::size_t>(label));
    --state.quiet;
    return true;
}

// ---- sparse rows of very many columns ---------------------------------------------------------------------------------------

void Race::check(const SparseRows<double>& rows) const {
    if (!state.wide_columns || rows.width != state.wide_columns->width)
        throw std::invalid_argument("X has " + std::to_string(rows.width) +
                                    " features, but the model was started with " +
                                    std::to_string(state.wide_columns ? state.wide_columns->width : state.width));
    for (std::size_t r = 0; r < rows.count; ++r)
        for (std::size_t k = 0; k < rows.nonzeros(r); ++k)
            if (!(std::abs(rows.values(r)[k]) < kLargest))
                refuse_value(rows.values(r)[k], r, static_cast<std::size_t>(rows.columns(r)[k]));
}

RaceRows Race::hashed(const WideChunk& chunk) {
    const std::size_t count = chunk.start.size() - 1;
    return {{chunk.sketch.data(), count, WideColumns::kSketch}, &chunk, 0};
}

std::vector<double> Race::learn(const SparseRows<double>& rows, std::span<const double> labels, bool want,
                                std::size_t known, const double* weights) {
    check(rows);
    if (rows.count == 1 && !want && !weights && known <= state.classes()) {
        state.wide_columns->learn(rows, wide_);
        try {
            if (learn_single(hashed(wide_), labels[0])) return {};
        } catch (...) {
            state.wide_columns->rollback();
            throw;
        }
        state.wide_columns->rollback();
    }
    check_classes(labels, known);
    std::vector<double> out;
    RaceState before(state);
    try {
        state.wide_columns->learn(rows, wide_);
        RaceRows all = hashed(wide_);
        all.weights = weights;
        learn_steps(all, labels, want ? &out : nullptr, known);
    } catch (...) {
        state = std::move(before);
        throw;
    }
    return out;
}

void Race::score(const SparseRows<double>& rows, double* out) const {
    check(rows);
    WideChunk chunk;
    state.wide_columns->scale(rows, chunk);
    score(hashed(chunk), out);
}

// ---- batches --------------------------------------------------------------------------------------------------------------

void Race::learn_batch(const RaceRows& rows, std::span<const double> labels, std::size_t known, std::size_t passes) {
    const bool automatic = passes == 0;
    const std::size_t count = labels.size(), tail = automatic ? std::min(kMostKept, count / 5) : 0, head = count - tail;
    in_batch_ = true;
    try {
        if (automatic && tail < kLeastKept) {
            learn(rows, labels, false, known);
        } else {
            const RaceRows first = rows.part(0, head), rest = rows.part(head, tail);
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
        in_batch_ = false;
        throw;
    }
    in_batch_ = false;
}

// As many passes over the first rows as lower the error on the others.
std::size_t Race::passes_that_help(const RaceRows& rows, std::span<const double> labels, std::size_t head) {
    const RaceRows first = rows.part(0, head), rest = rows.part(head, rows.count - head);
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

double Race::tail_error(const RaceRows& rows, std::span<const double> labels) const {
    const std::size_t outputs = state.outputs();
    std::vector<double> scores(rows.count * outputs);
    score(rows, scores.data());
    double total = 0;
    for (std::size_t r = 0; r < rows.count; ++r) {
        const double* row = scores.data() + r * outputs;
        if (state.task == Task::regression) total += rows.weight(r) * state.mixture().error_of(row[0], labels[r]);
        else
            total += rows.weight(r) *
                         static_cast<double>(outputs == 1 ? row[0] >= 0 : std::max_element(row, row + outputs) - row) !=
                     labels[r];
    }
    return total / static_cast<double>(rows.count);
}

// One more pass of the learners over the last samples.
void Race::revisit(RaceRows rows, std::span<const double> labels) {
    std::vector<double> weights(state.balance.on ? rows.count : 0);
    for (std::size_t r = 0; r < weights.size(); ++r)
        weights[r] = rows.weight(r) * state.balance.weight(static_cast<std::size_t>(labels[r]), false);
    if (state.balance.on) rows.weights = weights.data();
    apply_scalings(rows, scaled_);
    const bool known = state.target && state.target->is_known();
    set_targets(labels);
    if (state.target) labels = tamed_;
    for (std::size_t place = 0; place < state.experts.size(); ++place) {
        if (!state.is_trained(place) || !state.experts[place]->runs()) continue;
        TrainedExpert& expert = state.trained(place);
        if (!expert.scales_target) expert.revisit(scaled_.rows, labels);
        else if (known) expert.revisit(scaled_.rows, targets_);
        if (poll) poll();
    }
}

// ---- scores ---------------------------------------------------------------------------------------------------------------

void Race::score_expert(const Expert& expert, const RaceRows& rows, double* out) const {
    check(rows);
    Scaled scaled;
    apply_scalings(rows, scaled);
    expert.score(scaled.rows, state.classes(), out);
    if (state.target && expert.scales_target)
        for (std::size_t r = 0; r < rows.count; ++r) out[r] = state.target->outside(out[r]);
}

void Race::score(const RaceRows& rows, double* out) const {
    check(rows);
    Scaled scaled;
    apply_scalings(rows, scaled);
    score_scaled(scaled.rows, out);
}

void Race::score_scaled(const ScaledRows& rows, double* out) const {
    if (state.target && state.target->holds()) {
        std::fill_n(out, rows.count, state.target->robust()->median());
        return;
    }
    const std::size_t classes = state.classes(), outputs = outputs_of(classes), each = rows.count * outputs;
    const auto* mixture = std::get_if<Mixture>(&state.mixed);
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < state.experts.size(); ++place)
        if (state.experts[place]->runs() && (!mixture || mixture->counts(place))) places.push_back(place);
    std::vector<double> scores(places.size() * each);
    auto work = [&](std::size_t line) {
        const Expert& expert = *state.experts[places[line]];
        double* to = scores.data() + line * each;
        expert.score(rows, classes, to);
        if (state.target && expert.scales_target)
            for (std::size_t r = 0; r < rows.count; ++r) to[r] = state.target->outside(to[r]);
    };
    if (threads_allowed() > 1 && rows.count >= 8) parallel(places.size(), work);
    else
        for (std::size_t line = 0; line < places.size(); ++line) work(line);
    if (mixture) {
        std::vector<Mixture::ExpertScores> expert_scores;
        for (std::size_t line = 0; line < places.size(); ++line)
            expert_scores.push_back({places[line], scores.data() + line * each});
        std::vector<double> mixed(rows.count * mixture->columns());
        mixture->mix(expert_scores, rows.count, mixed.data());
        scores_of(*mixture, mixed.data(), rows.count, out);
        return;
    }
    std::vector<double> row(state.experts.size(), elementary::kNaN);
    for (std::size_t r = 0; r < rows.count; ++r) {
        for (std::size_t line = 0; line < places.size(); ++line) row[places[line]] = scores[line * each + r];
        out[r] = std::get<NoveltyMixture>(state.mixed).mix(row);
    }
}

}  // namespace gristmill
