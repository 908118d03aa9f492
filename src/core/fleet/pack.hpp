// Members of a fleet as plain lists, for saving and loading; the points of all members are concatenated. Loaded lists
// are checked.
#pragma once

#include <algorithm>
#include <string>

#include "core/fleet/member.hpp"

namespace gristmill {

template <class T>
struct MemberPack {
    // one entry per member (numbers and intercept: several)
    std::vector<std::int64_t> sizes, seen, steps;
    std::vector<std::uint64_t> seeds, counters;
    std::vector<double> scale, numbers, intercept, scaling;
    // one entry per stored point, members in order, slots in order
    std::vector<std::int64_t> ids;
    std::vector<double> coef, labels;  // coef: one per output
    std::vector<T> points;             // `width` per point
    // optional: calibration, several per member; merge partners, one per point, and kernel rows computed, one per
    // member
    std::vector<double> calibration, likeness, shares, selves;
    std::vector<std::int64_t> partners;
    std::vector<std::uint8_t> stale;
    std::vector<std::uint64_t> partner_rows;

    std::size_t count() const { return sizes.size(); }
    static std::size_t scaling_numbers(const MemberShape& shape) {
        return shape.scaled ? Scaling::kNumbers * shape.width : 0;
    }

    template <class M>
    void add(const M& member, const MemberShape& shape) {
        sizes.push_back(static_cast<std::int64_t>(member.size()));
        seen.push_back(member.seen());
        steps.push_back(member.steps());
        const Random random = member.random();
        seeds.push_back(random.seed);
        counters.push_back(random.counter);
        scale.push_back(member.scale());
        for (std::size_t i = 0; i < shape.numbers; ++i) numbers.push_back(member.number(i));
        for (std::size_t o = 0; o < shape.outputs; ++o) intercept.push_back(member.intercept(o));
        for (std::size_t i = 0; i < scaling_numbers(shape); ++i)
            scaling.push_back(member.scaling(i / shape.width, i % shape.width));
        for (std::size_t i = 0; i < shape.calibration(); ++i) calibration.push_back(member.calibration(i));
        if (shape.merges) partner_rows.push_back(member.partner_rows());
        for (std::size_t s = 0; shape.merges && s < member.size(); ++s) {
            const MergePartners::PartnerState known = member.partner_state(s);
            partners.push_back(known.partner == MergePartners::kNone ? -1 : static_cast<std::int64_t>(known.partner));
            likeness.push_back(known.likeness);
            shares.push_back(known.share);
            selves.push_back(known.self);
            stale.push_back(known.stale);
        }
        for (std::size_t s = 0; s < member.size(); ++s) {
            ids.push_back(member.id(s));
            labels.push_back(member.label(s));
            for (std::size_t o = 0; o < shape.outputs; ++o) coef.push_back(member.coef(o, s));
            for (std::size_t j = 0; j < shape.width; ++j) points.push_back(member.point(s, j));
        }
    }

    // Writes member k, whose points start at `first`, into zeroed memory. Returns the start of the next member's
    // points.
    template <class M>
    std::size_t take(const M& member, const MemberShape& shape, std::size_t k, std::size_t first) const {
        member.scale() = scale[k];
        member.seen() = static_cast<std::uint32_t>(seen[k]);
        member.steps() = static_cast<std::uint32_t>(steps[k]);
        member.set_random({seeds[k], counters[k]});
        for (std::size_t i = 0; i < shape.numbers; ++i) member.number(i) = numbers[k * shape.numbers + i];
        for (std::size_t o = 0; o < shape.outputs; ++o) member.intercept(o) = intercept[k * shape.outputs + o];
        for (std::size_t i = 0; i < scaling_numbers(shape); ++i)
            member.scaling(i / shape.width, i % shape.width) = scaling[k * scaling_numbers(shape) + i];
        const std::size_t each = shape.calibration();
        for (std::size_t i = 0; i < each; ++i) member.calibration(i) = calibration[k * each + i];
        const auto size = static_cast<std::size_t>(sizes[k]);
        member.set_size(size);
        if (shape.merges) member.partner_rows() = partner_rows[k];
        for (std::size_t s = 0; shape.merges && s < size; ++s) {
            const std::size_t i = first + s;
            member.set_partner_state(s, {partners[i] < 0 ? MergePartners::kNone : static_cast<std::size_t>(partners[i]),
                                         likeness[i], shares[i], selves[i], stale[i] != 0});
        }
        for (std::size_t s = 0; s < size; ++s, ++first) {
            member.id(s) = static_cast<std::uint32_t>(ids[first]);
            member.set_label(s, labels[first]);
            for (std::size_t o = 0; o < shape.outputs; ++o) member.coef(o, s) = coef[first * shape.outputs + o];
            const T* row = points.data() + first * shape.width;
            for (std::size_t j = 0; j < shape.width; ++j) member.point(s, j) = row[j];
            member.set_norm2(s, gristmill::norm2(row, shape.width));
        }
        return first;
    }

    // Throws std::invalid_argument if the lists do not describe members of this shape. Returns whether all numbers are
    // bounded.
    bool check(const MemberShape& shape, std::size_t limit, std::size_t classes) const {
        const std::size_t n = count();
        std::size_t total = 0;
        for (std::size_t k = 0; k < n; ++k) {
            if (sizes[k] < 0 || static_cast<std::uint64_t>(sizes[k]) > limit) refuse("sizes", "is above the budget");
            total += static_cast<std::size_t>(sizes[k]);
        }
        const auto fits = [](const auto& list, std::size_t size, const char* name) {
            if (list.size() != size) refuse(name, "does not fit the others");
        };
        fits(seen, n, "seen");
        fits(steps, n, "steps");
        fits(seeds, n, "seeds");
        fits(counters, n, "counters");
        fits(scale, n, "scale");
        fits(numbers, n * shape.numbers, "numbers");
        fits(intercept, n * shape.outputs, "intercept");
        fits(scaling, n * scaling_numbers(shape), "scaling");
        fits(calibration, n * shape.calibration(), "calibration");
        const std::size_t merged = shape.merges ? total : 0;
        fits(partners, merged, "partners");
        fits(likeness, merged, "likeness");
        fits(shares, merged, "shares");
        fits(selves, merged, "selves");
        fits(stale, merged, "stale");
        fits(partner_rows, shape.merges ? n : 0, "partner_rows");
        fits(ids, total, "ids");
        fits(labels, total, "labels");
        fits(coef, total * shape.outputs, "coef");
        fits(points, total * shape.width, "points");
        bool bounded = true;
        const auto finite = [&](const auto& list, const char* name) {
            for (const auto x : list) {
                if (!std::isfinite(x)) refuse(name, "holds a number that is not finite");
                bounded = bounded && std::abs(x) <= kBoundedMost;
            }
        };
        finite(numbers, "numbers");
        finite(intercept, "intercept");
        finite(coef, "coef");
        finite(scale, "scale");
        finite(points, "points");
        finite(scaling, "scaling");
        finite(likeness, "likeness");
        finite(shares, "shares");
        finite(selves, "selves");
        check_calibration(shape, n);
        if (std::find(scale.begin(), scale.end(), 0.0) != scale.end()) refuse("scale", "is 0");
        check_labels(shape, classes);
        std::size_t first = 0;
        for (std::size_t k = 0; k < n; ++k) {
            if (seen[k] < 0 || static_cast<std::uint64_t>(seen[k]) > kMostEvents || steps[k] < 0 || steps[k] > seen[k])
                refuse("seen", "is not a number of events that a member can have seen");
            const auto size = static_cast<std::size_t>(sizes[k]);
            std::vector<std::int64_t> own(ids.begin() + static_cast<std::ptrdiff_t>(first),
                                          ids.begin() + static_cast<std::ptrdiff_t>(first + size));
            std::sort(own.begin(), own.end());
            if (std::adjacent_find(own.begin(), own.end()) != own.end() ||
                (size > 0 && (own[0] < 0 || own.back() >= seen[k])))
                refuse("ids", "does not hold distinct positions of the stream");
            for (std::size_t s = first; s < first + size; ++s)
                for (std::size_t o = 0; o < shape.outputs; ++o)
                    bounded = bounded && std::abs(coef[s * shape.outputs + o] * scale[k]) <= kBoundedMost;
            for (std::size_t s = first; shape.merges && s < first + size; ++s)
                if (partners[s] < -1 || partners[s] >= sizes[k]) refuse("partners", "does not fit the points");
            first += size;
        }
        return bounded;
    }

  private:
    [[noreturn]] static void refuse(const char* name, const char* why) {
        throw std::invalid_argument(std::string("the field '") + name + "' of a fleet " + why);
    }
    void check_calibration(const MemberShape& shape, std::size_t n) const {
        const std::size_t each = shape.calibration();
        Calibration one;
        for (std::size_t k = 0; each && k < n; ++k) {
            one.load(shape.outputs, [&](std::size_t i) { return calibration[k * each + i]; });
            if (!one.is_valid()) refuse("calibration", "holds a number out of range");
        }
    }
    void check_labels(const MemberShape& shape, std::size_t classes) const {
        if (shape.task == Task::novelty) return;
        for (const double label : labels) {
            if (shape.task == Task::regression && std::isinf(label))
                refuse("labels", "holds a number that is not finite");
            if (shape.task == Task::classification && !std::isnan(label) &&
                !(label >= 0 && label < static_cast<double>(std::max<std::size_t>(classes, 1)) &&
                  label == std::floor(label)))
                refuse("labels", "holds a class that is not there");
        }
    }
};

// Copies a member into the zeroed memory of another with at least as many slots and outputs.
template <class M>
void copy_member(const M& from, const MemberShape& old, const M& to, const MemberShape& shape) {
    to.scale() = from.scale();
    to.seen() = from.seen();
    to.steps() = from.steps();
    to.set_random(from.random());
    for (std::size_t i = 0; i < shape.numbers; ++i) to.number(i) = from.number(i);
    for (std::size_t o = 0; o < old.outputs; ++o) to.intercept(o) = from.intercept(o);
    for (std::size_t i = 0; shape.scaled && i < Scaling::kNumbers; ++i)
        for (std::size_t j = 0; j < shape.width; ++j) to.scaling(i, j) = from.scaling(i, j);
    to.set_size(from.size());
    for (std::size_t s = 0; s < from.size(); ++s) {
        to.id(s) = from.id(s);
        to.set_label(s, from.label(s));
        for (std::size_t o = 0; o < old.outputs; ++o) to.coef(o, s) = from.coef(o, s);
        for (std::size_t j = 0; j < shape.width; ++j) to.point(s, j) = from.point(s, j);
    }
    to.copy_norms(from);
    if (shape.merges) to.partner_rows() = from.partner_rows();
    for (std::size_t s = 0; shape.merges && s < from.size(); ++s) to.set_partner_state(s, from.partner_state(s));
    if (shape.calibration()) {
        Calibration calibration;
        calibration.load(old.outputs, [&](std::size_t i) { return from.calibration(i); });
        std::size_t outputs = old.outputs;
        if (outputs == 1 && shape.outputs > 1) {
            calibration.split();
            outputs = 2;
        }
        for (; outputs < shape.outputs; ++outputs) calibration.add();
        calibration.save([&](std::size_t i) -> double& { return to.calibration(i); });
    }
    if (old.outputs == 1 && shape.outputs > 1) to.split_output();
}

}  // namespace gristmill
