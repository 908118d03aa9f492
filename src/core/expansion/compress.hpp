// The few points that say best what many say: chosen greedily by what is left of f, coefficients by projection.
//
// f_o = sum_i a_io k(x_i,.) is projected onto the span of the points chosen so far, by a pivoted Cholesky factorisation:
// u_1, u_2, ... is the orthonormal basis that the chosen points make in turn, z_i are the coordinates of k(x_i,.) on it, and
// g_o those of f_o. The next point is the one at which what is left of f, r(x_i) = f(x_i) - <g, z_i>, is largest over all
// outputs; of equals, the first. Points that lie in the span already cannot be chosen.
#pragma once

#include <functional>
#include <vector>

#include "core/kernels/points.hpp"

namespace gristmill {

struct Compression {
    std::vector<std::size_t> slots;                // in the order in which they were chosen
    std::vector<std::vector<double>> coefs;        // by output, then chosen point
    std::vector<std::vector<double>> coordinates;  // by output: on the basis of the chosen points
    double norm2 = 0, left2 = 0;                   // ||f||^2, and of what is left of it, over the visible outputs
};

// coefs: one line an output, padded(points.size()) numbers each; the first `visible` of them decide, the others follow.
// At most `size` points are chosen: fewer where nothing is left of f. poll: called now and then; may throw to stop.
Compression compress(const Kernel& kernel, const Points& points, const std::vector<Lines<double>>& coefs, std::size_t visible,
                     std::size_t size, const std::function<void()>& poll);

}  // namespace gristmill
