"""How the papers' claims are judged: differences within two standard errors of paired runs are undecided."""

from __future__ import annotations

import numpy as np
import pytest

from papers import Claim, fewer
from papers.norma_usps import _above
from papers.pairwise_auc import _competitive
from papers.pairwise_metric import _better
from papers.thesis import among_best, as_printed, standard_error, within

#: runs whose mean is 0 and whose standard error is 1
UNIT = np.array([-1.0, 1.0])
CASES = [(1.99, None), (2.01, True), (-1.99, None), (-2.01, False), (0.0, None)]


def test_the_unit_is_one_standard_error():
    assert standard_error(UNIT) == pytest.approx(1.0)
    assert standard_error([5.0]) == np.inf


@pytest.mark.parametrize(("gap", "holds"), CASES)
def test_errs_less(gap, holds):
    ours = np.array([30.0, 90.0])  # the level of a run does not matter: runs are paired
    assert fewer("", ours, ours + gap + UNIT).holds is holds
    assert fewer("", 0.01 * ours, 0.01 * (ours + gap + UNIT)).holds is holds  # nor does the unit


def test_one_run_tells_nothing():
    assert fewer("", [1.0], [100.0]).holds is None
    assert among_best("", [1.0], {"rival": [0.0]}).holds is None


def test_more_runs_tell_more():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=400)
    noise -= noise.mean()
    noise /= noise.std(ddof=1)
    for count, gap in ((400, 0.101), (100, 0.201)):
        part = noise[:count] - noise[:count].mean()
        part /= part.std(ddof=1)
        assert fewer("", np.zeros(count), gap + part).holds is True
        assert fewer("", np.zeros(count), gap - 0.002 + part).holds is None


@pytest.mark.parametrize(("lead", "holds"), [(1.99, True), (2.01, False), (-5.0, True)])
def test_one_of_the_best(lead, holds):
    ours = np.array([0.5, 0.7])
    assert among_best("", ours, {"rival": ours + lead + UNIT, "other": ours - 9.0}).holds is holds


@pytest.mark.parametrize(("gap", "holds"), [(1.0, True), (2.9, True), (3.1, None), (6.9, None), (7.1, False)])
def test_within_a_bound(gap, holds):
    assert within("", gap, 5.0, "", "", error=1.0).holds is holds


@pytest.mark.parametrize(("mean", "holds"), [(0.0, True), (2.9, True), (3.1, None), (-7.1, False)])
def test_as_printed_counts_both_errors(mean, holds):
    # ours has a standard error of 0.6, the printed mean one of 0.8: together 1
    claim = as_printed("", mean + 0.6 * UNIT, (0.0, 0.8 * np.sqrt(20)), 20, 5.0)
    assert claim.holds is holds


@pytest.mark.parametrize(
    ("lost", "holds"), [(0.0, True), (0.0079, True), (0.0081, None), (0.0119, None), (0.0121, False)]
)
def test_competitive(lost, holds):
    rival = np.full((2, 3), 0.9)
    assert _competitive(rival - lost - 0.001 * UNIT[:, None], rival) is holds


def test_unpaired_groups():
    # two groups of 200 whose mean has a standard error of 0.1 / sqrt(2) each, and their difference one of 0.1
    group = np.tile([-1.0, 1.0], 100)
    for gap, holds in ((0.199, None), (0.201, True), (-0.201, False)):
        assert _above("", group + gap, group).holds is holds


def test_a_metric_needs_two_standard_errors_of_runs_and_points():
    before = np.zeros((2, 2))
    before[0] = 2.0  # runs differ by 2: standard error 1; points do not differ
    for shift, holds in ((0.99, None), (1.01, True)):
        assert _better("", {"Euclid": before + shift, "PairwiseMetric": np.zeros((2, 2))}).holds is holds


def test_a_verdict_in_words():
    words = {holds: Claim("", "", "", holds).verdict for holds in (True, False, None)}
    assert words == {True: "holds", False: "DOES NOT HOLD", None: "cannot tell"}
