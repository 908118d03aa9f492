// A scaling of the rows of a race, shared by the experts that ask for the same one.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "core/adapt/rank_scaling.hpp"
#include "core/adapt/scaling.hpp"

namespace gristmill {

class RaceScaling {
  public:
    enum class Method { standard, minmax, rank };

    RaceScaling(Method method, std::uint64_t warmup)
        : method(method), warmup(warmup), scaling_(ColumnScaling(false, warmup)) {}

    // memory: of the race, or 0. Moments are robust where a race shares out memory; what takes much of it is left out.
    void begin(std::size_t width, std::size_t memory) {
        width_ = width;
        const std::size_t sample = memory == 0 ? RankScaling::kSample : RankScaling::sample_within(memory, width);
        const bool robust = memory > 0 && method != Method::minmax && ColumnScaling::early_bytes(width) <= memory / 8;
        if (method == Method::rank && sample > 0) scaling_ = RankScaling(warmup, sample);
        else scaling_ = ColumnScaling(method == Method::minmax, warmup, robust);
    }
    // Ranks that take too much of the memory at this width become moments. Returns the ranks that stored points have to leave.
    std::optional<RankScaling> drop_ranks(std::size_t width, std::size_t memory) {
        if (memory == 0 || !rank() || RankScaling::sample_within(memory, width) > 0) return std::nullopt;
        RankScaling ranks = *rank();
        scaling_ = ranks.moments();
        return ranks;
    }
    void widen(std::size_t width, std::uint64_t events) {
        const std::vector<double> fresh(width - width_);
        width_ = width;
        std::visit(
            [&](auto& s) {
                if (s.seen > 0) s.widen(fresh, events);
            },
            scaling_);
    }

    // Whether points that were stored before have to follow: the maps of ranks were renewed before the first of these rows.
    bool learn(const double* rows, std::size_t n, double* out) {
        const std::uint64_t before = rank() ? rank()->renewals() : 0;
        std::visit(
            [&](auto& s) {
                if (s.seen == 0) s.widen({rows, width_}, 0);
                s.learn(rows, n, out);
            },
            scaling_);
        return rank() && rank()->renewals() != before;
    }
    void scale(const double* rows, std::size_t n, double* out) const {
        std::visit([&](const auto& s) { s.scale(rows, n, out); }, scaling_);
    }
    void begin_single() {
        std::visit([](auto& s) { s.begin(); }, scaling_);
    }
    void rollback() {
        std::visit([](auto& s) { s.rollback(); }, scaling_);
    }
    // Events that can be learned in one call in which maps are renewed before the first of them, or not at all.
    std::uint64_t run() const { return rank() ? rank()->run() : ~std::uint64_t{0}; }
    const RankScaling* rank() const { return std::get_if<RankScaling>(&scaling_); }
    const ColumnScaling* columns() const { return std::get_if<ColumnScaling>(&scaling_); }
    std::size_t bytes() const {
        return std::visit([](const auto& s) { return s.bytes(); }, scaling_);
    }
    std::size_t most_bytes(std::size_t width) const {
        if (rank()) return RankScaling::bytes_for(width, rank()->sample_rows);
        return 3 * width * sizeof(double) + early_bytes(width);
    }
    std::size_t early_bytes(std::size_t width) const {
        return columns() && columns()->robust && columns()->seen < ColumnScaling::kEarly
                   ? ColumnScaling::early_bytes(width)
                   : 0;
    }
    // Goes on with another of the same kind.
    void set(RankScaling scaling) { scaling_ = std::move(scaling); }
    void set(ColumnScaling scaling) {
        if (columns()) scaling.robust = columns()->robust;
        scaling_ = std::move(scaling);
    }

    // Saves or loads. requires, to load: a scaling that has begun with the same memory. width: of the rows.
    void visit(Archive& archive, std::size_t width) {
        if (archive.loads && method == Method::rank) {  // merged races may hold what fits another memory
            if (rank() && archive.has("low")) scaling_ = ColumnScaling(false, warmup);
            else if (columns() && archive.has("sample_rows")) scaling_ = RankScaling(warmup);
        }
        if (auto* columns = std::get_if<ColumnScaling>(&scaling_)) columns->visit(archive, width);
        else if (auto& rank = std::get<RankScaling>(scaling_); !archive.loads ? rank.seen > 0 : archive.has("columns"))
            rank.visit(archive);
        if (!archive.loads) return;
        width_ = width;
        if (rank() && rank()->seen > 0 && rank()->width() != width) archive.refuse("sample", "does not fit the others");
    }

    Method method;
    std::uint64_t warmup;

  private:
    std::variant<ColumnScaling, RankScaling> scaling_;
    std::size_t width_ = 0;
};

}  // namespace gristmill
