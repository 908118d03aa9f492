"""The bounds from the other side: attained where a stream attains them, and otherwise equal to what their proof gives.

`test_theory.py` and `test_theory_pairwise.py` say that no run exceeds a bound; a bound that is too large would pass there.
"""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from oracle import Twin
from scipy.optimize import brentq, minimize_scalar

from gristmill import theory
from gristmill.kernels import Linear
from gristmill.losses import Hinge
from gristmill.rules import SGD, PassiveAggressive


def part(name, **parameters):
    """A stand-in for a rule: an object whose class has this name."""
    return type(name, (SimpleNamespace,), {})(**parameters)


# ---- attained ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.3, 2.0])
def test_one_event_attains_the_loss_bound_of_passive_aggressive(C):
    """The best comparator of one event at distance 1 gives the loss that was suffered, 1."""
    twin = Twin(Linear(), PassiveAggressive(C=C, variant=2))
    suffered = max(0.0, 1.0 - twin.step(np.array([1.0]), 1.0)) ** 2
    found = minimize_scalar(
        lambda u: theory.passive_aggressive_loss_bound(1.0, C, u, (1 - u) ** 2), bounds=(0.0, 1.0), method="bounded"
    )
    assert found.fun == pytest.approx(suffered) == pytest.approx(1.0)


def test_one_event_attains_the_loss_bound_of_projections():
    twin = Twin(Linear(), part("FeasibleSet", epsilon=0.0, radius=None), task="regression")
    suffered = (3.0 - twin.step(np.array([0.5]), 3.0)) ** 2
    assert theory.projection_loss_bound(0.5, 6.0) == pytest.approx(suffered) == pytest.approx(9.0)


def test_a_point_that_comes_again_and_again_attains_truncation_and_norm():
    """Every event errs, so that the coefficients are a geometric series; what is dropped is its tail."""
    rate, reg, window, steps = 0.2, 0.5, 7, 400
    twin = Twin(Linear(), SGD(Hinge(1e9), rate, reg))
    for _ in range(steps):
        twin.step(np.array([1.0]), 1.0)
    assert math.sqrt(twin.norm2()) == pytest.approx(theory.norma_norm_bound(reg), rel=1e-9)
    twin.keep([i for i, event in enumerate(twin.ids) if event < steps - window])
    assert math.sqrt(twin.norm2()) == pytest.approx(theory.norma_truncation_error(window, rate, reg), rel=1e-9)


# ---- equal to what the proof gives -------------------------------------------------------------------------

PLACES = [(0.0, 1.0), (0.05, 2.0), (0.3, 1.5)]  # tolerance, norm
LOSSES = [0.0, 0.7, 12.0]


@pytest.mark.parametrize(
    ("margin", "C", "loss", "tolerance"), [(0.1, 0.7, 0.0, 0.0), (0.3, 1.0, 5.0, 0.1), (1.0, 0.5, 2.0, 0.2)]
)
def test_alma_solves_its_inequality_with_equality(margin, C, loss, tolerance):
    """N <= D/g + rho sqrt(N + 1), rho = 1/(C g), g = margin - tolerance: the largest N that it allows."""
    left = margin - tolerance
    largest = brentq(lambda n: loss / left + math.sqrt(n + 1) / (C * left) - n, 1e-9, 1e9)
    assert theory.alma_correction_bound(margin, C, loss, tolerance) == pytest.approx(largest)


@pytest.mark.parametrize(("norm", "gap", "loss"), [(1.0, 1.0, 0.0), (3.0, 0.5, 4.0), (0.5, 2.0, 30.0)])
def test_norma_is_tuned_to_the_least_of_what_a_rate_gives(norm, gap, loss):
    """A rate eta gives M <= (K + G^2 / (2 eta)) / (g - eta X^2 / 2) for a comparator that stays; the best one is chosen."""
    tuned = theory.norma_margin_tuning(1.0, norm, gap + 0.25, 0.25, 50, loss)
    best = minimize_scalar(
        lambda eta: (loss + norm**2 / (2 * eta)) / (gap - eta / 2), bounds=(1e-6, 2 * gap - 1e-6), method="bounded",
        options={"xatol": 1e-12},
    )  # fmt: skip
    assert tuned.bound == pytest.approx(best.fun, rel=1e-6)
    assert tuned.rate == pytest.approx(best.x, rel=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("tolerance", "norm"), PLACES)
def test_projectron(tolerance, norm, loss):
    q = 1 - tolerance * norm
    bound = (norm / q) ** 2 + loss / q + (norm / q) * math.sqrt(loss / q)
    assert theory.projectron_mistake_bound(tolerance, norm, loss) == pytest.approx(bound)
    if tolerance:
        less = (norm / q) ** 2 + loss / q + (norm / q) * math.sqrt(max(0.0, loss / q - 0.5))
        assert theory.projectron_pp_mistake_bound(tolerance, norm, 0.5, loss) == pytest.approx(less)
        assert less < bound or loss == 0


@pytest.mark.parametrize("loss", LOSSES)
def test_forgetron_and_passive_aggressive(loss):
    assert theory.forgetron_norm_limit(83) == pytest.approx(0.25 * math.sqrt(84 / math.log(84)))
    assert theory.forgetron_mistake_bound(83, 1.0, loss) == 2.0 + 4 * loss
    assert theory.passive_aggressive_mistake_bound(2.0, 0.5, 3.0, loss) == 4.0 * (9.0 + loss)
    assert theory.passive_aggressive_mistake_bound(1.0, 0.1, 3.0, loss) == pytest.approx(10.0 * (9.0 + 0.2 * loss))


def test_83_is_the_smallest_size_of_the_forgetron():
    def slack(size):
        return 15 / 32 - 1 / (size + 1) - 2 / math.sqrt(size + 1) - 1 / (2 * math.sqrt(math.log(size + 1)))

    assert slack(83) >= 0 > slack(82)
    with pytest.raises(ValueError, match="size"):
        theory.forgetron_mistake_bound(82, 1.0)


def test_projections_in_a_ball_pay_the_distance_to_its_far_side():
    assert theory.projection_mistake_bound(0.5, 2.0, ball=3.0) == pytest.approx(0.25 * 25)
    assert theory.alma_separable_bound(0.5, 0.1) == pytest.approx(200 * 9 + 12)


@pytest.mark.parametrize("truncated", [False, True])
def test_norma_risk(truncated):
    rate, reg, steps = 0.4, 0.5, 100
    U = 1 / reg
    share = rate * reg
    a = 2 * reg * U**2 * ((16 * share + 4 / share) if truncated else (2 * share + 1 / share))
    bound = steps * 0.3 + a * math.sqrt(steps) + U**2 / (2 * rate)
    assert theory.norma_risk_bound(0.3, steps, rate, reg, truncated=truncated) == pytest.approx(bound)


def test_implicit_against_a_moving_comparator():
    share, wide = 0.5 * 0.1, 1 + 0.5 * 0.1
    drift = 3.0 * 0.7 + (0.2 / share + 40 * share * 9.0) / 2
    bound = max(1 / wide**2, 1 / (0.5 * 2.0 * wide)) * (9.0 + drift + 2 * 0.5 * 2.0 * 1.5)
    assert theory.implicit_mistake_bound(1.0, 2.0, 3.0, 40, 0.5, 0.1, 1.0, 1.5, 0.7, 0.2) == pytest.approx(bound)


# ---- pairwise ----------------------------------------------------------------------------------------------


def every_sign(n):
    return np.array(list(itertools.product([-1.0, 1.0], repeat=n)))


def test_opposite_points_come_near_the_average_of_linear_scorers():
    """x_i = -x for all i: 2 r E|mean of signs|, which is 2 r sqrt(2 / (pi n)) in the limit."""
    n = 12
    measured = 2 * np.abs(every_sign(n).mean(axis=1)).mean()
    assert 0.75 < measured / theory.rademacher_auc(n, 1.0, 1.0) <= 1


def test_orthonormal_points_attain_the_average_of_similarities():
    n = 10
    means = every_sign(n) / n  # of x e_i^T: the Frobenius norm is that of the signs
    assert np.linalg.norm(means, axis=1).mean() == pytest.approx(theory.rademacher_matrix(n, "frobenius", 1.0, n, 1.0))


def test_metrics_pay_four_times():
    for norm in ("frobenius", "group", "l1", "trace"):
        pair = [theory.rademacher_matrix(9, norm, 1.0, 5, 1.0, 0.5, metric=metric) for metric in (False, True)]
        assert pair[1] == 4 * pair[0]


@pytest.mark.parametrize(("norm", "least"), [("group", 0.4), ("l1", 0.4), ("trace", 0.4)])
def test_averages_of_matrices_are_not_far_above_what_signs_reach(norm, least):
    """Rows of +-1/sqrt(d) have Euclidean norm 1 and largest entry 1/sqrt(d)."""
    rng, n, d = np.random.default_rng(0), 300, 16
    X = rng.choice([-1.0, 1.0], size=(n + 1, d)) / math.sqrt(d)
    signs = rng.choice([-1.0, 1.0], size=(300, n))
    means = np.einsum("tn,i,nj->tij", signs, X[0], X[1:]) / n
    dual = {
        "group": lambda m: np.linalg.norm(m, axis=0).max(),
        "l1": lambda m: np.abs(m).max(),
        "trace": lambda m: np.linalg.norm(m, ord=2),
    }[norm]
    measured = np.mean([dual(m) for m in means])
    bound = theory.rademacher_matrix(n, norm, 1.0, d, 1.0, 1 / math.sqrt(d))
    assert least * (1 if norm != "trace" else 0.6) <= measured / bound <= 1


@pytest.mark.parametrize(("constraint", "kernels", "least"), [("simplex", 40, 0.65), ("l2", 40, 0.6)])
def test_averages_of_mixtures_are_not_far_above_what_signs_reach(constraint, kernels, least):
    rng, n = np.random.default_rng(0), 400
    z = rng.choice([-1.0, 1.0], size=(n, kernels))
    means = rng.choice([-1.0, 1.0], size=(1000, n)) @ z / n
    top = means.max(axis=1) if constraint == "simplex" else np.linalg.norm(np.maximum(means, 0), axis=1)
    assert least <= top.mean() / theory.rademacher_mkl(n, kernels, 1.0, constraint) <= 1


def test_risk_and_excess_term_by_term():
    n, size, delta, bound = 40, 7, 0.1, 2.0

    def average(m):
        return 0.3 / math.sqrt(m)

    met = [min(t, size) for t in range(1, n)]

    def deviation(delta):
        return sum(
            2 * average(m) + bound * math.sqrt(math.log(2 * (n - 1) / delta) / (2 * m)) for m in met
        ) / (n - 1) + bound * math.sqrt(2 * math.log(2 / delta) / (n - 1))  # fmt: skip

    risk = theory.pairwise_risk_bound(n, 0.25, average, bound, delta, size)
    assert risk == pytest.approx(0.25 + deviation(delta))
    excess = theory.pairwise_excess_bound(n, 3.0, average, bound, delta, size)
    assert excess == pytest.approx(3.0 / (n - 1) + 2 * deviation(delta / 2))


def test_regret_of_a_buffer():
    assert theory.olp_rate(2.0, 3.0) == pytest.approx(3 / (2 * math.sqrt(2)))
    assert theory.olp_regret_bound(10, 2.0, 3.0) == pytest.approx(math.sqrt(2) * 2 * 3 * 3)
    lost = 100 - 20 - 1
    more = lost * (2 * 0.1 + 2 * math.sqrt(math.log(2 * lost / 0.05) / 40))
    assert theory.all_pairs_regret_bound(100, 20, 7.0, 0.1) == pytest.approx(7.0 + more)
