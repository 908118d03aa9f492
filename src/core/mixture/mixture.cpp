#include "core/mixture/mixture.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/mixture/novelty_mixture.hpp"

namespace gristmill {

// ---- weights ------------------------------------------------------------------------------------------------------

void Hedge::step(std::span<const double> losses) {
    double least = elementary::kInf, alive = 0, mean = 0;
    for (std::size_t e = 0; e < weights_.size(); ++e)
        if (weights_[e] > 0) {
            least = std::min(least, losses[e]);
            alive += 1;
            mean += weights_[e] * losses[e];
        }
    if (gap_ == 0 && mean - least > kRounding * mean) gap_ = kBegin * (mean - least);
    if (alive < 2 || gap_ == 0) return;
    const double eta = std::min(elementary::quick_log(alive) / gap_, kMaxRate);
    trial_.resize(weights_.size());
    double sum = 0;
    for (std::size_t e = 0; e < weights_.size(); ++e)
        sum += trial_[e] = weights_[e] > 0 ? weights_[e] * elementary::exp(-eta * (losses[e] - least)) : 0.0;
    gap_ = std::max(least_, kKeep * gap_ + std::max(0.0, mean - (least - elementary::quick_log(sum) / eta)));
    for (std::size_t e = 0; e < weights_.size(); ++e)
        if (weights_[e] > 0) weights_[e] = (1 - share_) * (trial_[e] / sum) + share_ / alive;
}

double Hedge::uniform_share() const {
    double alive = 0;
    for (const double w : weights_) alive += w > 0;
    return share_ / alive;
}

void Hedge::leave(std::size_t expert) {
    weights_[expert] = 0;
    normalise();
}

void Hedge::enter(std::size_t expert) {
    weights_[expert] = std::max(share_, 1e-3);
    normalise();
}

void Hedge::insert(std::size_t position) {
    weights_.insert(weights_.begin() + static_cast<std::ptrdiff_t>(position), 0.0);
    enter(position);
}

void Hedge::erase(std::size_t position) {
    weights_.erase(weights_.begin() + static_cast<std::ptrdiff_t>(position));
    normalise();
}

void Hedge::normalise() {
    double sum = 0;
    for (const double w : weights_) sum += w;
    if (sum > 0)
        for (double& w : weights_) w /= sum;
}

void Hedge::visit(Archive& archive) {
    archive.number("hedge_gap", gap_);
    const std::size_t variants = weights_.size();
    archive.numbers("hedge_weights", weights_);
    if (!archive.loads) return;
    if (weights_.size() != variants) archive.refuse("hedge_weights", "does not fit the others");
    const bool valid =
        gap_ >= 0 && std::all_of(weights_.begin(), weights_.end(), [](double w) { return w >= 0 && w <= 1; });
    if (!valid) archive.refuse("hedge_weights", "holds a number out of range");
}

// ---- the mixture --------------------------------------------------------------------------------------------------

Mixture::Mixture(Kind kind, std::size_t experts, double share, double quantile)
    : kind_(kind), quantile_(quantile), hedge_(kind == Kind::classes || quantile > 0 ? 2 * experts : experts, share,
                                               kind == Kind::classes ? kMinGap : 0.0),
      shifts_(quantile > 0 ? experts : 0), recent_(variants()), counted_(experts), errors_(experts), events_(experts) {
    for (std::size_t v = 0; kind == Kind::classes && v < variants(); ++v) calibrations_.emplace_back(v < experts);
}

void Mixture::leave(std::size_t expert) {
    each_variant(expert, [&](std::size_t v) { hedge_.leave(v); });
}

void Mixture::enter(std::size_t expert) {
    each_variant(expert, [&](std::size_t v) { hedge_.enter(v); });
}

std::vector<double> Mixture::weights() const {
    std::vector<double> sums(experts());
    for (std::size_t v = 0; v < variants(); ++v) sums[v % experts()] += hedge_.weights()[v];
    return sums;
}

std::vector<double> Mixture::recent() const {
    std::vector<double> least(recent_.begin(), recent_.begin() + static_cast<std::ptrdiff_t>(experts()));
    for (std::size_t v = experts(); v < variants(); ++v)
        least[v - experts()] = std::min(least[v - experts()], recent_[v]);
    return least;
}

void Mixture::add_classes(std::size_t classes) {
    for (; classes_ < classes; ++classes_) {
        if (classes_ < 2) continue;
        for (Calibration& calibration : calibrations_) {
            if (classes_ == 2) calibration.split();
            calibration.add();
        }
    }
}

bool Mixture::counts(std::size_t expert) const {
    const double uniform_share = hedge_.uniform_share();
    bool found = false;
    each_variant(expert, [&](std::size_t v) { found = found || hedge_.weights()[v] - uniform_share > 0; });
    return found;
}

void Mixture::make_room() {
    hedge_.make_room();
    active_.reserve(experts());
    shares_.resize(variants() * columns());
    losses_.reserve(variants());
    for (auto& shift : shifts_) shift.make_room();
    if (history_.capacity() < history_.size() + line() && history_.size() < kLines * line())
        history_.reserve(std::min(2 * history_.size() + line(), kLines * line()));
}

void Mixture::add_expert() {
    const std::size_t before = experts(), old_line = line();
    auto insert = [](auto& list, std::size_t at, auto value) {
        list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), std::move(value));
    };
    if (kind_ == Kind::classes) {  // the second variant first, which is behind
        hedge_.insert(2 * before), insert(recent_, 2 * before, 0.0);
        for (const std::size_t at : {2 * before, before}) {
            Calibration fresh(at == before);
            for (std::size_t c = 2; c < classes_; ++c) {
                if (c == 2) fresh.split();
                fresh.add();
            }
            insert(calibrations_, at, fresh);
        }
    }
    hedge_.insert(before), insert(recent_, before, 0.0);
    counted_.push_back(0), errors_.push_back(0), events_.push_back(0);
    std::vector<float> longer;
    for (std::size_t from = 0; from < history_.size(); from += old_line) {
        const auto entry = history_.begin() + static_cast<std::ptrdiff_t>(from);
        const auto weights = entry + 2, means = weights + static_cast<std::ptrdiff_t>(before);
        longer.insert(longer.end(), entry, means);
        longer.push_back(0.0f);
        longer.insert(longer.end(), means, means + static_cast<std::ptrdiff_t>(before));
        longer.push_back(0.0f);
    }
    history_ = std::move(longer);
}

void Mixture::drop_last_expert() {
    const std::size_t last = experts() - 1, old_line = line();
    auto erase = [](auto& list, std::size_t at) { list.erase(list.begin() + static_cast<std::ptrdiff_t>(at)); };
    if (kind_ == Kind::classes) {
        const std::size_t second = 2 * last + 1;
        hedge_.erase(second), erase(recent_, second), erase(calibrations_, second), erase(calibrations_, last);
    }
    hedge_.erase(last), erase(recent_, last);
    counted_.pop_back(), errors_.pop_back(), events_.pop_back();
    std::vector<float> shorter;
    for (std::size_t from = 0; from < history_.size(); from += old_line)
        for (std::size_t at = 0; at < old_line; ++at)
            if (at != 2 + last && at != old_line - 1) shorter.push_back(history_[from + at]);
    history_ = std::move(shorter);
}

void Mixture::reset_recent() {
    std::fill(recent_.begin(), recent_.end(), 0.0);
    std::fill(counted_.begin(), counted_.end(), 0.0);
}

void Mixture::expert_prediction(std::size_t variant, const double* scores, double* out) const {
    if (kind_ == Kind::numbers) *out = *scores + (variant < shifts_.size() ? shifts_[variant].shift(quantile_) : 0.0);
    else calibrations_[variant].probabilities({scores, outputs()}, columns(), out);
}

Mixture::RowLoss Mixture::loss_of(const double* shares, std::size_t label) const {
    const double error =
        std::max_element(shares, shares + columns()) - shares == static_cast<std::ptrdiff_t>(label) ? 0.0 : 1.0;
    const double log_loss = std::min(kMaxLogLoss, -elementary::quick_log(std::max(shares[label], kUnseenProbability)));
    return {error, (1 - kLogLossShare) * error + kLogLossShare * log_loss};
}

void Mixture::mix(std::span<const ExpertScores> expert_scores, std::size_t rows, double* out) const {
    const std::size_t k = columns();
    std::vector<double> shares(k);
    const double uniform_share = hedge_.uniform_share();
    for (std::size_t r = 0; r < rows; ++r) {
        double total = 0;
        std::fill(out + r * k, out + (r + 1) * k, 0.0);
        for (const ExpertScores& one : expert_scores)
            each_variant(one.expert, [&](std::size_t v) {
                const double weight = hedge_.weights()[v] - uniform_share;
                if (!(weight > 0)) return;
                expert_prediction(v, one.scores + r * outputs(), shares.data());
                total += weight;
                for (std::size_t c = 0; c < k; ++c) out[r * k + c] += weight * shares[c];
            });
        if (total > 0)
            for (std::size_t c = 0; c < k; ++c) out[r * k + c] /= total;
        if (quantile_ > 0) out[r] += correction_.shift();
    }
}

void Mixture::forget_residuals() {
    for (auto& shift : shifts_) shift = {};
    correction_ = {};
}

void Mixture::learn(std::span<const ExpertScores> expert_scores, std::size_t rows, std::span<const double> labels,
                    std::size_t known_classes, double* out, const double* weights) {
    const std::size_t k = columns();
    for (std::size_t r = 0; r < rows; ++r, out += k) {
        find_active(expert_scores, r);
        mix_row(expert_scores, r, out);
        if (r == 0 && kind_ == Kind::classes) discount_new_classes(out, std::max<std::size_t>(known_classes, 2));
        const double error = kind_ == Kind::classes ? loss_of(out, static_cast<std::size_t>(labels[r])).error
                                                    : error_of(out[0], labels[r]);
        if (seen_++ == 0) first_error_ = error;
        own_errors_ += error;
        update_experts(expert_scores, r, labels[r], weights ? weights[r] : 1.0);
        if (quantile_ > 0) correction_.learn(labels[r] - out[0], quantile_);
        if (static_cast<double>(seen_) >= step_ * static_cast<double>(history_.size() / line() + 1)) append_history();
    }
}

// Removes experts whose scores are not finite, and marks the others as active.
void Mixture::find_active(std::span<const ExpertScores> expert_scores, std::size_t row) {
    active_.assign(experts(), 0);
    for (const ExpertScores& one : expert_scores) {
        const double* scores = one.scores + row * outputs();
        double weight = 0;
        each_variant(one.expert, [&](std::size_t v) { weight += hedge_.weights()[v]; });
        if (weight == 0) continue;
        if (std::all_of(scores, scores + outputs(), [](double s) { return std::isfinite(s); })) active_[one.expert] = 1;
        else leave(one.expert);
    }
}

void Mixture::mix_row(std::span<const ExpertScores> expert_scores, std::size_t row, double* out) {
    const std::size_t k = columns();
    shares_.resize(variants() * k);
    std::fill(out, out + k, 0.0);
    double total = 0;
    const double uniform_share = hedge_.uniform_share();
    for (const ExpertScores& one : expert_scores) {
        if (!active_[one.expert]) continue;
        each_variant(one.expert, [&](std::size_t v) {
            double* shares = shares_.data() + v * k;
            const double weight = std::max(0.0, hedge_.weights()[v] - uniform_share);
            expert_prediction(v, one.scores + row * outputs(), shares);
            total += weight;
            for (std::size_t c = 0; c < k; ++c) out[c] += weight * shares[c];
        });
    }
    if (total > 0)
        for (std::size_t c = 0; c < k; ++c) out[c] /= total;
    if (quantile_ > 0) out[0] += correction_.shift();
}

// No expert can know a class that first occurs in this row.
void Mixture::discount_new_classes(double* out, std::size_t known) const {
    const std::size_t k = columns();
    if (known >= k) return;
    double sum = 0;
    for (std::size_t c = known; c < k; ++c) out[c] = kUnseenProbability;
    for (std::size_t c = 0; c < k; ++c) sum += out[c];
    for (std::size_t c = 0; c < k; ++c) out[c] /= sum;
}

void Mixture::update_experts(std::span<const ExpertScores> expert_scores, std::size_t row, double label,
                             double weight) {
    losses_.assign(variants(), 0.0);
    // The first event is not scored: no expert has seen a target yet.
    const double most =
        seen_ == 1 ? first_error_ : kMaxErrorRatio * (own_errors_ - first_error_) / static_cast<double>(seen_ - 1);
    for (const ExpertScores& one : expert_scores) {
        const std::size_t e = one.expert;
        if (!active_[e]) continue;
        double error = 0;  // of the last variant, which has no shift
        each_variant(e, [&](std::size_t v) {
            const double* shares = shares_.data() + v * columns();
            const double off = error_of(shares[0], label);
            RowLoss found{off, std::min(off, most)};
            if (kind_ == Kind::classes) {
                found = loss_of(shares, static_cast<std::size_t>(label));
                calibrations_[v].learn({one.scores + row * outputs(), outputs()}, static_cast<std::size_t>(label),
                                       shares, weight);
            }
            losses_[v] = weight * found.loss;
            recent_[v] += weight * found.loss;
            error = found.error;
        });
        if (quantile_ > 0) shifts_[e].learn(label - one.scores[row]);
        counted_[e] += 1;
        errors_[e] += error;
        events_[e] += 1;
    }
    hedge_.step(losses_);
}

void Mixture::append_history() {
    if (history_.size() == kLines * line()) {  // keep every second line
        for (std::size_t kept = 0; kept < kLines / 2; ++kept)
            std::copy_n(history_.begin() + static_cast<std::ptrdiff_t>((2 * kept + 1) * line()), line(),
                        history_.begin() + static_cast<std::ptrdiff_t>(kept * line()));
        history_.resize(kLines / 2 * line());
        step_ *= 2;
    }
    if (static_cast<double>(seen_) < step_ * static_cast<double>(history_.size() / line() + 1)) return;
    if (history_.capacity() < history_.size() + line())
        history_.reserve(std::min(2 * history_.size() + line(), kLines * line()));
    history_.push_back(static_cast<float>(seen_));
    const auto mean = [](double sum, double count) {  // a float that is finite
        return static_cast<float>(std::min(sum / count, static_cast<double>(std::numeric_limits<float>::max())));
    };
    history_.push_back(mean(own_errors_, static_cast<double>(seen_)));
    for (std::size_t e = 0; e < experts(); ++e) {
        double weight = 0;
        each_variant(e, [&](std::size_t v) { weight += hedge_.weights()[v]; });
        history_.push_back(static_cast<float>(weight));
    }
    for (std::size_t e = 0; e < experts(); ++e) history_.push_back(mean(errors_[e], std::max(events_[e], 1.0)));
}

std::size_t Mixture::bytes() const {
    return bytes_for(classes_) - (kLines * line() - history_.capacity()) * sizeof(float);
}

std::size_t Mixture::bytes_for(std::size_t classes) const {
    const std::size_t outputs = kind_ == Kind::classes && classes > 2 ? classes : 1;
    return sizeof *this + kLines * line() * sizeof(float) + (4 * variants() + 4 * experts()) * sizeof(double) +
           shifts_.size() * ResidualQuantile::bytes() +
           calibrations_.size() * (sizeof(Calibration) + 3 * outputs * sizeof(double));
}

void Mixture::unite(std::span<const Part> parts, std::size_t classes) {
    constexpr double kLeastWeight = 1e-12;
    add_classes(classes);
    double gap = 0;
    bool begun = false;
    std::vector<double> logs(variants());
    std::vector<std::uint8_t> runs(variants());
    for (const Part& part : parts) {
        const Mixture& own = *part.mixture;
        for (std::size_t v = 0; v < variants(); ++v) recent_[v] += own.recent_[v];
        for (std::size_t e = 0; e < experts(); ++e) {
            counted_[e] += own.counted_[e];
            errors_[e] += own.errors_[e];
            events_[e] += own.events_[e];
        }
        own_errors_ += own.own_errors_;
        seen_ += own.seen_;
        gap += part.share * own.hedge_.gap();
        if (own.seen_ > 0 && !begun) first_error_ = own.first_error_, begun = true;
        const auto weights = own.hedge_.weights();
        const auto alive =
            static_cast<double>(std::count_if(weights.begin(), weights.end(), [](double w) { return w > 0; }));
        for (std::size_t v = 0; v < variants(); ++v) {
            const bool ran = part.runs[v % experts()] != 0;
            runs[v] |= ran;
            if (own.seen_ == 0 || alive == 0) continue;
            logs[v] += elementary::log(ran && weights[v] > 0 ? std::max(weights[v], kLeastWeight) : 1 / alive);
        }
    }
    const double most = *std::max_element(logs.begin(), logs.end());
    double sum = 0;
    for (std::size_t v = 0; v < variants(); ++v) sum += logs[v] = runs[v] ? elementary::exp(logs[v] - most) : 0.0;
    for (double& weight : logs) weight /= sum;
    hedge_.set(gap, std::move(logs));
    history_.clear();
    step_ = kFirstStep;
    while (step_ * (kLines / 2) < static_cast<double>(seen_)) step_ *= 2;
    for (std::size_t v = 0; v < calibrations_.size(); ++v) unite_calibration(v, parts);
    for (const Part& part : parts) correction_.add(part.mixture->correction_, part.share);
    for (std::size_t e = 0; e < shifts_.size(); ++e) {
        std::vector<std::vector<double>> lists;
        for (const Part& part : parts) lists.push_back(part.mixture->shifts_[e].values());
        shifts_[e].set(interleaved(lists));
    }
}

void Mixture::unite_calibration(std::size_t variant, std::span<const Part> parts) {
    const std::size_t all = std::max<std::size_t>(classes_, 2), count = Calibration::count(outputs());
    std::vector<double> sums(count), own(count);
    double total = 0, samples = 0;
    auto counts = [&](const Part& part) {
        return part.codes.size() == all && part.runs[variant % experts()] && part.share > 0;
    };
    for (const Part& part : parts)
        if (counts(part)) total += part.share;
    if (total == 0) return;
    for (const Part& part : parts) {
        if (!counts(part)) continue;
        part.mixture->calibrations_[variant].save([&](std::size_t at) -> double& { return own[at]; });
        samples += own[0];
        const double share = part.share / total, sign = outputs() == 1 && part.codes[0] == 1 ? -1.0 : 1.0;
        for (std::size_t at = 0; at < 5; ++at) sums[at] += share * own[at] * (at == 4 ? sign : 1.0);
        for (std::size_t o = 0; o < outputs(); ++o) {
            const std::size_t to = outputs() > 1 ? part.codes[o] : 0;
            sums[5 + to] += share * sign * own[5 + o];
            sums[5 + outputs() + to] += share * own[5 + outputs() + o];
        }
    }
    sums[0] = samples;
    calibrations_[variant].load(outputs(), [&](std::size_t at) { return sums[at]; });
}

void Mixture::visit(Archive& archive) {
    hedge_.visit(archive);
    const std::size_t m = experts();
    std::uint64_t classes = classes_;
    archive.things("classes", classes);
    if (archive.loads && kind_ == Kind::numbers && classes != 0)
        archive.refuse("classes", "is not 0, and numbers have no classes");
    archive.count("seen", seen_);
    archive.numbers("recent", recent_);
    archive.numbers("counted", counted_, m);
    if (archive.loads && recent_.size() != variants()) archive.refuse("recent", "does not fit the others");
    archive.numbers("errors", errors_, m);
    archive.numbers("events", events_, m);
    archive.number("own_errors", own_errors_);
    archive.number("first_error", first_error_);
    archive.number("history_step", step_);
    std::vector<double> lines(history_.begin(), history_.end());
    archive.numbers("history", lines);
    if (archive.loads) {
        if (lines.size() % line() != 0 || lines.size() > kLines * line() || !(step_ >= kFirstStep))
            archive.refuse("history", "does not fit the others");
        history_.assign(lines.begin(), lines.end());
        add_classes(classes);
    }
    if (quantile_ > 0) correction_.visit(archive);
    for (std::size_t e = 0; e < shifts_.size(); ++e)
        shifts_[e].visit(archive, ("residuals" + std::to_string(e)).c_str());
    const std::string outer = archive.scope;
    for (std::size_t e = 0; e < calibrations_.size(); ++e) {
        archive.scope = outer + std::to_string(e) + '.';
        calibrations_[e].visit(archive);
    }
    archive.scope = outer;
}

}  // namespace gristmill
