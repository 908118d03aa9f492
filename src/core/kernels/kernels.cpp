#include "core/kernels/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace gristmill {

Kernel::Kernel(std::vector<Node> nodes) : nodes_(std::move(nodes)) {
    if (nodes_.empty()) throw std::invalid_argument("a kernel needs at least one node");
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        const Node& node = nodes_[i];
        const bool inner = node.op >= Op::normalized;
        const bool two = node.op == Op::sum || node.op == Op::product;
        auto below = [&](std::int32_t child) { return child >= 0 && child < static_cast<std::int32_t>(i); };
        if (inner != below(node.left) || two != below(node.right))
            throw std::invalid_argument("a kernel's nodes must follow their children");
        const bool l1 = node.op == Op::laplacian || node.op == Op::manhattan;
        needs_l1_ |= l1;
        needs_norm_ |= node.op == Op::gaussian || node.op == Op::squared_euclidean || node.op == Op::normalized;
        needs_dot_ |= !inner && !l1;
        restricts_points_ |= node.op == Op::normalized || (node.op == Op::vovk && node.n == 0);
    }
}

template <class T>
double Kernel::self_of(std::int32_t node, T norm2) const {
    T norms[kPad];
    double out[kPad];
    std::fill(norms, norms + kPad, norm2);
    std::vector<T> scratch(scratch_rows() * kPad);
    isa<T>().transform_self(nodes_.data(), node, norms, kPad, scratch.data(), out);
    return out[0];
}

template <class T>
double Kernel::self(T norm2) const {
    const Node& last = nodes_.back();
    if (last.op == Op::gaussian || last.op == Op::laplacian) return 1.0;  // the common case
    return self_of(root(), norm2);
}
template double Kernel::self<double>(double) const;
template double Kernel::self<float>(float) const;

std::optional<std::string> Kernel::refusal(double norm2) const {
    char text[200];
    for (const Node& node : nodes_) {
        if (node.op == Op::vovk && node.n == 0 && !(norm2 < 1)) {
            std::snprintf(text, sizeof text,
                          "has norm %.6g, but Vovk() without a degree needs every norm below 1; "
                          "divide the inputs by a number above %.6g",
                          std::sqrt(norm2), std::sqrt(norm2));
            return text;
        }
        if (node.op == Op::normalized && self_of(node.left, norm2) < 0) {
            std::snprintf(text, sizeof text,
                          "has k(x, x) = %.6g < 0 under the kernel to be normalised; "
                          "Normalized needs a positive definite kernel",
                          self_of(node.left, norm2));
            return text;
        }
    }
    return std::nullopt;
}

}  // namespace gristmill
