// Balanced class weights: an event of class c has weight n / (k n_c), from the counts up to and including it.
#pragma once

#include <algorithm>
#include <vector>

#include "core/base/archive.hpp"

namespace gristmill {

struct ClassBalance {
    bool on = false;
    std::vector<double> counts;  // events of each class

    // new_event: whether the event is not counted yet.
    double weight(std::size_t label, bool new_event) const {
        if (!on) return 1.0;
        double events = new_event ? 1 : 0, own = events;
        std::size_t classes_seen = new_event && (label >= counts.size() || counts[label] == 0) ? 1 : 0;
        for (std::size_t c = 0; c < counts.size(); ++c) {
            events += counts[c];
            if (c == label) own += counts[c];
            if (counts[c] > 0) ++classes_seen;
        }
        return events / (static_cast<double>(classes_seen) * own);
    }
    // So that counting an event of any of these classes needs no memory.
    void make_room(std::size_t classes) {
        if (on) counts.reserve(classes);
    }
    void count(std::size_t label) {
        if (!on) return;
        if (label >= counts.size()) counts.resize(label + 1);
        counts[label] += 1;
    }
    void visit(Archive& archive, std::size_t classes) {
        if (!on) return;
        archive.numbers("class_counts", counts);
        if (archive.loads &&
            (counts.size() > classes || std::any_of(counts.begin(), counts.end(), [](double n) { return !(n >= 0); })))
            archive.refuse("class_counts", "does not fit the classes");
    }
};

}  // namespace gristmill
