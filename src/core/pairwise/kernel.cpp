#include "core/pairwise/kernel.hpp"

namespace gristmill {

KernelRanker::KernelRanker(Kernel kernel, std::unique_ptr<Points> points, const Settings& settings, Buffer buffer,
                           std::uint64_t seed)
    : settings_(settings), f_(std::move(kernel), std::move(points), 1, false, settings.average),
      now_{PairStream(std::move(buffer), 0, seed), {}, {}, {}, {}, 0.0} {
    const std::size_t size = now_.stream.buffer.size();
    now_.slot.assign(size, 0);
    now_.scores.resize(padded(size));
    now_.gram.resize(size * padded(size));
    for (auto* v : {&slopes_, &coefs_, &moved_}) v->resize(padded(size));
    if (settings.drop != Drop::nothing) f_.set_limit(settings.size + size + 1);
    if (settings.drop == Drop::merge) f_.keep_partners();
}

void KernelRanker::learn(const Batch& batch, std::span<const double> labels, double* scores, const Poll& poll) {
    Chunk chunk{f_.make_lookahead(batch), labels, scores};
    const std::size_t rows = batch_count(batch);
    auto load = [&](std::size_t first, std::size_t count) {
        chunk.lookahead.load(f_.points(), first, count, f_.size() + count);
    };
    if (rows == 1 && f_.plan_is_readonly()) {
        load(0, 1);
        return event(chunk, 0);
    }
    Now before = now_;
    before.stream.buffer = now_.stream.buffer.separate();
    f_.begin();
    try {
        for (std::size_t first = 0; first < rows;) {
            const std::size_t count = f_.window(rows - first);
            load(first, count);
            for (std::size_t i = 0; i < count; ++i) event(chunk, i);
            first += count;
            if (poll) poll();
        }
    } catch (...) {
        f_.rollback();
        now_ = std::move(before);
        throw;
    }
    f_.keep();
}

// Plans an event: the coefficient of each buffer entry and of the newcomer, the scores afterwards, the norm.
void KernelRanker::plan(const double* row, double self, double label, double score) {
    const std::size_t filled = now_.stream.filled(), stride = padded(now_.stream.buffer.size());
    const auto& isa = isa_score();
    std::fill(slopes_.begin(), slopes_.end(), 0.0);
    order_ = {};
    double slope_sum = 0;
    for (std::size_t j = 0; j < filled; ++j) {
        if (now_.stream.rows.label(j) == label) continue;
        const double margin = label * (score - now_.scores[j]);
        order_.pair(margin);
        slope_sum += slopes_[j] = settings_.loss.slope(margin);
    }
    const std::uint64_t t = now_.stream.seen + 1;
    keep_ = settings_.pace.keep(t);
    const double pairs = static_cast<double>(settings_.opposite_only ? order_.pairs : filled);
    const double step = slope_sum == 0 ? 0.0 : settings_.pace.step(t) * label / pairs;
    newcomer_ = -step * slope_sum;
    for (std::size_t j = 0; j < coefs_.size(); ++j) coefs_[j] = step * slopes_[j];
    const double before = keep_ * score;
    after_ = before + newcomer_ * self;
    for (std::size_t j = 0; j < filled; ++j) after_ += coefs_[j] * row[now_.slot[j]];
    // ||f + g||^2 = ||f||^2 + <g, f + (f + g)>
    norm_after_ = keep_ * keep_ * now_.norm2 + newcomer_ * (before + after_);
    std::fill(moved_.begin(), moved_.end(), 0.0);
    for (std::size_t j = 0; j < filled; ++j) {
        const double old = keep_ * now_.scores[j];
        moved_[j] = step == 0 ? old
                              : old + isa.dot(now_.gram.data() + j * stride, coefs_.data(), stride) +
                                    newcomer_ * row[now_.slot[j]];
        norm_after_ += coefs_[j] * (old + moved_[j]);
    }
}

void KernelRanker::commit_scores() {
    now_.scores.swap(moved_);
    now_.norm2 = std::max(norm_after_, 0.0);
    if (keep_ == 0)
        for (std::size_t slot = 0; slot < f_.size(); ++slot) f_.adjust(slot, 0, -f_.coef(slot, 0));
    else f_.shrink(keep_);
    for (std::size_t j = 0; j < now_.stream.filled(); ++j)
        if (coefs_[j] != 0) f_.adjust(now_.slot[j], 0, coefs_[j]);
    const double factor = stay_inside();
    newcomer_ *= factor;
    after_ *= factor;
}

double KernelRanker::stay_inside() {
    if (!(settings_.radius > 0) || now_.norm2 <= settings_.radius * settings_.radius) return 1;
    const double factor = settings_.radius / std::sqrt(now_.norm2);
    f_.shrink(factor);
    isa_score().scale(factor, now_.scores.data(), now_.scores.size());
    now_.norm2 = settings_.radius * settings_.radius;
    return factor;
}

void KernelRanker::event(Chunk& chunk, std::size_t i) {
    Lookahead& lookahead = chunk.lookahead;
    const std::size_t at = lookahead.first + i;
    const double* row = lookahead.row(i);
    const double label = chunk.labels[at], self = lookahead.self(i), score = f_.score(0, row);
    if (!std::isfinite(score)) diverged(at);
    if (chunk.out) chunk.out[at] = f_.averages() ? f_.average_score(0, row) : score;
    plan(row, self, label, score);
    if (!std::isfinite(after_) || !std::isfinite(norm_after_)) diverged(at);
    auto& stream = now_.stream;
    const bool counts = stream.filled() > 0;
    f_.reserve(f_.size() + 1);
    std::span<const double> x;
    if (const auto* dense = std::get_if<DenseRows<double>>(lookahead.batch)) x = {dense->row(at), dense->width};
    stream.buffer.offer(stream.random, stream.change, x, label);
    if (counts && f_.averages()) f_.tick();
    order_.commit(stream, label);
    commit_scores();
    const auto& change = stream.change;
    const bool enters = !change.slots.empty() || std::find(change.sources.begin(), change.sources.end(),
                                                           change.sources.size()) != change.sources.end();
    if (enters || newcomer_ != 0) {
        const std::size_t slot = f_.size();
        f_.add(slot, static_cast<std::int64_t>(stream.seen), *lookahead.batch, at, {&newcomer_, 1}, row, self,
               {&label, 1});
        now_.uses.push_back(0);
        lookahead.row(i)[slot] = self;
        lookahead.stored(i, slot);
        if (!change.slots.empty() || !change.sources.empty()) enter(row, slot);
    } else if (!change.sources.empty()) {
        enter(row, f_.size());
    }
    stream.rows.apply(change, nullptr, label, static_cast<std::int64_t>(stream.seen));
    ++stream.seen;
    keep_budget(lookahead, i);
    if (stream.seen % 512 == 0) refresh();
}

// Updates the slots of the buffer after `change`; the newcomer is in `slot`.
void KernelRanker::enter(const double* row, std::size_t slot) {
    auto& stream = now_.stream;
    const std::size_t filled = stream.filled(), stride = padded(stream.buffer.size());
    std::vector<std::size_t> fresh = stream.change.slots;
    if (const auto& sources = stream.change.sources; !sources.empty()) {
        gather(sources);
        for (std::size_t j = 0; j < sources.size(); ++j)
            if (sources[j] == sources.size()) fresh.push_back(j);
    }
    for (const std::size_t j : fresh) {
        now_.slot[j] = slot;
        now_.scores[j] = after_;
    }
    for (const std::size_t j : fresh)
        for (std::size_t k = 0; k < filled; ++k)
            now_.gram[j * stride + k] = now_.gram[k * stride + j] = row[now_.slot[k]];
    std::fill(now_.uses.begin(), now_.uses.end(), 0);
    for (std::size_t j = 0; j < filled; ++j) ++now_.uses[now_.slot[j]];
}

void KernelRanker::gather(const std::vector<std::size_t>& sources) {
    const auto slot = now_.slot;
    const auto scores = now_.scores, gram = now_.gram;
    const std::size_t size = sources.size(), stride = padded(size);
    for (std::size_t j = 0; j < size; ++j) {
        if (sources[j] == size) continue;
        now_.slot[j] = slot[sources[j]];
        now_.scores[j] = scores[sources[j]];
        for (std::size_t k = 0; k < size; ++k)
            if (sources[k] != size) now_.gram[j * stride + k] = gram[sources[j] * stride + sources[k]];
    }
}

MergePartners::Fold KernelRanker::choose_evicted(std::size_t outside) {
    const Points& points = f_.points();
    if (settings_.drop == Drop::merge) {  // points of the buffer may be partners but are not evicted
        std::vector<std::uint8_t> may_go(f_.size());
        for (std::size_t slot = 0; slot < f_.size(); ++slot) may_go[slot] = now_.uses[slot] == 0;
        return f_.cheapest_fold(may_go);
    }
    if (settings_.drop == Drop::random) {
        std::uint64_t left = now_.stream.random.below(outside);
        for (std::size_t slot = 0;; ++slot)
            if (now_.uses[slot] == 0 && left-- == 0) return {slot};
    }
    std::size_t chosen = Points::npos;
    for (std::size_t slot = points.oldest(); slot != Points::npos; slot = points.newer(slot)) {
        if (now_.uses[slot] > 0) continue;
        if (chosen == Points::npos || f_.magnitude(slot) < f_.magnitude(chosen)) chosen = slot;
        if (settings_.drop == Drop::oldest) break;
    }
    return {chosen};
}

void KernelRanker::keep_budget(Lookahead& lookahead, std::size_t i) {
    std::size_t outside = 0;
    for (std::size_t slot = f_.size(); slot-- > 0;) {
        if (now_.uses[slot] > 0) continue;
        const bool idle = f_.coef(slot, 0) == 0 && (!f_.averages() || f_.average_coef(slot, 0) == 0);
        if (idle) drop(lookahead, i, {slot});  // the last slot moves here; it has been checked already
        else ++outside;
    }
    if (settings_.drop == Drop::nothing) return;
    for (; outside > settings_.size; --outside) drop(lookahead, i, choose_evicted(outside));
    stay_inside();  // merging may increase the norm
}

void KernelRanker::move_term(std::size_t slot, double by) {
    row_.resize(padded(f_.size()));
    f_.points().stored_row(f_.kernel(), slot, row_.data());
    now_.norm2 = std::max(now_.norm2 + by * (2 * f_.score(0, row_.data()) + by * row_[slot]), 0.0);
    for (std::size_t j = 0; j < now_.stream.filled(); ++j) now_.scores[j] += by * row_[now_.slot[j]];
    f_.adjust(slot, 0, by);
}

void KernelRanker::drop(Lookahead& lookahead, std::size_t i, const MergePartners::Fold& evicted) {
    const std::size_t slot = evicted.slot;
    if (const double c = f_.coef(slot, 0); c != 0) {
        move_term(slot, -c);
        if (evicted.partner != MergePartners::kNone) move_term(evicted.partner, evicted.share * c);
    }
    // in past hypotheses as well
    if (evicted.partner != MergePartners::kNone) f_.fold(slot, evicted.partner, evicted.share, nullptr);
    const std::size_t last = f_.size() - 1;
    f_.remove(slot, nullptr);
    now_.uses[slot] = now_.uses[last];
    now_.uses.pop_back();
    if (slot == last) return;
    for (std::size_t& s : now_.slot)
        if (s == last) s = slot;
    lookahead.moved(i, last, slot);
}

// Incrementally updated sums accumulate rounding: recompute them now and then.
void KernelRanker::refresh() {
    row_.resize(padded(f_.size()));
    for (std::size_t j = 0; j < now_.stream.filled(); ++j) {
        f_.points().stored_row(f_.kernel(), now_.slot[j], row_.data());
        now_.scores[j] = f_.score(0, row_.data());
    }
    if (settings_.radius > 0) now_.norm2 = std::max(f_.norm2(), 0.0);
}

void KernelRanker::score(const Batch& batch, double* scores) const { f_.scores(batch, scores); }

std::size_t KernelRanker::bytes() const {
    std::size_t total = sizeof *this + f_.bytes() + now_.stream.rows.bytes();
    for (const auto* v : {&now_.scores, &now_.gram, &slopes_, &coefs_, &moved_})
        total += v->capacity() * sizeof(double);
    return total + (now_.slot.capacity() + f_.size()) * sizeof(std::size_t);
}

void KernelRanker::visit(Archive& archive) {
    now_.stream.visit(archive);
    archive.numbers("scores", now_.scores, now_.scores.size());
    archive.numbers("gram", now_.gram, now_.gram.size());
    archive.number("norm2", now_.norm2);
    f_.visit(archive, now_.stream.seen);
    std::vector<std::int64_t> slots(now_.slot.begin(), now_.slot.end());
    archive.numbers("slots", slots, now_.slot.size());
    if (!archive.loads) return;
    now_.uses.assign(f_.size(), 0);
    for (std::size_t j = 0; j < slots.size(); ++j) {
        now_.slot[j] = static_cast<std::size_t>(slots[j]);
        if (j >= now_.stream.filled()) continue;
        if (now_.slot[j] >= f_.size()) archive.refuse("slots", "names points that are not stored");
        ++now_.uses[now_.slot[j]];
    }
}

}  // namespace gristmill
