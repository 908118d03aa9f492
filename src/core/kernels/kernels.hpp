// A kernel as an expression over dot product, L1 distance and norms, evaluated row by row by simd/kernel_blocks.hpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/simd/dispatch.hpp"

namespace gristmill {

class Kernel {
  public:
    Kernel() = default;
    explicit Kernel(std::vector<Node> nodes);  // postfix: children before parents, the root last

    bool needs_dot() const { return needs_dot_; }
    bool needs_l1() const { return needs_l1_; }
    bool needs_norm() const { return needs_norm_; }  // whether the kernel depends on <x, x>
    // Whether the kernel is undefined for some finite points (1/(1-t), a negative diagonal under a root).
    bool restricts_points() const { return restricts_points_; }
    // Why a point of this squared norm is refused; nothing if it is accepted.
    std::optional<std::string> refusal(double norm2) const;

    template <class T>
    void values(const Pairs<T>& pairs, T* scratch, double* out) const {
        isa<T>().transform(nodes_.data(), root(), pairs, scratch, out);
    }
    // Values and the slopes that the kernel needs, see IsaGradient.
    template <class T>
    void slopes(const Pairs<T>& pairs, T* scratch) const {
        isa_gradient<T>().slopes(nodes_.data(), root(), pairs, {needs_dot_, needs_norm_, needs_l1_}, scratch);
    }
    template <class T>
    double self(T norm2) const;
    std::size_t slope_rows() const { return kSlopeScratch * (nodes_.size() + 2); }
    std::size_t scratch_rows() const { return nodes_.size() + 2; }

  private:
    std::int32_t root() const { return static_cast<std::int32_t>(nodes_.size()) - 1; }
    template <class T>
    double self_of(std::int32_t node, T norm2) const;

    std::vector<Node> nodes_;
    bool needs_dot_ = false, needs_l1_ = false, needs_norm_ = false, restricts_points_ = false;
};

}  // namespace gristmill
