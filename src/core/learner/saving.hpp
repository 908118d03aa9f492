// Saved state and snapshots of a learner.
#pragma once

#include "core/learner/learner.hpp"

namespace gristmill {

template <Hypothesis H>
void Learner<H>::visit(Archive& archive) {
    archive.count("seen", counts_.seen);
    archive.count("steps", counts_.steps);
    archive.number("random_seed", counts_.random.seed);
    archive.number("random_counter", counts_.random.counter);
    archive.number("margins", counts_.margins);
    std::uint64_t classes = counts_.classes;
    archive.things("classes", classes);
    if (archive.loads) {
        // Later passes of `fit` count as steps too, but never a million per event.
        if (counts_.steps >> 20 > counts_.seen) archive.refuse("steps", "is far more than the events seen");
        // The number of classes must fit the saved coefficients, so that a damaged file cannot request more memory than
        // it has.
        std::vector<double> offsets;
        archive.numbers("intercept", offsets);
        if (task_ == Task::regression && classes != 0)
            archive.refuse("classes", "is not 0, and numbers have no classes");
        if (task_ == Task::regression && offsets.size() > 1) set_targets(offsets.size());
        else if (offsets.size() != outputs_for(classes)) archive.refuse("classes", "does not fit the others");
        while (counts_.classes < classes) add_class();
    }
    archive.part("rule", rule_);
    for (std::size_t o = 0; o < other_rules_.size(); ++o)
        archive.part(("rule" + std::to_string(o + 1)).c_str(), other_rules_[o]);
    archive.part("budget", budget_);
    archive.numbers("intercept", intercept_, outputs());
    archive.numbers("intercept_sum", intercept_sum_, outputs());
    if (task_ == Task::classification) {
        calibration_.visit(archive);
        class_balance_.visit(archive, counts_.classes);
    }
    if (task_ == Task::regression) intervals_.visit(archive);
    hypothesis_.visit(archive, counts_.seen);
    if (archive.loads) fit_memory();  // points stored when rows were narrower may be too many
}

template <Hypothesis H>
void Learner<H>::rollback(const Snapshot& snapshot) {
    hypothesis_.rollback();
    rule_ = snapshot.rule;
    other_rules_ = snapshot.other_rules;
    budget_ = snapshot.budget;
    counts_ = snapshot.counts;
    intercept_ = snapshot.intercept;
    intercept_sum_ = snapshot.intercept_sum;
    calibration_ = snapshot.calibration;
    class_balance_ = snapshot.class_balance;
    intervals_ = snapshot.intervals;
}

template <Hypothesis H>
void Learner<H>::transact(std::size_t rows, bool grows, const std::function<void()>& work) {
    const Snapshot before = snapshot();
    hypothesis_.begin(rows, grows);
    try {
        work();
    } catch (...) {
        rollback(before);
        throw;
    }
    hypothesis_.keep();
}

}  // namespace gristmill
