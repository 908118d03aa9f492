// Transactions, added outputs and saved state of the trees.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/additive/hypothesis.hpp"
#include "core/kernels/check.hpp"

namespace gristmill {

void Trees::begin(std::size_t rows, bool grows) {
    const bool long_chunk = grows || 2 * rows > terms_.size();
    sum_.begin(long_chunk);
    terms_.begin(long_chunk);
    before_ = {scale_, norm2_, error_bound_, error_floor_, outputs()};
}

void Trees::keep() {
    sum_.commit();
    terms_.commit();
}

void Trees::rollback() {
    // If outputs were added, the log has all terms with their previous number of coefficients.
    if (outputs() != before_.outputs) terms_.set_outputs({before_.outputs, std::vector<double>(terms_.size())});
    sum_.rollback();
    terms_.rollback();
    scale_ = before_.scale;
    norm2_ = before_.norm2;
    error_bound_ = before_.error_bound;
    error_floor_ = before_.error_floor;
}

std::vector<std::vector<double>> Trees::coefs_by_output() const {
    std::vector<std::vector<double>> coefs(outputs(), std::vector<double>(terms_.size()));
    for (std::size_t slot = 0; slot < terms_.size(); ++slot)
        for (std::size_t o = 0; o < outputs(); ++o) coefs[o][slot] = terms_.coefs(slot)[o];
    return coefs;
}

void Trees::add_output() {
    auto coefs = coefs_by_output();
    coefs.emplace_back(terms_.size(), 0.0);
    sum_.add_output();
    terms_.set_outputs(std::move(coefs));
    filled_ = false;
}

void Trees::split_output() {
    auto coefs = coefs_by_output();
    sum_.split_output(0.5);
    coefs.push_back(coefs[0]);
    for (double& c : coefs[0]) c *= -0.5;
    for (double& c : coefs[1]) c *= 0.5;
    terms_.set_outputs(std::move(coefs));
    norm2_ *= 0.5;
    error_bound_ *= 0.5;
    filled_ = false;
}

// The entries that result from adding the terms in the order of their slots.
std::vector<TreeEntry> Trees::fresh_entries(std::size_t output, std::size_t c) const {
    std::vector<std::pair<double, std::uint32_t>> order;
    std::vector<double> row(width());
    for (std::size_t slot = 0; slot < terms_.size(); ++slot) {
        terms_.row(slot, row.data());
        const double key = sum_.coordinates()[c].of(row.data());
        if (!std::isnan(key) && terms_.coefs(slot)[output] != 0)
            order.push_back({key, static_cast<std::uint32_t>(slot)});
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

std::vector<Trees::OddEntry> Trees::odd_entries() const {
    std::vector<OddEntry> odd;
    for (std::size_t tree = 0; tree < outputs() * keys_.size(); ++tree) {
        const auto kept = sum_.entries(tree / keys_.size(), tree % keys_.size());
        const auto fresh = fresh_entries(tree / keys_.size(), tree % keys_.size());
        for (std::size_t j = 0; j < kept.size(); ++j)
            if (kept[j].coef != fresh[j].coef || kept[j].rest != fresh[j].rest)
                odd.push_back({tree, j, kept[j].coef, kept[j].rest});
    }
    return odd;
}

void Trees::visit(Archive& archive, std::uint64_t seen) {
    std::vector<std::int64_t> ids;
    for (std::size_t s = 0; s < terms_.size(); ++s) ids.push_back(terms_.id(s));
    archive.numbers("ids", ids);
    std::vector<Lines<double>> coefs;
    for (const auto& line : coefs_by_output()) coefs.emplace_back(line.begin(), line.end());
    archive.table("coef", coefs, outputs(), ids.size());
    archive.number("scale", scale_);
    archive.number("norm2", norm2_);
    constexpr double kMost = std::numeric_limits<double>::max();
    // A file holds finite numbers only; the largest one has the effect of an infinite bound.
    if (!(error_bound_ <= kMost)) error_bound_ = kMost;
    if (!(error_floor_ <= kMost)) error_floor_ = kMost;
    archive.number("doubt", error_bound_);
    archive.number("floor", error_floor_);
    if (archive.loads) {
        if (scale_ == 0) archive.refuse("scale", "is 0");
        if (terms_.size() != 0 || !archive.points || batch_count(*archive.points) != ids.size())
            archive.refuse("ids", "does not fit the points");
        check_ids(archive, ids, seen);
        terms_.reserve(ids.size());
        Lookahead lookahead = make_lookahead(*archive.points);
        std::vector<double> own(outputs());
        for (std::size_t slot = 0; slot < ids.size(); ++slot) {
            for (std::size_t o = 0; o < outputs(); ++o) own[o] = coefs[o][slot];
            keys(lookahead, slot);
            terms_.append(ids[slot], lookahead.input, own);
        }
        terms_.order_by_id();
    }
    if (!archive.loads || !archive.has("derive")) return visit_trees(archive);
    // Terms that were combined from other models are added one after the other.
    sum_.reserve_terms(terms_.size());
    for (std::size_t slot = 0; slot < terms_.size(); ++slot) {
        terms_.row(slot, row_.data());
        sum_.keys(row_.data(), keys_.data());
        for (std::size_t o = 0; o < outputs(); ++o)
            if (const double coef = terms_.coefs(slot)[o]; coef != 0) sum_.add(o, keys_.data(), coef);
    }
    if (!track_norm_) return;
    error_bound_ = std::numeric_limits<double>::max();
    repair_norm();
}

// The entries of the trees are recomputed from the terms, except those that rounding made different; shapes are saved.
void Trees::visit_trees(Archive& archive) {
    const std::size_t per_output = keys_.size(), trees = outputs() * per_output;
    std::vector<std::uint8_t> shapes;
    std::vector<std::int64_t> ends, odd_at;
    std::vector<double> odd_values;
    if (!archive.loads) {
        for (std::size_t tree = 0; tree < trees; ++tree) {
            const auto shape = sum_.shape(tree / per_output, tree % per_output);
            shapes.insert(shapes.end(), shape.begin(), shape.end());
            ends.push_back(static_cast<std::int64_t>(shapes.size()));
        }
        for (const OddEntry& odd : odd_entries()) {
            odd_at.insert(odd_at.end(), {static_cast<std::int64_t>(odd.tree), static_cast<std::int64_t>(odd.entry)});
            odd_values.insert(odd_values.end(), {odd.coef, odd.rest});
        }
    }
    archive.numbers("shapes", shapes);
    archive.numbers("shape_ends", ends, trees);
    archive.numbers("odd_at", odd_at);
    archive.numbers("odd_values", odd_values, odd_at.size());
    if (!archive.loads) return;
    std::size_t next = 0, from = 0;
    for (std::size_t tree = 0; tree < trees; ++tree) {
        const auto to = static_cast<std::size_t>(ends[tree]);
        if (to < from || to > shapes.size()) archive.refuse("shape_ends", "does not fit the others");
        auto entries = fresh_entries(tree / per_output, tree % per_output);
        for (; next < odd_at.size() && odd_at[next] == static_cast<std::int64_t>(tree); next += 2) {
            const auto entry = static_cast<std::size_t>(odd_at[next + 1]);
            if (entry >= entries.size()) archive.refuse("odd_at", "does not fit the points");
            entries[entry].coef = odd_values[next];
            entries[entry].rest = static_cast<float>(odd_values[next + 1]);
        }
        sum_.build(tree / per_output, tree % per_output, entries, {shapes.data() + from, to - from});
        from = to;
    }
    if (next != odd_at.size()) archive.refuse("odd_at", "does not fit the points");
}

}  // namespace gristmill
