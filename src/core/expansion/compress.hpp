// Compression: a few points that approximate f best, chosen greedily by the residual; coefficients by projection.
//
// f_o = sum_i a_io k(x_i,.) is projected onto the span of the points chosen so far, by a pivoted Cholesky
// factorisation: u_1, u_2, ... is the orthonormal basis of the chosen points in order, z_i are the coordinates of
// k(x_i,.) in it, and g_o those of f_o. The next point is the one with the largest residual r(x_i) = f(x_i) - <g, z_i>
// over all outputs; the first of equals. Points in the span cannot be chosen.
#pragma once

#include <functional>
#include <vector>

#include "core/kernels/points.hpp"

namespace gristmill {

struct Compression {
    std::vector<std::size_t> slots;                // in order of choice
    std::vector<std::vector<double>> coefs;        // by output, then chosen point
    std::vector<std::vector<double>> coordinates;  // by output: in the basis of the chosen points
    double norm2 = 0, left2 = 0;  // ||f||^2 and the squared norm of the residual, over the visible outputs
};

// coefs: one line of padded(points.size()) numbers per output; the first `visible` outputs decide, the others follow.
// At most `size` points are chosen, fewer if the residual is 0. poll: called now and then; may throw to stop.
Compression compress(const Kernel& kernel, const Points& points, const std::vector<Lines<double>>& coefs,
                     std::size_t visible, std::size_t size, const std::function<void()>& poll);

}  // namespace gristmill
