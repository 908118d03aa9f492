#include "core/additive/additive.hpp"

#include <cmath>

#include "core/additive/compiled.hpp"

namespace gristmill {

namespace {

template <class Piece>
class Group final : public CoordinateGroup {
    using Trees = Tree<Piece>;
    using Root = typename Trees::Root;
    static constexpr std::size_t kInStep = 16;  // trees searched in lockstep
    // The result at the end of a search.
    static constexpr auto kValue = [](const Piece& piece, const typename Trees::Walk& walk) {
        return Trees::finish(piece, walk);
    };
    static constexpr auto kSlope = [](const Piece& piece, const typename Trees::Walk& walk) {
        return Trees::slope(piece, walk);
    };

  public:
    struct Member {
        std::size_t coordinate;
        double weight;
    };

    Group(Piece piece, std::vector<Member> members, std::size_t outputs)
        : piece_(piece), members_(std::move(members)), roots_(outputs * members_.size()), outputs_(outputs) {}

    double score(std::size_t output, const double* keys) const override {
        double total = 0;
        search(output, keys, kValue, [&](std::size_t, double part) { total += part; });
        return total;
    }
    void parts(std::size_t output, const double* keys, double* out) const override {
        for (const Member& member : members_) out[member.coordinate] = 0;
        search(output, keys, kValue, [&](std::size_t m, double part) { out[members_[m].coordinate] = part; });
    }
    void slopes(std::size_t output, const double* keys, double* out) const override {
        for (const Member& member : members_) out[member.coordinate] = 0;
        search(output, keys, kSlope, [&](std::size_t m, double slope) { out[members_[m].coordinate] = slope; });
    }
    double self(const double* keys) const override {
        double total = 0;
        for (const Member& member : members_)
            if (const double key = keys[member.coordinate]; !std::isnan(key)) total += member.weight * piece_.self(key);
        return total;
    }
    const char* refusal(double key) const override { return piece_.refusal(key); }

    void add(std::size_t output, const double* keys, double coef) override {
        Trees trees(store_, piece_);
        for (std::size_t m = 0; m < members_.size(); ++m)
            if (const double key = keys[members_[m].coordinate]; !std::isnan(key))
                trees.add(root(output, m), key, coef);
    }
    void remove(std::size_t output, const double* keys, double coef) override {
        // fetches the nodes of all trees into the cache together
        search(output, keys, kValue, [](std::size_t, double) {});
        Trees trees(store_, piece_);
        for (std::size_t m = 0; m < members_.size(); ++m)
            if (const double key = keys[members_[m].coordinate]; !std::isnan(key))
                trees.remove(root(output, m), key, coef);
    }
    void clear() override {
        Trees trees(store_, piece_);
        for (Root& root : roots_) trees.clear(root);
    }
    void rescale(std::size_t output, double factor) override {
        Trees trees(store_, piece_);
        for (std::size_t m = 0; m < members_.size(); ++m) trees.rescale(root(output, m), factor);
    }
    std::size_t outputs() const override { return outputs_; }
    void add_output() override {
        roots_.resize(roots_.size() + members_.size());
        ++outputs_;
    }

    void reserve_event(std::span<const std::size_t> outputs) override {
        std::size_t levels = 0;
        for (const std::size_t o : outputs)
            for (std::size_t m = 0; m < members_.size(); ++m) levels += root(o, m).height + 1;
        store_.leaves.reserve(outputs.size() * members_.size());
        store_.inners.reserve(levels);
    }
    void reserve_terms(std::size_t terms) override {
        // With several outputs a term has a coefficient in two of them. All but one node of a level are half full, and
        // an event reserves what it may need before it begins.
        const std::size_t spread = std::min<std::size_t>(outputs_, 2), keys = spread * terms;
        std::size_t leaves = 0, inners = 0;
        const std::size_t height = Trees::most_nodes(keys, leaves, inners);
        leaves += outputs_ + spread;
        inners += std::min(outputs_, keys / kLeafFan) * height + spread * (height + 1);
        const std::size_t wanted_leaves = leaves * members_.size(), wanted_inners = inners * members_.size();
        if (wanted_leaves > store_.leaves.live()) store_.leaves.reserve(wanted_leaves - store_.leaves.live(), true);
        if (wanted_inners > store_.inners.live()) store_.inners.reserve(wanted_inners - store_.inners.live(), true);
    }

    std::vector<TreeEntry> entries(std::size_t output, std::size_t member) const override {
        std::vector<TreeEntry> all;
        all.reserve(root(output, member).size);
        Trees::for_each(root(output, member), [&](const TreeEntry& entry) { all.push_back(entry); });
        return all;
    }
    std::vector<std::uint8_t> shape(std::size_t output, std::size_t member) const override {
        return Trees::shape(root(output, member));
    }
    void build(std::size_t output, std::size_t member, std::span<const TreeEntry> entries,
               std::span<const std::uint8_t> shape) override {
        Trees(store_, piece_).build(root(output, member), entries, shape);
    }

    void compile() override {
        compiled_.resize(roots_.size());
        for (std::size_t t = 0; t < roots_.size(); ++t)
            compiled_[t].build(piece_, entries(t / members_.size(), t % members_.size()));
    }
    void drop_compiled() override { compiled_ = {}; }
    void serve(std::size_t output, const double* keys, std::size_t rows, std::size_t stride,
               double* out) const override {
        constexpr std::size_t together = SortedKeys::kTogether;
        double x[together];
        std::size_t at[together];
        for (std::size_t m = 0; m < members_.size(); ++m) {
            const auto& frozen = compiled_[output * members_.size() + m];
            const double* column = keys + members_[m].coordinate;
            for (std::size_t first = 0; first < rows; first += together) {
                const std::size_t n = std::min(together, rows - first);
                for (std::size_t r = 0; r < n; ++r) x[r] = column[(first + r) * stride];
                frozen.keys().search(x, n, at);
                for (std::size_t r = 0; r < n; ++r) frozen.prefetch(at[r]);
                for (std::size_t r = 0; r < n; ++r)
                    if (!std::isnan(x[r])) out[first + r] += members_[m].weight * frozen.value(piece_, at[r], x[r]);
            }
        }
    }

    std::size_t bytes() const override {
        std::size_t total = store_.leaves.bytes() + store_.inners.bytes() + roots_.capacity() * sizeof(Root);
        for (const auto& frozen : compiled_) total += frozen.bytes();
        return total;
    }
    void begin(bool long_chunk) override {
        copied_ = long_chunk;
        if (!long_chunk) {
            store_.leaves.begin();
            store_.inners.begin();
            store_.journal.recording = true;
            roots_before_ = roots_;
            return;
        }
        for (std::size_t t = 0; t < roots_.size(); ++t)
            copies_.push_back({entries(t / members_.size(), t % members_.size()), Trees::shape(roots_[t])});
    }
    void commit() override {
        store_.journal.forget();
        copies_ = {};
    }
    void rollback() override {
        Trees trees(store_, piece_);
        if (copied_) {
            // outputs added since begin()
            for (std::size_t t = copies_.size(); t < roots_.size(); ++t) trees.clear(roots_[t]);
            roots_.resize(copies_.size());
            outputs_ = roots_.size() / members_.size();
            for (std::size_t t = 0; t < roots_.size(); ++t)
                trees.build(roots_[t], copies_[t].entries, copies_[t].shape);
        } else {
            store_.journal.undo();
            store_.leaves.rollback();
            store_.inners.rollback();
            roots_ = roots_before_;
            for (Root& root : roots_) trees.refresh(root);
        }
        commit();
    }

  private:
    Root& root(std::size_t output, std::size_t member) { return roots_[output * members_.size() + member]; }
    const Root& root(std::size_t output, std::size_t member) const { return roots_[output * members_.size() + member]; }

    // Calls f(member, weighted result of the search) for each tree in which the row has a key, in order.
    template <class End, class F>
    void search(std::size_t output, const double* keys, End end, F f) const {
        typename Trees::Walk walks[kInStep];
        std::size_t who[kInStep];
        for (std::size_t m = 0; m < members_.size();) {
            std::size_t n = 0, deepest = 0;
            for (; m < members_.size() && n < kInStep; ++m) {
                const double key = keys[members_[m].coordinate];
                const Root& tree = root(output, m);
                if (std::isnan(key) || !tree.node) continue;
                walks[n] = Trees::start(tree, key);
                who[n++] = m;
                deepest = std::max(deepest, tree.height);
            }
            for (; deepest > 0; --deepest)
                for (std::size_t w = 0; w < n; ++w)
                    if (walks[w].height > 0) Trees::step(piece_, walks[w]);
            for (std::size_t w = 0; w < n; ++w) f(who[w], members_[who[w]].weight * end(piece_, walks[w]));
        }
    }

    Piece piece_;
    std::vector<Member> members_;
    typename Trees::Store store_;
    std::vector<Root> roots_, roots_before_;  // by output, then member
    struct Copy {
        std::vector<TreeEntry> entries;
        std::vector<std::uint8_t> shape;
    };
    bool copied_ = false;
    std::vector<Copy> copies_;  // the trees before a long chunk
    std::size_t outputs_;
    std::vector<Compiled<Piece>> compiled_;
};

template <class Piece>
std::unique_ptr<CoordinateGroup> make_group(Piece piece, const std::vector<Coordinate>& all,
                                            const std::vector<std::size_t>& which, std::size_t outputs) {
    std::vector<typename Group<Piece>::Member> members;
    for (const std::size_t c : which) members.push_back({c, all[c].weight});
    return std::make_unique<Group<Piece>>(piece, std::move(members), outputs);
}

std::unique_ptr<CoordinateGroup> group_of(const std::vector<Coordinate>& all, const std::vector<std::size_t>& which,
                                          std::size_t outputs) {
    const Coordinate& first = all[which[0]];
    switch (first.order) {
        case -1: return make_group(LaplacePiece{first.gamma}, all, which, outputs);
        case 0: return make_group(SplinePiece<0>{}, all, which, outputs);
        case 1: return make_group(SplinePiece<1>{}, all, which, outputs);
        case 2: return make_group(SplinePiece<2>{}, all, which, outputs);
        case 3: return make_group(SplinePiece<3>{}, all, which, outputs);
        default: throw std::invalid_argument("a spline's order must be 0, 1, 2 or 3");
    }
}

}  // namespace

AdditiveSum::AdditiveSum(std::vector<Coordinate> coordinates, std::size_t outputs)
    : coordinates_(std::move(coordinates)), outputs_(outputs), place_(coordinates_.size()) {
    std::vector<bool> placed(coordinates_.size());
    for (std::size_t c = 0; c < coordinates_.size(); ++c) {
        if (placed[c]) continue;
        std::vector<std::size_t> which;
        for (std::size_t d = c; d < coordinates_.size(); ++d) {
            const bool same = coordinates_[d].order == coordinates_[c].order &&
                              (coordinates_[c].order >= 0 || coordinates_[d].gamma == coordinates_[c].gamma);
            if (placed[d] || !same) continue;
            place_[d] = {groups_.size(), which.size()};
            placed[d] = true;
            which.push_back(d);
        }
        groups_.push_back(group_of(coordinates_, which, outputs));
    }
}

double AdditiveSum::score(std::size_t output, const double* keys) const {
    double total = 0;
    for (const auto& group : groups_) total += group->score(output, keys);
    return total;
}

void AdditiveSum::parts(std::size_t output, const double* keys, double* out) const {
    for (const auto& group : groups_) group->parts(output, keys, out);
}

void AdditiveSum::slopes(std::size_t output, const double* keys, double* out) const {
    for (const auto& group : groups_) group->slopes(output, keys, out);
}

double AdditiveSum::self(const double* keys) const {
    double total = 0;
    for (const auto& group : groups_) total += group->self(keys);
    return total;
}

void AdditiveSum::changed() {
    if (!compiled_) return;
    for (auto& group : groups_) group->drop_compiled();
    compiled_ = false;
}

void AdditiveSum::add(std::size_t output, const double* keys, double coef) {
    changed();
    for (auto& group : groups_) group->add(output, keys, coef);
}

void AdditiveSum::remove(std::size_t output, const double* keys, double coef) {
    changed();
    for (auto& group : groups_) group->remove(output, keys, coef);
}

void AdditiveSum::clear() {
    changed();
    for (auto& group : groups_) group->clear();
}

void AdditiveSum::rescale(double factor) {
    changed();
    for (auto& group : groups_)
        for (std::size_t o = 0; o < outputs_; ++o) group->rescale(o, factor);
}

void AdditiveSum::add_output() {
    changed();
    for (auto& group : groups_) group->add_output();
    ++outputs_;
}

void AdditiveSum::split_output(double factor) {
    add_output();
    for (std::size_t c = 0; c < coordinates_.size(); ++c) build(1, c, entries(0, c), shape(0, c));
    for (auto& group : groups_) {
        group->rescale(0, -factor);
        group->rescale(1, factor);
    }
}

void AdditiveSum::reserve_event(std::span<const std::size_t> outputs) {
    for (auto& group : groups_) group->reserve_event(outputs);
}
void AdditiveSum::reserve_terms(std::size_t terms) {
    for (auto& group : groups_) group->reserve_terms(terms);
}

std::vector<TreeEntry> AdditiveSum::entries(std::size_t output, std::size_t c) const {
    return groups_[place_[c].group]->entries(output, place_[c].member);
}
std::vector<std::uint8_t> AdditiveSum::shape(std::size_t output, std::size_t c) const {
    return groups_[place_[c].group]->shape(output, place_[c].member);
}
void AdditiveSum::build(std::size_t output, std::size_t c, std::span<const TreeEntry> entries,
                        std::span<const std::uint8_t> shape) {
    changed();
    groups_[place_[c].group]->build(output, place_[c].member, entries, shape);
}

void AdditiveSum::compile() {
    for (auto& group : groups_) group->compile();
    compiled_ = true;
}

void AdditiveSum::serve(std::size_t output, const double* keys, std::size_t rows, double* out) const {
    std::fill(out, out + rows, 0.0);
    for (const auto& group : groups_) group->serve(output, keys, rows, coordinates_.size(), out);
}

std::size_t AdditiveSum::bytes() const {
    std::size_t total = coordinates_.capacity() * sizeof(Coordinate);
    for (const auto& group : groups_) total += group->bytes();
    return total;
}

void AdditiveSum::begin(bool long_chunk) {
    for (auto& group : groups_) group->begin(long_chunk);
}
void AdditiveSum::commit() {
    for (auto& group : groups_) group->commit();
}
void AdditiveSum::rollback() {
    changed();
    for (auto& group : groups_) group->rollback();
    outputs_ = groups_.empty() ? outputs_ : groups_[0]->outputs();
}

}  // namespace gristmill
