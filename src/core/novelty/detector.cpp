#include "core/novelty/detector.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "core/base/elementary.hpp"
#include "core/base/threads.hpp"
#include "core/kernels/check.hpp"

namespace gristmill::novelty {

namespace {

constexpr double kLargest = 1e140;         // of a value: its square can still be added
constexpr std::size_t kMostEvents = 1000;  // of a sample
constexpr std::size_t kLeastEvents = 64;   // with fewer the memory is too small
constexpr std::size_t kFirst = 50,
                      kLeastFirst = 8;   // events that are compared with each other before others are with them
constexpr std::size_t kFewColumns = 64;  // too few for coarse numbers
constexpr std::size_t kNear = 10;        // events that a distance is the mean of
constexpr double kLeast = 1e-9;          // spreads: a distance that is less is this
constexpr double kWeight[Detector::kViews] = {1, 1, 0.35}, kWeights = 2.35;  // of the views
constexpr double kNarrow[Detector::kViews] = {
    0.01, 0.01, 0.1};  // a spread of a view that is less is this: trees that hardly differ say little
constexpr double kSharp = 1.5;  // of the soft minimum
constexpr double kPatience = 600;  // events of the running share that would not have been admitted
constexpr double kMoved = 0.25;  // share from which on the stream has moved
constexpr std::uint64_t kLonger = 5;  // times the sample: how many events it is drawn from
constexpr std::uint64_t kOften = 50;  // events after which views are measured and some trees grow anew
constexpr std::uint64_t kColumns = 500;  // events after which columns are measured
constexpr std::uint64_t kLastDoubling = 800;  // event at which everything is measured anew for the last time
constexpr std::size_t kSafe = 256;  // rows from which on a copy of everything costs less than learning them
constexpr std::uint64_t kPoll = 64;  // rows
constexpr std::size_t kPiece = 64;  // rows that one thread scores at a time

std::uint64_t neighbours_often(const Plan& plan) { return plan.as_bytes ? 4 : 2; }

}  // namespace

Plan Plan::of(std::size_t width, std::size_t all, std::size_t outside) {
    const std::size_t memory = all > outside ? all - outside : 0;
    Plan plan;
    plan.width = width, plan.memory = all, plan.outside = outside;
    if (width > all)  // sizes of such rows might not fit into an integer
        throw std::invalid_argument("memory: " + std::to_string(all) + " bytes are too few for rows of " +
                                    std::to_string(width) + " columns");
    plan.window = all >= 200'000 ? 1000 : 250;  // these two stay when rows widen
    plan.trees = std::clamp<std::size_t>(all / 10 / IsolationTrees::bytes_per_tree(), 4, 64);
    const std::size_t other = sizeof(Detector) + AlarmRate::bytes() + Detector::kViews * plan.window * sizeof(double) +
                              plan.window * sizeof(double) + plan.trees * IsolationTrees::bytes_per_tree() +
                              3 * width * sizeof(double) + 64;
    // A stored event, its usual distance, its distance from another one, and its value of a column.
    auto each = [&](bool as_bytes) {
        return CodedSample::bytes_per_event(width, as_bytes) + 2 * sizeof(double) + sizeof(std::uint32_t);
    };
    auto events = [&](bool as_bytes) {
        std::size_t room = memory > other ? memory - other : 0;
        if (as_bytes) room = std::min(room, memory / 5 * 3);  // more takes too long
        return std::min(room / each(as_bytes) / 16 * 16, kMostEvents);
    };
    plan.as_bytes = width > CodedSample::kWidest || (width > kFewColumns && events(false) < events(true));
    plan.events = events(plan.as_bytes);
    plan.first =
        std::min(kFirst, plan.events * CodedSample::bytes_per_event(width, plan.as_bytes) / (width * sizeof(double)));
    if (plan.events < kLeastEvents || plan.first < kLeastFirst) {
        const std::size_t needed = std::max(other + 80 * each(width > kFewColumns), 80 * each(true) * 5 / 3);
        throw std::invalid_argument("memory: " + std::to_string(all) + " bytes are too few for rows of " +
                                    std::to_string(width) + " columns; " + std::to_string(needed + outside) +
                                    " would do");
    }
    return plan;
}

Detector::Detector(std::size_t width, std::size_t memory, double rate, std::uint64_t seed, std::size_t outside)
    : plan_(Plan::of(width, memory, outside)), random_{seed, 0}, alarm_(rate) {}

std::size_t Detector::bytes() const {
    std::size_t total = sizeof *this + AlarmRate::bytes() + waiting_.capacity() * sizeof(double);
    if (!ready()) return total;
    for (const auto& ring : last_) total += ring.capacity() * sizeof(double);
    return total + sample_.bytes() + trees_.bytes() +
           (usual_.capacity() + scratch_.values.capacity()) * sizeof(double) +
           scratch_.event.codes.capacity() * sizeof(std::int32_t) + scratch_.event.bytes.capacity() +
           scratch_.distances.capacity() * sizeof(std::uint32_t);
}

void Detector::check(const Batch& batch) const {
    check_width(batch, plan_.width);
    const auto* rows = std::get_if<DenseRows<double>>(&batch);
    if (!rows) throw std::invalid_argument("rows must be dense and of double precision");
    for (std::size_t r = 0; r < rows->count; ++r)
        for (std::size_t c = 0; c < rows->width; ++c) {
            const double value = rows->row(r)[c];
            if (std::abs(value) < kLargest) continue;
            const char* kind = std::isnan(value)   ? "NaN"
                               : std::isinf(value) ? "infinity"
                                                   : "a number that is too large";
            char text[200];
            std::snprintf(text, sizeof text,
                          "Input X contains %s: row %zu, column %zu is %g; impute or drop such rows first", kind, r, c,
                          value);
            throw RowError(r, text);
        }
}

// A long chunk, and one in which memory may be allocated, is undone from a copy; nothing can go wrong in others.
void Detector::learn(const Batch& batch, std::span<const double>, std::span<const double>, std::vector<double>* scores,
                     std::size_t) {
    const auto& rows = std::get<DenseRows<double>>(batch);
    if (scores) scores->assign(rows.count, 0.0);
    auto learn_row = [&](std::size_t r) {
        const double found = learn_one(rows.row(r), scratch_);
        if (scores) (*scores)[r] = found;
    };
    alarm_.make_room();
    if (ready() && rows.count < kSafe) {
        for (std::size_t r = 0; r < rows.count; ++r) learn_row(r);
        return;
    }
    Detector before(*this);
    try {
        for (std::size_t r = 0; r < rows.count; ++r) {
            if (poll && r % kPoll == kPoll - 1) poll();
            learn_row(r);
        }
    } catch (...) {
        *this = std::move(before);
        throw;
    }
}

Detector::Scratch Detector::scratch() const {
    Scratch made;
    made.event.codes.resize(plan_.width);
    if (plan_.as_bytes) made.event.bytes.resize(CodedSample::bytes_per_event(plan_.width, true));
    made.distances.resize(sample_.padded_slots());
    made.values.resize(std::max(plan_.window, plan_.events));
    return made;
}

void Detector::score(const Batch& batch, double* out) const {
    const auto& rows = std::get<DenseRows<double>>(batch);
    if (!ready()) return void(std::fill_n(out, rows.count, alarm_.shown(0)));
    auto piece = [&](std::size_t p) {
        Scratch room = scratch();
        for (std::size_t r = p * kPiece; r < std::min((p + 1) * kPiece, rows.count); ++r) {
            sample_.encode(rows.row(r), room.event);
            out[r] = alarm_.shown(mixed(views(room, CodedSample::kNone)));
        }
    };
    parallel((rows.count + kPiece - 1) / kPiece, piece);
}

void Detector::explain(const Batch& batch, double* columns, double* usual, double* units) const {
    const auto& rows = std::get<DenseRows<double>>(batch);
    std::fill_n(columns, rows.count * plan_.width, 0.0);
    std::fill_n(usual, rows.count * plan_.width, 0.0);
    std::fill_n(units, rows.count * kViews, 0.0);
    if (!ready()) return;
    Scratch room = scratch();
    for (std::size_t r = 0; r < rows.count; ++r, columns += plan_.width, usual += plan_.width, units += kViews) {
        sample_.encode(rows.row(r), room.event);
        const Views found = views(room, CodedSample::kNone);
        for (std::size_t v = 0; v < kViews; ++v) units[v] = unit(found, v);
        const std::size_t near = std::min(kNear, room.nearest.count);
        for (std::size_t c = 0; c < plan_.width; ++c) {
            std::uint64_t sum = 0;
            for (std::size_t i = 0; i < near; ++i) {
                const std::size_t slot = room.nearest.slot[i];
                sum += static_cast<std::uint64_t>(std::abs(room.event.codes[c] - sample_.code(slot, c)));
                usual[c] += sample_.value(slot, c) / static_cast<double>(near);
            }
            columns[c] = static_cast<double>(sum) * sample_.step() / static_cast<double>(near) +
                         sample_.beyond(c, rows.row(r)[c]);
        }
    }
}

Detector::Views Detector::views(Scratch& room, std::size_t without) const {
    sample_.distances(room.event, room.distances.data());
    sample_.nearest(room.distances.data(), without, room.nearest);
    const Nearest& nearest = room.nearest;
    const double beyond = room.event.beyond, step = sample_.step();
    const double near = nearest.mean(kNear, step) + beyond, wide = nearest.mean(Nearest::kMost, step) + beyond;
    double usual = 0;
    for (std::size_t i = 0; i < nearest.count; ++i) usual += usual_[nearest.slot[i]];
    usual /= static_cast<double>(std::max<std::size_t>(nearest.count, 1));
    return {{-elementary::quick_log(near + kLeast), elementary::quick_log((usual + kLeast) / (wide + kLeast)),
             trees_.length(room.event.codes.data())}};
}

// The least view, the softer the closer others are.
double Detector::mixed(const Views& views) const {
    double lowest = unit(views, 0), sum = 0;
    for (std::size_t v = 1; v < kViews; ++v) lowest = std::min(lowest, unit(views, v));
    for (std::size_t v = 0; v < kViews; ++v) sum += kWeight[v] * elementary::exp(-kSharp * (unit(views, v) - lowest));
    return lowest - elementary::quick_log(sum / kWeights) / kSharp;
}

double Detector::learn_one(const double* row, Scratch& room) {
    if (!ready()) {
        const double found = alarm_.shown(0);
        waiting_.reserve(plan_.first * plan_.width);
        waiting_.insert(waiting_.end(), row, row + plan_.width);
        ++seen_;
        if (size() >= plan_.first) begin();
        return found;
    }
    sample_.encode(row, room.event);
    const Views found = views(room, CodedSample::kNone);
    const double shown = alarm_.learn(mixed(found));
    push(found);
    late_ += ((found.at[0] < thresholds_[0] ? 1.0 : 0.0) - late_) / kPatience;
    const bool moved = late_ > kMoved;
    if (moved) admitted_ = std::min<std::uint64_t>(admitted_, plan_.events + plan_.events / 5);
    if (moved || found.at[0] >= thresholds_[known_ - 1]) admit(row, room);
    ++seen_;
    relearn(room);
    return shown;
}

void Detector::admit(const double* row, Scratch& room) {
    admitted_ = std::min<std::uint64_t>(admitted_ + 1, kLonger * plan_.events);
    std::size_t slot = sample_.size();
    if (slot == plan_.events) slot = static_cast<std::size_t>(random_.below(std::max<std::uint64_t>(admitted_, 1)));
    if (slot >= plan_.events) return;
    sample_.put(slot, row, room.event);
    usual_[slot] = room.nearest.mean(Nearest::kMost, sample_.step()) + room.event.beyond;
}

void Detector::begin() {
    CodedSample sample(plan_.width, plan_.events, plan_.as_bytes);
    sample.begin(waiting_.data(), std::min(size(), plan_.events));
    sample_ = std::move(sample);
    std::vector<double>().swap(waiting_);
    admitted_ = sample_.size();
    usual_.assign(plan_.events, 0.0);
    trees_ = IsolationTrees(plan_.trees);
    for (auto& ring : last_) ring.assign(plan_.window, 0.0);
    scratch_ = scratch();
    for (std::size_t slot = 0; slot < sample_.size(); ++slot) measure_neighbours(slot, scratch_);
    trees_.relearn(plan_.trees, sample_, random_);
    std::vector<Views> first;
    for (std::size_t slot = 0; slot < sample_.size(); ++slot) {
        sample_.coded(slot, scratch_.event);
        first.push_back(views(scratch_, slot));
        push(first.back());
    }
    measure_views(scratch_);
    for (const Views& found : first) alarm_.learn(mixed(found));
}

void Detector::push(const Views& views) {
    for (std::size_t v = 0; v < kViews; ++v) last_[v][oldest_] = views.at[v];
    filled_ = std::min(filled_ + 1, plan_.window);
    oldest_ = (oldest_ + 1) % plan_.window;
}

void Detector::relearn(Scratch& room) {
    const bool doubled = seen_ <= kLastDoubling && seen_ % 100 == 0 && std::has_single_bit(seen_ / 100);
    if (doubled || seen_ % kColumns == 0) measure_columns(room);
    if (doubled) {
        for (std::size_t slot = 0; slot < sample_.size(); ++slot) measure_neighbours(slot, room);
        trees_.relearn(plan_.trees, sample_, random_);
    }
    if (seen_ % neighbours_often(plan_) == 0) {
        measure_neighbours(next_, room);
        next_ = (next_ + 1) % sample_.size();
    }
    if (seen_ % kOften == 0) {
        trees_.relearn(std::max<std::size_t>(plan_.trees / 16, 1), sample_, random_);
        measure_views(room);
    }
}

void Detector::measure_columns(Scratch& room) {
    sample_.measure(room.values.data(), [&](std::size_t column, auto moved) { trees_.recode(column, moved); });
}

void Detector::measure_neighbours(std::size_t slot, Scratch& room) {
    sample_.coded(slot, room.event);
    sample_.distances(room.event, room.distances.data());
    sample_.nearest(room.distances.data(), slot, room.nearest);
    usual_[slot] = room.nearest.mean(Nearest::kMost, sample_.step());
}

// Middle and spread of the last values of each view, and the tenth of the first of them: what is below is not admitted.
void Detector::measure_views(Scratch& room) {
    for (std::size_t v = 0; v < kViews; ++v) {
        const auto begin = room.values.begin(), end = std::copy_n(last_[v].begin(), filled_, begin);
        const auto half = begin + (end - begin) / 2, tenth = begin + (end - begin) / 10;
        std::nth_element(begin, half, end);
        std::nth_element(begin, tenth, half);
        middle_[v] = *half;
        spread_[v] = std::max(*half - *tenth, kNarrow[v]);
        if (v > 0) continue;
        if (known_ == kThresholds) std::copy(thresholds_ + 1, thresholds_ + kThresholds, thresholds_), --known_;
        thresholds_[known_++] = *tenth;
    }
}

void Detector::widen(std::size_t width, std::size_t outside) {
    Detector wide(*this);
    wide.plan_ = Plan::of(width, plan_.memory, outside);
    if (!ready()) {
        std::vector<double> rows;
        rows.reserve(std::max(wide.plan_.first, size()) * width);
        for (const double* row = waiting_.data(); row != waiting_.data() + waiting_.size(); row += plan_.width) {
            rows.insert(rows.end(), row, row + plan_.width);
            rows.resize(rows.size() + width - plan_.width);
        }
        wide.waiting_ = std::move(rows);
        if (wide.size() >= wide.plan_.first) wide.begin();
    } else {
        wide.sample_ = sample_.widened(width, wide.plan_.events, wide.plan_.as_bytes);
        for (std::size_t c = 0; c < plan_.width; ++c)
            wide.trees_.recode(c, [&](std::int32_t code) { return wide.sample_.converted(code, sample_); });
        wide.usual_.resize(wide.plan_.events);
        wide.usual_.shrink_to_fit();
        wide.next_ %= wide.sample_.size();
        wide.admitted_ = std::min<std::uint64_t>(admitted_, kLonger * wide.plan_.events);
        wide.scratch_ = wide.scratch();
    }
    *this = std::move(wide);
}

// Stored events, as far as they are kept.
std::vector<double> Detector::rows() const {
    if (!ready()) return waiting_;
    std::vector<double> rows(sample_.size() * plan_.width);
    for (std::size_t slot = 0; slot < sample_.size(); ++slot)
        for (std::size_t c = 0; c < plan_.width; ++c) rows[slot * plan_.width + c] = sample_.value(slot, c);
    return rows;
}

Detector Detector::merged(std::span<const Detector* const> parts, std::span<const double> shares, std::size_t memory,
                          std::size_t outside) {
    const Detector& first = *parts[0];
    Detector whole(first.plan_.width, memory, 0.5, first.random_.seed, outside);
    whole.alarm_ = first.alarm_;
    std::vector<const AlarmRate*> alarms;
    std::size_t stored = 0;
    for (const Detector* part : parts) {
        whole.seen_ += part->seen_, whole.random_.counter += part->random_.counter;
        whole.admitted_ += part->ready() ? part->admitted_ : part->size();
        alarms.push_back(&part->alarm_);
        stored += part->size();
    }
    whole.admitted_ = std::min<std::uint64_t>(whole.admitted_, kLonger * whole.plan_.events);
    const std::uint64_t admitted = whole.admitted_;
    for (std::size_t i = 0; i < parts.size();
         ++i) {  // events of a random slot each: the first ones are as good as others
        const std::vector<double> rows = parts[i]->rows();
        const auto even = static_cast<std::size_t>(shares[i] * static_cast<double>(whole.plan_.events));
        const std::size_t count = stored <= whole.plan_.events ? parts[i]->size() : std::min(even, parts[i]->size());
        whole.waiting_.insert(whole.waiting_.end(), rows.begin(),
                              rows.begin() + static_cast<std::ptrdiff_t>(count * first.plan_.width));
    }
    whole.alarm_.merge(alarms, shares);
    if (whole.size() < whole.plan_.first) return whole;
    const AlarmRate alarm = whole.alarm_;
    whole.begin();
    whole.alarm_ = alarm, whole.admitted_ = admitted;
    bool begun = false;
    for (const Detector* part : parts) begun = begun || part->ready();
    if (!begun) return whole;
    // What is usual along a stream is known to those that saw one: a sample holds no anomalies.
    whole.filled_ = whole.oldest_ = whole.known_ = 0, whole.late_ = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Detector& part = *parts[i];
        if (!part.ready()) continue;
        const auto even = static_cast<std::size_t>(shares[i] * static_cast<double>(whole.plan_.window) + 1);
        const std::size_t count = std::min(even, part.filled_), window = part.plan_.window;
        for (std::size_t back = count; back > 0; --back) {
            const std::size_t at = (part.oldest_ + window - back) % window;
            whole.push({{part.last_[0][at], part.last_[1][at], part.last_[2][at]}});
        }
    }
    whole.measure_views(whole.scratch_);
    return whole;
}

void Detector::visit(Archive& archive) {
    std::vector<std::int64_t> width{static_cast<std::int64_t>(plan_.width)};
    archive.numbers("width", width, 1);
    if (width[0] != static_cast<std::int64_t>(plan_.width)) archive.refuse("width", "does not fit");
    if (archive.loads ? archive.has("outside") : plan_.outside > 0) {
        std::uint64_t outside = plan_.outside;
        archive.count("outside", outside);
        if (outside > plan_.memory) archive.refuse("outside", "is more than the memory of the detector");
        plan_ = Plan::of(plan_.width, plan_.memory, outside);
    }
    std::uint64_t classes = 0, begun = ready();
    archive.count("classes", classes);
    archive.count("seen", seen_);
    archive.number("seed", random_.seed);
    archive.number("drawn", random_.counter);
    archive.scope = "alarm.";
    alarm_.visit(archive);
    archive.scope = "";
    archive.count("begun", begun);
    if (begun) return visit_begun(archive);
    archive.numbers("waiting", waiting_);
    if (waiting_.size() != seen_ * plan_.width || seen_ >= plan_.first)
        archive.refuse("waiting", "does not fit the others");
}

void Detector::visit_begun(Archive& archive) {
    if (archive.loads) {
        sample_ = CodedSample(plan_.width, plan_.events, plan_.as_bytes);
        trees_ = IsolationTrees(plan_.trees);
        scratch_ = scratch();
    }
    auto counted = [&](const char* name, auto& value, std::uint64_t most) {
        std::uint64_t count = value;
        archive.count(name, count);
        if (count > most) archive.refuse(name, "is out of range");
        value = static_cast<std::remove_reference_t<decltype(value)>>(count);
    };
    sample_.visit(archive);
    if (!ready()) archive.refuse("size", "is no sample");
    archive.numbers("usual", usual_, plan_.events);
    if (std::any_of(usual_.begin(), usual_.end(), [](double usual) { return usual < 0; }))
        archive.refuse("usual", "is negative");
    trees_.visit(archive, plan_.width);
    counted("filled", filled_, plan_.window);
    counted("oldest", oldest_, plan_.window - 1);
    counted("admitted", admitted_, kLonger * plan_.events);
    counted("next", next_, sample_.size() - 1);
    for (std::size_t v = 0; v < kViews; ++v)
        archive.numbers(("view" + std::to_string(v)).c_str(), last_[v], plan_.window);
    auto fixed = [&](const char* name, double* values, std::size_t count) {
        std::vector<double> list(values, values + count);
        archive.numbers(name, list, count);
        std::copy(list.begin(), list.end(), values);
    };
    fixed("middle", middle_, kViews);
    fixed("spread", spread_, kViews);
    fixed("thresholds", thresholds_, kThresholds);
    counted("known", known_, kThresholds);
    archive.number("late", late_);
    if (filled_ == 0 || known_ == 0 ||
        !std::all_of(spread_, spread_ + kViews, [](double spread) { return spread > 0; }))
        archive.refuse("spread", "is not positive");
}

}  // namespace gristmill::novelty
