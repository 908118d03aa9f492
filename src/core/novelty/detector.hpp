// A detector of anomalies on a stream: three views of one sample, mixed so that one of them suffices.
//
// An event is compared with a sample of earlier events. Three numbers, each lower for what is strange: the distance to the nearest events
// of the sample, that distance over what is usual among these (a local density ratio), and the path length in isolation trees. Each is
// measured against its own values of the last thousand events, and a soft minimum counts. What lies farther from the sample than nine tenths
// of the last events is not admitted to the sample, so that anomalies do not become familiar, however many come at once; when a quarter of
// all events is such for a while, the stream itself has moved and everything is admitted.
//
// The state depends on the order of the events only, never on how they are cut into chunks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/adapt/alarm_rate.hpp"
#include "core/base/archive.hpp"
#include "core/base/batch.hpp"
#include "core/base/random.hpp"
#include "core/novelty/coded_sample.hpp"
#include "core/novelty/isolation_trees.hpp"

namespace gristmill::novelty {

// How a memory is used for rows of so many columns.
struct Plan {
    std::size_t width = 0, memory = 0;
    std::size_t outside = 0;  // bytes of the memory that are taken by what prepares rows for the detector
    std::size_t events = 0;  // of the sample
    std::size_t first = 0;  // events before anything is scored
    std::size_t trees = 0;
    std::size_t window = 0;  // last values of each view
    bool as_bytes = false;

    // Throws std::invalid_argument where a memory is too small.
    static Plan of(std::size_t width, std::size_t memory, std::size_t outside = 0);
};

class Detector {
  public:
    static constexpr std::size_t kViews = 3, kThresholds = 21;

    Detector(std::size_t width, std::size_t memory, double rate, std::uint64_t seed, std::size_t outside = 0);

    std::function<void()> poll;  // called now and then during a chunk; may throw

    const Plan& plan() const { return plan_; }
    std::size_t width() const { return plan_.width; }
    std::size_t classes() const { return 0; }
    std::size_t outputs() const { return 1; }
    std::uint64_t seen() const { return seen_; }
    std::size_t size() const { return ready() ? sample_.size() : waiting_.size() / plan_.width; }  // stored events
    double margin() const { return alarm_.margin(); }
    double alarms() const { return alarm_.alarms(); }
    std::size_t bytes() const;

    // Throws for rows of another width or kind, and for values that are not finite or too large.
    void check(const Batch& batch) const;
    // Scores each event, then learns it; all or nothing. Labels and weights are not looked at.
    void learn(const Batch& batch, std::span<const double> labels, std::span<const double> weights,
               std::vector<double>* scores, std::size_t classes);
    void score(const Batch& batch, double* out) const;
    // Why events are strange or not. columns, usual: (rows, width). columns: the part of each column in the mean distance to the nearest
    // events, in spreads; usual: the mean value that these have. views: (rows, kViews), in units of their own spread, 0 for what is usual.
    void explain(const Batch& batch, double* columns, double* usual, double* views) const;
    // More columns from now on, in which every event so far had 0.
    void widen(std::size_t width, std::size_t outside = 0);
    // One detector of several over the same columns, with a sample of all their samples; shares: of the events that each counts for.
    static Detector merged(std::span<const Detector* const> parts, std::span<const double> shares, std::size_t memory,
                           std::size_t outside = 0);
    void visit(Archive& archive);

  private:
    struct Views {
        double at[kViews];
    };
    struct Scratch {  // of one event; allocated before anything changes
        Coded event;
        std::vector<std::uint32_t> distances;
        Nearest nearest;
        std::vector<double> values;
    };

    bool ready() const { return sample_.size() > 0; }
    Scratch scratch() const;
    double learn_one(const double* row, Scratch& scratch);
    std::vector<double> rows() const;
    Views views(Scratch& scratch, std::size_t without) const;
    double unit(const Views& views, std::size_t view) const { return (views.at[view] - middle_[view]) / spread_[view]; }
    double mixed(const Views& views) const;
    void begin();
    void push(const Views& views);
    void admit(const double* row, Scratch& scratch);
    void relearn(Scratch& scratch);
    void measure_columns(Scratch& scratch);
    void measure_neighbours(std::size_t slot, Scratch& scratch);
    void measure_views(Scratch& scratch);
    void visit_begun(Archive& archive);

    Plan plan_;
    Random random_;
    AlarmRate alarm_;
    std::uint64_t seen_ = 0;
    std::vector<double> waiting_;  // rows before anything is scored
    CodedSample sample_;
    std::vector<double> usual_;  // a stored event's mean distance to its nearest, in spreads
    IsolationTrees trees_;
    std::vector<double> last_[kViews];  // rings of as many values as the window holds
    std::size_t filled_ = 0, oldest_ = 0;
    double middle_[kViews] = {}, spread_[kViews] = {1, 1, 1};
    double thresholds_[kThresholds] =
        {};  // of the distance, below which nothing is admitted: of the last thousand events, the newest last
    std::size_t known_ = 0;  // of them
    double late_ = 0;  // running share of events that would not have been admitted a thousand events ago
    std::uint64_t admitted_ = 0;  // bounded: how much the sample still changes
    std::uint64_t next_ = 0;  // slot whose neighbours are measured next
    Scratch scratch_;  // buffers of `learn`
};

}  // namespace gristmill::novelty
