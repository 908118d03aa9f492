// AUC maximisation with a kernel expansion. The points of the buffer are slots of the expansion like all others, so
// that one row of kernel values serves the score, the pairs and the budget; memory is bounded by buffer plus budget.
//
// The scores and the Gram matrix of the buffer's points are stored and updated with f: an event costs one row of kernel
// values and s^2 products instead of s rows.
#pragma once

#include "core/expansion/expansion.hpp"
#include "core/pairwise/linear.hpp"

namespace gristmill {

class KernelRanker {
  public:
    static constexpr bool kRanks = true;  // labels are signs
    enum class Drop { nothing, smallest, oldest, random, merge };
    struct Settings {
        MarginLoss loss;
        Pace pace;
        double radius = 0;  // bound of ||f||; 0: no bound
        bool average = false;
        bool opposite_only = false;
        Drop drop = Drop::merge;  // which point outside the buffer is evicted beyond `size` points
        std::size_t size = 0;
    };
    KernelRanker(Kernel kernel, std::unique_ptr<Points> points, const Settings& settings, Buffer buffer,
                 std::uint64_t seed);

    void learn(const Batch& batch, std::span<const double> labels, double* scores, const Poll& poll);
    void score(const Batch& batch, double* scores) const;

    const Expansion& expansion() const { return f_; }
    std::size_t width() const { return f_.width(); }
    void check(const Batch& batch) const { f_.check(batch); }
    const PairStream& stream() const { return now_.stream; }
    double norm2() const { return settings_.radius > 0 ? now_.norm2 : f_.norm2(); }
    std::size_t bytes() const;

    // All state outside the expansion: a plain value, for rollback.
    struct Now {
        PairStream stream;  // labels and positions of the buffer; its rows are in the expansion
        std::vector<std::size_t> slot;  // slot of each buffer entry
        std::vector<std::size_t> uses;  // number of buffer entries that use a slot
        Lines<double> scores;  // f at the buffer's points
        Lines<double> gram;  // of the buffer, one line of padded(size) numbers per entry
        double norm2 = 0;
    };
    const Now& now() const { return now_; }
    void visit(Archive& archive);

  private:
    // The look-ahead and the arguments of a chunk.
    struct Chunk {
        Lookahead lookahead;
        std::span<const double> labels;
        double* out;
    };
    void event(Chunk& chunk, std::size_t i);
    void plan(const double* row, double self, double label, double score);
    void commit_scores();
    double stay_inside();  // returns the factor applied to f
    void enter(const double* row, std::size_t slot);
    void gather(const std::vector<std::size_t>& sources);
    void keep_budget(Lookahead& lookahead, std::size_t i);
    MergePartners::Fold choose_evicted(std::size_t outside);  // the point to evict; only Merge names a partner
    void drop(Lookahead& lookahead, std::size_t i, const MergePartners::Fold& evicted);
    void move_term(std::size_t slot, double by);  // f += by k(x_slot, .), updating norm and scores of the buffer
    void refresh();

    Settings settings_;
    Expansion f_;
    Now now_;
    // scratch of the current step
    Lines<double> slopes_, coefs_, moved_, row_;
    double newcomer_ = 0, after_ = 0, norm_after_ = 0, keep_ = 1;
    Order order_;
};

}  // namespace gristmill
