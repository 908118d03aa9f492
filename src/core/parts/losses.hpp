// Losses: the negative derivative -dl/ds at a score, and the adaptation of the width (margin, tube, sigma).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/base/elementary.hpp"

namespace gristmill {

enum class LossKind { hinge, logistic, squared, epsilon_insensitive, huber, pinball };

struct Loss {
    LossKind kind = LossKind::hinge;
    double width = 1.0;        // rho, epsilon, sigma; the quantile of the pinball loss
    std::optional<double> nu;  // if set, the width adapts
    bool strict = false;       // novelty: no margin error at equality

    static constexpr double kSmallestSigma = 1e-6;

    // Whether the event is beyond the width: a margin error, outside the tube, in the linear part.
    bool beyond(double score, double label) const {
        switch (kind) {
            case LossKind::hinge: return strict ? label * score < width : label * score <= width;
            case LossKind::epsilon_insensitive:
            case LossKind::huber: return std::abs(label - score) > width;
            default: return false;
        }
    }

    // -dl/ds
    double push(double score, double label) const {
        const double error = label - score;
        switch (kind) {
            case LossKind::hinge: return beyond(score, label) ? label : 0.0;
            case LossKind::logistic: return label * sigmoid(-label * score);
            case LossKind::squared: return error;
            case LossKind::epsilon_insensitive: return beyond(score, label) ? std::copysign(1.0, error) : 0.0;
            case LossKind::huber: return beyond(score, label) ? std::copysign(1.0, error) : error / width;
            case LossKind::pinball: return error > 0 ? width : error < 0 ? width - 1 : 0.0;
        }
        return 0.0;
    }

    // d^2 l / ds^2, 0 at kinks
    double curvature(double score, double label) const {
        switch (kind) {
            case LossKind::logistic: {
                const double p = sigmoid(label * score);
                return p * (1 - p);
            }
            case LossKind::squared: return 1.0;
            case LossKind::huber: return beyond(score, label) ? 0.0 : 1.0 / width;
            default: return 0.0;
        }
    }

    // Adapts the width so that the share of events beyond it tends to nu.
    void adapt(double rate, bool was_beyond) {
        if (!nu) return;
        const double share = was_beyond ? 1.0 : 0.0;
        // A wider margin has more margin errors, a wider tube fewer.
        width += kind == LossKind::hinge ? rate * (*nu - share) : rate * (share - *nu);
        if (kind == LossKind::huber) width = std::max(width, kSmallestSigma);
    }

    static double sigmoid(double t) {  // 1/(1+e^-t) without overflow
        if (t >= 0) return 1.0 / (1.0 + elementary::exp(-t));
        const double e = elementary::exp(t);
        return e / (1.0 + e);
    }
};

}  // namespace gristmill
