// AUC by a kernel expansion. The points of the buffer are slots of the expansion like all others, so one row of kernel
// values serves the score, the pairs and the budget; memory is bounded by buffer plus budget.
//
// The scores of the buffer's points are kept and moved along with f, for which the Gram matrix of the buffer is kept too:
// an event costs one row of kernel values and s^2 products, not s rows.
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
        double radius = 0;           // ||f|| stays within it; 0: no bound
        bool average = false;
        bool opposite_only = false;
        Drop drop = Drop::merge;     // which point outside the buffer leaves when there are more than `size`
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

    // Everything beside the expansion: a value, so that it can be put back.
    struct Now {
        PairStream stream;             // labels and places of the buffer; its rows are the expansion's
        std::vector<std::size_t> slot; // where each buffer entry is stored
        std::vector<std::size_t> uses; // how many buffer entries a slot serves
        Lines<double> scores;          // f at the buffer's points
        Lines<double> gram;            // of the buffer, a line of padded(size) an entry
        double norm2 = 0;
    };
    const Now& now() const { return now_; }
    void visit(Archive& archive);

  private:
    // The look-ahead, with what belongs to a chunk.
    struct Chunk {
        Lookahead lookahead;
        std::span<const double> labels;
        double* out;
    };
    void event(Chunk& chunk, std::size_t i);
    void plan(const double* row, double self, double label, double score);
    void commit_scores();
    double stay_inside();  // returns what everything was multiplied by
    void enter(const double* row, std::size_t slot);
    void gather(const std::vector<std::size_t>& sources);
    void keep_budget(Lookahead& lookahead, std::size_t i);
    MergePartners::Fold choose_evicted(std::size_t outside);  // who leaves; only Merge folds it onto another
    void drop(Lookahead& lookahead, std::size_t i, const MergePartners::Fold& evicted);
    void move_term(std::size_t slot, double by);  // f += by k(x_slot, .), with the norm and the scores of the buffer
    void refresh();

    Settings settings_;
    Expansion f_;
    Now now_;
    // the step under way
    Lines<double> slopes_, coefs_, moved_, row_;
    double newcomer_ = 0, after_ = 0, norm_after_ = 0, keep_ = 1;
    Order order_;
};

}  // namespace gristmill
