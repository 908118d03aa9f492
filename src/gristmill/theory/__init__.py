"""The papers' theory as tools: how to tune a learner, and what it can cost at worst.

Every function takes numbers that describe the stream (the largest k(x, x), the number of events), the
learner's parameters, and a comparator: any function g of the RKHS, chosen in hindsight. It returns what the
theorem promises. The same words mean the same thing throughout:

radius
    X or R in the papers: k(x, x) <= radius^2 for every point of the stream.
comparator_norm
    ||g||, or a bound on it (B, U, ||u||).
comparator_loss
    The sum over the stream of the comparator's hinge losses (K, D): `cumulative_hinge` computes it.
path_length, path_energy
    How far a comparator moves that may change over time: the sums of ||g_t - g_{t+1}|| and of its square
    (D1, D2).

A bound on mistakes counts events with y f(x) <= 0, a score of exactly 0 included. Where a printed theorem is
wrong, what is here is the corrected form, and its documentation says what was changed.
"""

from .comparator import cumulative_hinge
from .fast_rates import pairwise_fast_excess_bound, strongly_convex_excess_bound, strongly_convex_regret_bound
from .implicit import implicit_mistake_bound, implicit_risk_bound
from .landmarks import (
    LandmarkPlan,
    OrdinalUtility,
    RegressionUtility,
    dense_weight,
    landmark_excess_bound,
    landmark_pairs_for_loss,
    landmark_pairs_for_margin,
    landmarks_for,
    ordinal_utility,
    ranking_utility,
    regression_utility,
    shared_landmark_excess_bound,
    similarity_weight,
)
from .norma import (
    NormaTuning,
    norma_margin_tuning,
    norma_mistake_tuning,
    norma_norm_bound,
    norma_risk_bound,
    norma_truncation_error,
    norma_truncation_start,
    norma_window,
)
from .pairwise import (
    all_pairs_regret_bound,
    olp_rate,
    olp_regret_bound,
    pairwise_excess_bound,
    pairwise_risk_bound,
    rademacher_auc,
    rademacher_matrix,
    rademacher_mkl,
    rademacher_of_loss,
)
from .passive_aggressive import passive_aggressive_loss_bound, passive_aggressive_mistake_bound
from .perceptron import forgetron_mistake_bound, forgetron_norm_limit, perceptron_mistake_bound, romma_mistake_bound
from .projection import projection_loss_bound, projection_mistake_bound
from .projectron import (
    alma_correction_bound,
    alma_separable_bound,
    alma_step,
    projectron_mistake_bound,
    projectron_pp_mistake_bound,
)

__all__ = [
    "LandmarkPlan",
    "NormaTuning",
    "OrdinalUtility",
    "RegressionUtility",
    "all_pairs_regret_bound",
    "alma_correction_bound",
    "alma_separable_bound",
    "alma_step",
    "cumulative_hinge",
    "dense_weight",
    "forgetron_mistake_bound",
    "forgetron_norm_limit",
    "implicit_mistake_bound",
    "implicit_risk_bound",
    "landmark_excess_bound",
    "landmark_pairs_for_loss",
    "landmark_pairs_for_margin",
    "landmarks_for",
    "norma_margin_tuning",
    "norma_mistake_tuning",
    "norma_norm_bound",
    "norma_risk_bound",
    "norma_truncation_error",
    "norma_truncation_start",
    "norma_window",
    "olp_rate",
    "olp_regret_bound",
    "ordinal_utility",
    "pairwise_excess_bound",
    "pairwise_fast_excess_bound",
    "pairwise_risk_bound",
    "passive_aggressive_loss_bound",
    "passive_aggressive_mistake_bound",
    "perceptron_mistake_bound",
    "projection_loss_bound",
    "projection_mistake_bound",
    "projectron_mistake_bound",
    "projectron_pp_mistake_bound",
    "rademacher_auc",
    "rademacher_matrix",
    "rademacher_mkl",
    "rademacher_of_loss",
    "ranking_utility",
    "regression_utility",
    "romma_mistake_bound",
    "shared_landmark_excess_bound",
    "similarity_weight",
    "strongly_convex_excess_bound",
    "strongly_convex_regret_bound",
]
