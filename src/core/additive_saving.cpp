// What an AdditiveLearner is made of, out and in again: classes that are added, states that are saved.
#include <algorithm>
#include <cmath>

#include "core/additive_learner.hpp"

namespace gristmill {

void AdditiveLearner::add_class() {
    std::vector<std::vector<double>> coefs(outputs(), std::vector<double>(terms_.size()));
    for (std::size_t slot = 0; slot < terms_.size(); ++slot)
        for (std::size_t o = 0; o < outputs(); ++o) coefs[o][slot] = terms_.coefs(slot)[o];
    if (task_ == Task::binary) {
        task_ = Task::multiclass;
        sum_.split_output(0.5);
        coefs.push_back(coefs[0]);
        for (double& c : coefs[0]) c *= -0.5;
        for (double& c : coefs[1]) c *= 0.5;
        intercept_ = {-0.5 * intercept_[0], 0.5 * intercept_[0]};
        norm2_ *= 0.5, doubt_ *= 0.5;
    }
    sum_.add_output();
    coefs.emplace_back(terms_.size(), 0.0);
    terms_.set_outputs(std::move(coefs));
    intercept_.push_back(0);
    filled_ = false;
}

std::vector<double> AdditiveLearner::rule_state() const {
    std::vector<double> state;
    Rule rule = rule_;
    std::visit([&](auto& r) { r.state([&](double& x) { state.push_back(x); }); }, rule);
    return state;
}

// The entries as they would be if the terms came in the order of their slots.
std::vector<TreeEntry> AdditiveLearner::fresh_entries(std::size_t output, std::size_t c) const {
    std::vector<std::pair<double, std::uint32_t>> order;
    std::vector<double> row(width());
    for (std::size_t slot = 0; slot < terms_.size(); ++slot) {
        terms_.row(slot, row.data());
        const double key = sum_.coordinates()[c].of(row.data());
        if (!std::isnan(key) && terms_.coefs(slot)[output] != 0) order.push_back({key, static_cast<std::uint32_t>(slot)});
    }
    std::sort(order.begin(), order.end());
    std::vector<TreeEntry> entries;
    for (const auto& [key, slot] : order) {
        const double coef = terms_.coefs(slot)[output];
        if (entries.empty() || entries.back().key != key) {
            entries.push_back({key, coef, 0, 1});
            continue;
        }
        entries.back().add(coef);
        ++entries.back().times;
    }
    return entries;
}

std::vector<AdditiveLearner::Odd> AdditiveLearner::odd_entries() const {
    std::vector<Odd> odd;
    for (std::size_t tree = 0; tree < outputs() * keys_.size(); ++tree) {
        const auto kept = sum_.entries(tree / keys_.size(), tree % keys_.size());
        const auto fresh = fresh_entries(tree / keys_.size(), tree % keys_.size());
        for (std::size_t j = 0; j < kept.size(); ++j)
            if (kept[j].coef != fresh[j].coef || kept[j].rest != fresh[j].rest)
                odd.push_back({tree, j, kept[j].coef, kept[j].rest});
    }
    return odd;
}

void AdditiveLearner::restore(const State& state, const double* rows, std::span<const std::int64_t> ids,
                              const std::vector<std::vector<double>>& coefs,
                              const std::vector<std::vector<std::uint8_t>>& shapes, std::span<const Odd> odd) {
    if (coefs.size() != outputs() || shapes.size() != outputs() * keys_.size() || state.intercept.size() != outputs())
        throw std::invalid_argument("the saved state does not fit the number of outputs");
    std::size_t used = 0;
    Rule rule = rule_;
    std::visit([&](auto& r) { r.state([&](double& x) { if (used < state.rule.size()) x = state.rule[used]; ++used; }); }, rule);
    if (used != state.rule.size()) throw std::invalid_argument("the saved state does not fit the rule");
    rule_ = std::move(rule);
    mutables_ = state.mutables;
    intercept_ = state.intercept;
    scale_ = state.scale, norm2_ = state.norm2, doubt_ = state.doubt, floor_ = state.floor;

    terms_.reserve(ids.size());
    std::vector<double> own(outputs());
    for (std::size_t slot = 0; slot < ids.size(); ++slot) {
        for (std::size_t o = 0; o < outputs(); ++o) own[o] = coefs[o][slot];
        terms_.append(ids[slot], rows + slot * width(), own);
    }
    terms_.order_by_id();
    std::size_t next = 0;
    for (std::size_t tree = 0; tree < shapes.size(); ++tree) {
        auto entries = fresh_entries(tree / keys_.size(), tree % keys_.size());
        for (; next < odd.size() && odd[next].tree == tree; ++next) {
            if (odd[next].entry >= entries.size()) throw std::invalid_argument("the saved trees do not fit the points");
            entries[odd[next].entry].coef = odd[next].coef;
            entries[odd[next].entry].rest = static_cast<float>(odd[next].rest);
        }
        sum_.build(tree / keys_.size(), tree % keys_.size(), entries, shapes[tree]);
    }
    if (next != odd.size()) throw std::invalid_argument("the saved trees do not fit the points");
}

}  // namespace gristmill
