// What rules and budgets need of a hypothesis beyond scores, and what a hypothesis supports. Both declare it and the
// learner compares, so that no list of valid combinations is needed.
#pragma once

#include <algorithm>

namespace gristmill {

struct Needs {
    bool norm = false;        // ||f||^2 at every step
    bool projection = false;  // residual and projection of the new point relative to the span of the stored ones
    bool tangent = false;     // a second function v, its values and its inner product with f
    bool present = false;     // the coefficient of the event itself, if it is stored
    bool rows = false;        // kernel values and coefficients of single stored points
    bool partners = false;    // for each stored point the most similar one
    bool span = false;        // a hypothesis in the span of few points
    bool average = false;     // the average of all hypotheses
    bool mass = false;        // the sum of all coefficients
    double neighbours = 0;    // a score relative to this share of the stored points, the nearest ones

    // Description of the first need of `asked` that is not supported; nullptr if all are.
    const char* lacks(const Needs& asked) const {
        if (asked.norm && !norm) return "the norm of f at every step";
        if (asked.projection && !projection)
            return "the projection of a new point onto the stored ones (budget Project)";
        if (asked.tangent && !tangent) return "a second function beside f";
        if (asked.present && !present) return "points that it comes back to";
        if (asked.rows && !rows) return "stored points that can be looked at one by one";
        if (asked.partners && !partners) return "for each stored point the one most like it";
        if (asked.span && !span) return "the span of stored points";
        if (asked.average && !average) return "the mean of all hypotheses";
        if (asked.mass && !mass) return "the sum of all coefficients at every step";
        if (asked.neighbours > 0 && !(neighbours > 0)) return "the nearest of the stored points";
        return nullptr;
    }
    friend Needs operator|(Needs a, const Needs& b) {
        a.norm |= b.norm;
        a.projection |= b.projection;
        a.tangent |= b.tangent;
        a.present |= b.present;
        a.rows |= b.rows;
        a.partners |= b.partners;
        a.span |= b.span;
        a.average |= b.average;
        a.mass |= b.mass;
        a.neighbours = std::max(a.neighbours, b.neighbours);
        return a;
    }
};

}  // namespace gristmill
