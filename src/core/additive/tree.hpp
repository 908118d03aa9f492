// Ordered trees with wide nodes, one per coordinate and output, that compute sum_j a_j k(x_j, x) in O(log m).
//
// B+ trees: terms are in the leaves, and between the children of a node are the sums that a search needs of the
// children it passes. All nodes but a root are at least half full. A search over many coordinates descends all their
// trees in lockstep and prefetches the next nodes of all of them before it uses the first, so that cache misses
// overlap.
#pragma once

#include <deque>
#include <span>
#include <stdexcept>

#include "core/additive/pieces.hpp"
#include "core/additive/pool.hpp"

namespace gristmill {

template <class Piece>
class Tree {
  public:
    using Leaf = typename Piece::Leaf;
    using Summary = typename Piece::Summary;

    struct alignas(64) Inner {
        std::uint64_t count;
        double low[kInnerFan];
        void* child[kInnerFan];
        Summary sum[kInnerFan];
        typename Piece::Links links;
    };
    struct Root {
        void* node = nullptr;
        std::size_t height = 0;  // 0: the root is a leaf
        std::size_t size = 0;    // distinct keys
    };

    // Undo log, in order: single entries, and previous nodes whose entries or children moved. Sums are not logged: they
    // are recomputed.
    class Journal {
      public:
        bool recording = false;

        void entry(Leaf& leaf, std::size_t at, int grown) {
            if (recording) edits_.push_back({&leaf, grown, static_cast<std::uint32_t>(at), leaf.entry.get(at)});
        }
        void whole(Leaf& leaf) {
            if (!recording) return;
            edits_.push_back({&leaf, kLeaf, 0, {}});
            leaves_.push_back(leaf);
        }
        void whole(Inner& inner) {
            if (!recording) return;
            edits_.push_back({&inner, kInner, 0, {}});
            inners_.push_back({inner.count, {}});
            std::copy_n(inner.child, inner.count, inners_.back().child);
        }
        void undo() {
            for (; !edits_.empty(); edits_.pop_back()) undo(edits_.back());
            forget();
        }
        void forget() {
            recording = false;
            edits_ = {};
            leaves_.clear();
            inners_.clear();
        }

      private:
        static constexpr int kLeaf = 2, kInner = 3;
        struct Edit {
            void* node;
            int kind;  // -1, 0, 1: an entry was erased, changed, inserted
            std::uint32_t at;
            TreeEntry entry;
        };
        struct Children {
            std::uint64_t count;
            void* child[kInnerFan];
        };
        void undo(const Edit& edit) {
            if (edit.kind == kInner) {
                auto& inner = *static_cast<Inner*>(edit.node);
                inner.count = inners_.back().count;
                std::copy_n(inners_.back().child, inner.count, inner.child);
                return inners_.pop_back();
            }
            auto& leaf = *static_cast<Leaf*>(edit.node);
            if (edit.kind == kLeaf) {
                leaf = leaves_.back();
                return leaves_.pop_back();
            }
            if (edit.kind == 1) return close(leaf, edit.at);
            if (edit.kind == -1) open(leaf, edit.at);
            leaf.entry.set(edit.at, edit.entry);
        }
        std::vector<Edit> edits_;
        std::deque<Leaf> leaves_;
        std::deque<Children> inners_;
    };
    struct Store {
        Pool<Leaf> leaves;
        Pool<Inner> inners;
        Journal journal;
    };

    // State of a search.
    struct Walk {
        const void* node;
        std::size_t height;
        double x;
        typename Piece::Carry carry;
    };

    Tree(Store& store, const Piece& piece) : store_(store), piece_(piece) {}

    void add(Root& root, double key, double coef) { change(root, key, coef, true); }
    // requires: the term was added. The last term of a key removes the key.
    void remove(Root& root, double key, double coef) { change(root, key, coef, false); }

    static Walk start(const Root& root, double x) { return {root.node, root.height, x, {}}; }
    // One level down. requires: height > 0
    static void step(const Piece& piece, Walk& walk) {
        const auto* node = static_cast<const Inner*>(walk.node);
        const std::size_t i = route(*node, walk.x);
        piece.descend(walk.carry, node->links, node->low, node->count, i);
        walk.node = node->child[i];
        prefetch(walk.node, --walk.height > 0 ? sizeof(Inner) - sizeof(Inner::sum) : Leaf::kHot);
    }
    static double finish(const Piece& piece, const Walk& walk) {
        return piece.finish(walk.carry, *static_cast<const Leaf*>(walk.node), walk.x);
    }
    static double slope(const Piece& piece, const Walk& walk) {
        return piece.slope(walk.carry, *static_cast<const Leaf*>(walk.node), walk.x);
    }

    void clear(Root& root) {
        if (root.node) give_all(root.node, root.height);
        root = {};
    }
    void rescale(Root& root, double factor) {
        for_each_leaf(root.node, root.height, [&](Leaf& leaf) {
            store_.journal.whole(leaf);
            for (std::size_t j = 0; j < leaf.count; ++j) leaf.entry.coef[j] *= factor;
        });
        refresh(root);
    }
    // All sums, from the entries upwards.
    void refresh(Root& root) {
        if (root.node) refresh_below(root.node, root.height);
    }

    template <class F>
    static void for_each(const Root& root, F f) {
        for_each_leaf(root.node, root.height, [&](Leaf& leaf) {
            for (std::size_t j = 0; j < leaf.count; ++j) f(leaf.entry.get(j));
        });
    }
    // The sizes of all nodes, parents before children: with the entries in order, the whole tree.
    static std::vector<std::uint8_t> shape(const Root& root) {
        std::vector<std::uint8_t> counts;
        if (!root.node) return counts;
        counts.push_back(static_cast<std::uint8_t>(root.height));
        list_counts(root.node, root.height, counts);
        return counts;
    }
    void build(Root& root, std::span<const TreeEntry> entries, std::span<const std::uint8_t> shape) {
        clear(root);
        if (entries.empty() && shape.empty()) return;
        if (shape.size() < 2 || shape[0] > 16) throw std::invalid_argument("the saved trees are damaged");
        std::size_t entry = 0, node = 1;
        void* top = build_below(shape[0], entries, entry, shape, node, true);
        if (entry != entries.size() || node != shape.size())
            throw std::invalid_argument("the saved trees do not fit the points");
        root = {top, shape[0], entries.size()};
        refresh(root);
    }

    // Adds the most nodes that a tree of n keys can have; returns its greatest height.
    static std::size_t most_nodes(std::size_t n, std::size_t& leaves, std::size_t& inners) {
        std::size_t height = 0, level = std::max<std::size_t>(n / (kLeafFan / 2), 1);
        leaves += level;
        for (; level > 1; ++height) {
            level = std::max<std::size_t>(level / (kInnerFan / 2), 1);
            inners += level;
        }
        return height;
    }

  private:
    static constexpr std::size_t fan(const Leaf*) { return kLeafFan; }
    static constexpr std::size_t fan(const Inner*) { return kInnerFan; }

    static std::size_t route(const Inner& node, double x) {
        std::size_t i = 0;
        for (std::size_t k = 1; k < node.count; ++k) i += node.low[k] <= x;
        return i;
    }
    static void prefetch(const void* node, std::size_t bytes) {
#if defined(__GNUC__)
        for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(static_cast<const char*>(node) + at);
#else
        (void)node, (void)bytes;
#endif
    }
    static std::size_t count_of(const void* node, std::size_t height) {
        return height == 0 ? static_cast<const Leaf*>(node)->count : static_cast<const Inner*>(node)->count;
    }
    // Whether a node below a root needs mending.
    static bool needs_rebalancing(const void* node, std::size_t height) {
        const std::size_t count = count_of(node, height), full = height == 0 ? kLeafFan : kInnerFan;
        return count >= full || count < full / 2;
    }
    template <class Node>
    static Node* new_node(Pool<Node>& pool) {
        Node* node = pool.take();
        node->count = 0;
        return node;
    }

    // ---- changing one key, from the leaf upwards --------------------------------------------------------------

    void change(Root& root, double key, double coef, bool add) {
        if (!root.node) root = {new_node(store_.leaves), 0, 0};
        const int grown = root.height == 0 ? change_leaf(*static_cast<Leaf*>(root.node), key, coef, add)
                                           : change_inner(*static_cast<Inner*>(root.node), root.height, key, coef, add);
        root.size += static_cast<std::size_t>(grown);
        if (root.size == 0) return clear(root);
        if (count_of(root.node, root.height) == (root.height == 0 ? kLeafFan : kInnerFan)) {
            Inner* top = new_node(store_.inners);
            top->count = 1;
            set_child(*top, 0, root.node, root.height);
            root.node = top;
            rebalance(*top, ++root.height, 0);
        }
        while (root.height > 0 && static_cast<Inner*>(root.node)->count == 1) {
            Inner* top = static_cast<Inner*>(root.node);
            store_.journal.whole(*top);
            root.node = top->child[0];
            store_.inners.give(top);
            --root.height;
        }
    }

    int change_leaf(Leaf& leaf, double key, double coef, bool add) {
        std::size_t j = 0;
        for (std::size_t t = 0; t < leaf.count; ++t) j += leaf.entry.key[t] < key;
        if (j < leaf.count && leaf.entry.key[j] == key) {
            if (add || leaf.entry.times[j] > 1) {
                store_.journal.entry(leaf, j, 0);
                TreeEntry entry = leaf.entry.get(j);
                entry.add(add ? coef : -coef);
                entry.times += add ? 1 : -1u;
                if (entry.times == 1) entry.rest = 0;  // what is left is one coefficient, and a double holds it
                leaf.entry.set(j, entry);
                return 0;
            }
            store_.journal.entry(leaf, j, -1);
            close(leaf, j);
            piece_.leaf_changed(leaf, j, j);
            return -1;
        }
        if (!add) throw std::logic_error("a term that is not in the tree cannot leave it");
        open(leaf, j);
        leaf.entry.set(j, {key, coef, 0, 1});
        store_.journal.entry(leaf, j, 1);
        piece_.leaf_changed(leaf, j, j);
        return 1;
    }

    int change_inner(Inner& node, std::size_t height, double key, double coef, bool add) {
        const std::size_t i = route(node, key);
        const int grown = height == 1 ? change_leaf(*static_cast<Leaf*>(node.child[i]), key, coef, add)
                                      : change_inner(*static_cast<Inner*>(node.child[i]), height - 1, key, coef, add);
        if (needs_rebalancing(node.child[i], height - 1)) {
            rebalance(node, height, i);
        } else {
            const Summary before = node.sum[i];
            set_child(node, i, node.child[i], height - 1);
            piece_.link(node.links, node.sum, node.count, i, i, !node.sum[i].same_edges(before));
        }
        return grown;
    }

    // Child i is full or less than half full. ensures: no child is, and the links are up to date.
    void rebalance(Inner& node, std::size_t height, std::size_t i) {
        if (height == 1) rebalance_child<Leaf>(node, i, store_.leaves, 0);
        else rebalance_child<Inner>(node, i, store_.inners, height - 1);
        piece_.link(node.links, node.sum, node.count, 0, node.count - 1, true);
    }

    template <class Child>
    void rebalance_child(Inner& node, std::size_t i, Pool<Child>& pool, std::size_t child_height) {
        auto at = [&](std::size_t k) -> Child& { return *static_cast<Child*>(node.child[k]); };
        const std::size_t full = fan(&at(i));
        std::size_t first = i, last = i, other = i;
        if (i > 0) other = i - 1;
        if (i + 1 < node.count && (other == i || at(i + 1).count < at(other).count)) other = i + 1;
        // Moving entries to a neighbour with free space keeps nodes fuller than splitting.
        if (other != i && (at(i).count < full / 2 || at(other).count <= full * 3 / 4)) {
            first = std::min(i, other);
            last = first + 1;
            Child &left = at(first), &right = at(last);
            store_.journal.whole(left);
            store_.journal.whole(right);
            if (left.count + right.count < full) {
                move(right, 0, right.count, left, left.count);
                store_.journal.whole(node);
                erase_child(node, last);
                pool.give(&right);
                last = first;
            } else {
                balance_pair(left, right);
            }
        } else {
            Child *left = &at(i), *right = new_node(pool);
            store_.journal.whole(*left);
            store_.journal.whole(node);
            insert_child(node, i + 1, right);
            move(*left, full / 2, full, *right, 0);
            last = i + 1;
        }
        for (std::size_t k = first; k <= last; ++k) {
            relink(at(k));
            set_child(node, k, node.child[k], child_height);
        }
    }

    template <class Child>
    static void balance_pair(Child& left, Child& right) {
        const std::size_t half = (left.count + right.count) / 2;
        if (left.count > half) move(left, half, left.count, right, 0);
        else move(right, 0, half - left.count, left, left.count);
    }

    static void open(Leaf& leaf, std::size_t j) {
        auto up = [&](auto* a) { std::copy_backward(a + j, a + leaf.count, a + leaf.count + 1); };
        up(leaf.entry.key);
        up(leaf.entry.coef);
        up(leaf.entry.rest);
        up(leaf.entry.times);
        if constexpr (requires { leaf.gap; }) up(leaf.gap);
        ++leaf.count;
    }
    static void close(Leaf& leaf, std::size_t j) {
        auto down = [&](auto* a) { std::copy(a + j + 1, a + leaf.count, a + j); };
        down(leaf.entry.key);
        down(leaf.entry.coef);
        down(leaf.entry.rest);
        down(leaf.entry.times);
        if constexpr (requires { leaf.gap; }) down(leaf.gap);
        --leaf.count;
    }
    // Moves entries or children [from, to) of a node to the end or the beginning of its neighbour and closes the gap.
    template <class Node>
    static void move(Node& source, std::size_t from, std::size_t to, Node& target, std::size_t at) {
        auto shift = [&](auto* a, auto* b) {
            std::copy_backward(b + at, b + target.count, b + target.count + (to - from));
            std::copy(a + from, a + to, b + at);
            std::copy(a + to, a + source.count, a + from);
        };
        if constexpr (std::is_same_v<Node, Leaf>) {
            shift(source.entry.key, target.entry.key);
            shift(source.entry.coef, target.entry.coef);
            shift(source.entry.rest, target.entry.rest);
            shift(source.entry.times, target.entry.times);
        } else {
            shift(source.low, target.low);
            shift(source.child, target.child);
            shift(source.sum, target.sum);
        }
        source.count -= to - from;
        target.count += to - from;
    }
    static void erase_child(Inner& node, std::size_t i) {
        auto down = [&](auto* a) { std::copy(a + i + 1, a + node.count, a + i); };
        down(node.low);
        down(node.child);
        down(node.sum);
        --node.count;
    }
    static void insert_child(Inner& node, std::size_t i, void* child) {
        auto up = [&](auto* a) { std::copy_backward(a + i, a + node.count, a + node.count + 1); };
        up(node.low);
        up(node.child);
        up(node.sum);
        node.child[i] = child;
        ++node.count;
    }

    void relink(Leaf& leaf) { piece_.leaf_changed(leaf, 0, leaf.count); }
    void relink(Inner& node) { piece_.link(node.links, node.sum, node.count, 0, node.count - 1, true); }
    void set_child(Inner& node, std::size_t i, void* child, std::size_t child_height) {
        node.child[i] = child;
        if (child_height == 0) {
            node.sum[i] = piece_.leaf_summary(*static_cast<const Leaf*>(child));
        } else {
            const auto& inner = *static_cast<const Inner*>(child);
            node.sum[i] = piece_.inner_summary(inner.links, inner.sum, inner.count);
        }
        node.low[i] = node.sum[i].low;
    }

    // ---- whole trees ------------------------------------------------------------------------------------------

    void give_all(void* node, std::size_t height) {
        if (height == 0) {
            store_.journal.whole(*static_cast<Leaf*>(node));
            return store_.leaves.give(static_cast<Leaf*>(node));
        }
        auto* inner = static_cast<Inner*>(node);
        store_.journal.whole(*inner);
        for (std::size_t i = 0; i < inner->count; ++i) give_all(inner->child[i], height - 1);
        store_.inners.give(inner);
    }
    void refresh_below(void* node, std::size_t height) {
        if (height == 0) return relink(*static_cast<Leaf*>(node));
        auto& inner = *static_cast<Inner*>(node);
        for (std::size_t i = 0; i < inner.count; ++i) {
            refresh_below(inner.child[i], height - 1);
            set_child(inner, i, inner.child[i], height - 1);
        }
        relink(inner);
    }
    template <class F>
    static void for_each_leaf(void* node, std::size_t height, const F& f) {
        if (!node) return;
        if (height == 0) return f(*static_cast<Leaf*>(node));
        auto& inner = *static_cast<Inner*>(node);
        for (std::size_t i = 0; i < inner.count; ++i) for_each_leaf(inner.child[i], height - 1, f);
    }
    static void list_counts(const void* node, std::size_t height, std::vector<std::uint8_t>& counts) {
        counts.push_back(static_cast<std::uint8_t>(count_of(node, height)));
        if (height == 0) return;
        const auto& inner = *static_cast<const Inner*>(node);
        for (std::size_t i = 0; i < inner.count; ++i) list_counts(inner.child[i], height - 1, counts);
    }
    void* build_below(std::size_t height, std::span<const TreeEntry> entries, std::size_t& entry,
                      std::span<const std::uint8_t> shape, std::size_t& next, bool is_root) {
        const std::size_t count = next < shape.size() ? shape[next++] : 0, full = height == 0 ? kLeafFan : kInnerFan;
        const std::size_t least = is_root ? (height == 0 ? 1 : 2) : full / 2;
        if (count < least || count >= full) throw std::invalid_argument("the saved trees are damaged");
        if (height == 0) {
            Leaf* leaf = new_node(store_.leaves);
            if (entries.size() - entry < count) throw std::invalid_argument("the saved trees do not fit the points");
            while (leaf->count < count) leaf->entry.set(leaf->count++, entries[entry++]);
            return leaf;
        }
        Inner* inner = new_node(store_.inners);
        while (inner->count < count) {
            void* child = build_below(height - 1, entries, entry, shape, next, false);
            inner->child[inner->count++] = child;
        }
        return inner;
    }

    Store& store_;
    const Piece& piece_;
};

}  // namespace gristmill
