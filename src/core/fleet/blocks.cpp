// The memory of a fleet: blocks that grow with points and outputs, access to members, and checks of a chunk before it
// is learned.
#include "core/fleet/fleet.hpp"

#include <cstdio>

#include "core/kernels/points.hpp"

namespace gristmill {

template <class T>
Fleet<T>::Fleet(FleetParts parts, std::size_t count, std::span<const std::uint64_t> seeds)
    : parts_(std::move(parts)), kernel_(parts_.nodes), count_(count), limit_(member_limit(parts_.rule, parts_.budget)) {
    const std::vector<double> numbers = state_of(parts_.rule);
    shape_ = {parts_.width,
              1,
              numbers.size(),
              parts_.task,
              std::holds_alternative<DropRandom>(parts_.budget),
              parts_.scaling.on(),
              true,
              std::holds_alternative<Merge>(parts_.budget)};
    for (std::size_t i = 0; i < count; i += kWide) {
        blocks_.push_back(make(1));
        for (std::size_t l = 0; l < kWide; ++l)
            view(blocks_.back(), l).clear_to(seeds[seeds.size() == 1 ? 0 : std::min(i + l, count - 1)], numbers);
    }
}

template <class T>
std::shared_ptr<const MemberLayout> Fleet<T>::layout(std::size_t slots) {
    auto& found = layouts_[slots];
    if (!found) found = std::make_shared<const MemberLayout>(shape_, sizeof(T), slots, kWide);
    return found;
}

template <class T>
typename Fleet<T>::Block Fleet<T>::make(std::size_t slots) {
    Block block{layout(slots), {}};
    block.data.assign(block.layout->bytes, std::byte{0});
    return block;
}

template <class T>
void Fleet<T>::widen(Block& block, const MemberShape& old, std::size_t slots) {
    Block wider = make(slots);
    for (std::size_t l = 0; l < kWide; ++l)
        copy_member(View(block.data.data(), l, old, *block.layout), old, view(wider, l), shape_);
    block = std::move(wider);
}

// Reserves memory for these frames, so that nothing is allocated while learning.
template <class T>
void Fleet<T>::reserve(std::size_t frames) {
    for (Block& block : blocks_) {
        const std::size_t slots = block.layout->slots;
        if (slots == limit_) continue;  // do not touch its memory
        std::size_t most = 0;
        for (std::size_t l = 0; l < kWide; ++l) most = std::max(most, view(block, l).size());
        const std::size_t wanted = std::min(limit_, most + frames + 1);
        if (wanted > slots) widen(block, shape_, std::min(limit_, std::max(wanted, 2 * slots)));
    }
}

template <class T>
std::size_t Fleet<T>::bytes() const {
    std::size_t total = sizeof *this + blocks_.capacity() * sizeof(Block);
    for (const Block& block : blocks_) total += block.data.capacity();
    return total;
}

template <class T>
void Fleet<T>::sizes(std::int64_t* out) const {
    for (std::size_t i = 0; i < count_; ++i)
        out[i] = static_cast<std::int64_t>(view(blocks_[i / kWide], i % kWide).size());
}

template <class T>
void Fleet<T>::seen(std::int64_t* out) const {
    for (std::size_t i = 0; i < count_; ++i) out[i] = view(blocks_[i / kWide], i % kWide).seen();
}

template <class T>
void Fleet<T>::add_classes(std::size_t classes) {
    const MemberShape old = shape_;
    classes_ = std::max(classes_, classes);
    if (parts_.task != Task::classification || classes_ <= 2 || classes_ == old.outputs) return;
    if (classes_ >= View::kNoCode) throw std::invalid_argument("a fleet has room for 65534 classes");
    shape_.outputs = classes_;
    layouts_.clear();
    for (Block& block : blocks_) widen(block, old, block.layout->slots);
}

// ---- checks -------------------------------------------------------------------------------------------------------

template <class T>
void Fleet<T>::check(const FleetChunk<T>& chunk) const {
    const std::size_t width = shape_.width;
    // scaled rows are checked by the kernel while learning
    const bool plain = shape_.scaled || !kernel_.restricts_points();
    if (!chunk.present && !kernel_.restricts_points() && all_small(chunk.rows, chunk.frames * count_, width)) return;
    for (std::size_t e = 0; e < chunk.frames * count_; ++e) {
        if (chunk.present && !chunk.present[e]) continue;
        const T* x = chunk.rows + e * width;
        T zero = 0, square = 0;
        for (std::size_t j = 0; j < width; ++j) {
            zero += x[j] - x[j];
            square += x[j] * x[j];
        }
        // Rounding of the sum does not matter far from the limit.
        if (zero == T(0) && square < std::numeric_limits<T>::max() / 8 && plain) continue;
        const std::string where = "learner " + std::to_string(e % count_) + ", frame " + std::to_string(e / count_);
        for (std::size_t j = 0; j < width; ++j)
            if (!std::isfinite(x[j]))
                throw RowError(e, where + ": Input X contains " + (std::isnan(x[j]) ? "NaN" : "infinity") +
                                      ": column " + std::to_string(j) + "; impute or drop such rows first");
        if (shape_.scaled) continue;
        const T norm2 = gristmill::norm2(x, width);
        if (kernel_.needs_dot() && !(norm2 <= std::numeric_limits<T>::max() / 4))
            throw RowError(e, where + " is too large: its squared norm overflows" +
                                  (sizeof(T) == sizeof(float) ? " float32; use float64 or scale the inputs" : ""));
        if (const auto why = kernel_.refusal(norm2)) throw RowError(e, where + " " + *why);
    }
}

template <class T>
bool Fleet<T>::may_fail(const FleetChunk<T>& chunk) const {
    const Op op = parts_.nodes.back().op;
    if (!bounded_ || shape_.scaled || (op != Op::gaussian && op != Op::laplacian)) return true;
    double weight = 1;
    if (chunk.weights)
        for (std::size_t e = 0; e < chunk.frames * count_; ++e) weight = std::max(weight, chunk.weights[e]);
    return !(step_bound(parts_.rule) * weight * static_cast<double>(kMostEvents) <= kBoundedMost) ||
           seen_ + chunk.frames > kMostEvents;
}

template <class T>
void Fleet<T>::report(std::size_t learner, std::size_t frame, const Refusal& refusal) const {
    char text[300];
    std::snprintf(text, sizeof text, "learner %zu, frame %zu: %s %g", learner, frame, refusal.what, refusal.value);
    throw RowError(frame * count_ + learner, text);
}

// ---- members ------------------------------------------------------------------------------------------------------

template <class T>
std::size_t Fleet<T>::place(std::int64_t member) const {
    if (member < 0 || static_cast<std::size_t>(member) >= count_)
        throw std::out_of_range("there are " + std::to_string(count_) + " members, and no number " +
                                std::to_string(member));
    return static_cast<std::size_t>(member);
}

template <class T>
MemberPack<T> Fleet<T>::members(std::span<const std::int64_t> which) const {
    MemberPack<T> pack;
    for (const std::int64_t i : which) {
        const std::size_t at = place(i);
        pack.add(view(blocks_[at / kWide], at % kWide), shape_);
    }
    return pack;
}

template <class T>
void Fleet<T>::set_members(std::span<const std::int64_t> which, const MemberPack<T>& pack) {
    if (pack.count() != which.size()) throw std::invalid_argument("there are not as many states as members");
    const bool bounded = pack.check(shape_, limit_, classes_);
    std::vector<Block> blocks = blocks_;
    std::size_t first = 0;
    for (std::size_t k = 0; k < which.size(); ++k) {
        const std::size_t i = place(which[k]);
        Block& block = blocks[i / kWide];
        // Rebuild the block with its other members: memory that the old member leaves must be 0.
        Block fresh = make(std::max(block.layout->slots, static_cast<std::size_t>(pack.sizes[k])));
        for (std::size_t l = 0; l < kWide; ++l)
            if (l != i % kWide) copy_member(view(block, l), shape_, view(fresh, l), shape_);
        first = pack.take(view(fresh, i % kWide), shape_, k, first);
        block = std::move(fresh);
    }
    blocks_.swap(blocks);
    bounded_ = bounded_ && bounded;
    for (const std::int64_t seen : pack.seen) seen_ = std::max(seen_, static_cast<std::uint64_t>(seen));
}

template class Fleet<double>;
template class Fleet<float>;

}  // namespace gristmill
