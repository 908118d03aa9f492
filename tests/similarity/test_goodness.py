"""Goodness: each definition against loops, the reductions of appendix A, intervals and pictures."""

import numpy as np
import pytest

from gristmill import Gaussian, Manhattan, Sigmoid, goodness
from gristmill.similarity.criteria import _best_weights, _classification, _share_interval
from gristmill.similarity.transfer import Identity, Ramp, Sign

RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(-1, 1, size=(80, 2)), RNG.normal(1, 1, size=(80, 2))])
Y = np.repeat([0, 1], 80)


def plain_margin(values, own, others, function, C_f, weight=lambda i, j: 1.0):
    margins = []
    for row, label in zip(values, own, strict=True):
        same, other = np.flatnonzero(others == label), np.flatnonzero(others != label)
        total = [weight(i, j) * float(function(row[i] - row[j])) for i in same for j in other]
        margins.append(np.mean(total) / C_f)
    return np.array(margins)


def test_margins_against_loops_and_the_reductions_of_appendix_A():
    values = RNG.uniform(0, 1, size=(15, 12))
    values[0, 0], values[1, 1] = 0.0, 1.0  # so that differences reach 1 and C_f is 2
    own, others = RNG.integers(0, 2, 15), np.repeat([0, 1], 6)
    report = _classification(values, own, others, 0.0, 0.95)
    functions = {"identity": Identity(), "ramp 10": Ramp(10.0), "sign": Sign()}
    for name, f in functions.items():
        assert np.allclose(report.margins[name], plain_margin(values, own, others, f, 2.0))
    # A.2: the identity is Balcan and Blum's margin, up to C_f
    assert np.allclose(report.margins["identity"] * 2.0, report.margins["balcan-blum"])
    # A.1: the sign is Wang's P[d(x, x') < d(x, x'')] - 1/2, with C_f = 2
    for i in range(15):
        same, other = values[i, others == own[i]], values[i, others != own[i]]
        nearer = np.mean([a > b for a in same for b in other])
        assert report.margins["sign"][i] == pytest.approx(nearer - 0.5)
    for row in report.rows:
        assert row.epsilon == np.mean(report.margins[row.definition] <= 0)


def test_weighted_pairs_are_balcan_blum_with_the_weights_of_appendix_A():
    """w'(x) = w(x) times the mean weight of the other class [E4.1]."""
    values = RNG.uniform(0, 1, size=(10, 12))
    own, others = RNG.integers(0, 2, 10), np.repeat([0, 1], 6)
    w = RNG.uniform(0, 1, 12)
    pairs = plain_margin(values, own, others, Identity(), 1.0, weight=lambda i, j: w[i] * w[j])
    opposite = np.where(others == 0, w[others == 1].mean(), w[others == 0].mean())
    for i in range(10):
        weighted = w * opposite * values[i]
        margin = weighted[others == own[i]].mean() - weighted[others != own[i]].mean()
        assert pairs[i] == pytest.approx(margin)


def test_a_better_similarity_is_seen_before_training():
    good = goodness(Gaussian(0.3), X, Y, random_state=0)
    noise = goodness(lambda a, b: float(np.sin(1e4 * a @ b)), X, Y, random_state=0)
    assert good.epsilon < 0.2 < 0.3 < noise["balcan-blum"].epsilon
    assert good.interval[0] <= good.epsilon <= good.interval[1]
    assert good.best.margin > 0
    assert good.gamma == 0.0
    assert "balcan-blum" in str(good)
    with pytest.raises(KeyError, match="sigmoid"):
        good["sigmoid"]


def test_a_larger_margin_is_harder():
    shares = [goodness(Gaussian(0.3), X, Y, gamma=g, random_state=0)["sign"].epsilon for g in (0.0, 0.2, 0.4)]
    assert shares == sorted(shares)
    assert shares[0] < shares[2]


def test_precomputed_and_distance_agree_with_the_kernel():
    k = Manhattan()
    one = goodness(k, X, Y, random_state=3)
    assert str(goodness("precomputed", k(X, X), Y, random_state=3)) == str(one)
    assert str(goodness(lambda a, b: np.abs(a - b).sum(), X, Y, distance=True, random_state=3)) == str(one)


@pytest.mark.parametrize("task", ["regression", "ordinal"])
def test_regression_and_ordinal_losses(task):
    y = X[:, 0] if task == "regression" else np.digitize(X[:, 0], [-1.0, 0.0, 1.0])
    report = goodness(Manhattan(), X, y, task=task, B=(0.1, 10.0), random_state=0)
    small, large = report.rows
    assert large.epsilon < small.epsilon
    for row in report.rows:
        assert row.low <= row.epsilon <= row.high
    assert (report.B, report.gamma) == (10.0, 0.0 if task == "regression" else 0.5)


def test_best_weights_are_in_the_box_and_no_others_are_better():
    design = RNG.normal(size=(40, 5))
    margins, signs = RNG.normal(size=40), np.repeat([1.0, -1.0], 20)
    w, c = _best_weights(design, margins, signs, 2.0)
    assert np.abs(w).max() <= 2.0 + 1e-9

    def loss(w, c):
        return np.maximum(margins - design @ w / 5 - signs * c, 0).mean()

    for _ in range(300):
        other = np.clip(w + 0.2 * RNG.normal(size=5), -2, 2)
        assert loss(other, c + 0.1 * RNG.normal()) >= loss(w, c) - 1e-9


def test_share_interval_is_exact():
    from scipy.stats import binom

    low, high = _share_interval(7, 50, 0.95)
    assert binom.sf(6, 50, low) == pytest.approx(0.025)
    assert binom.cdf(7, 50, high) == pytest.approx(0.025)
    assert _share_interval(0, 10, 0.95)[0] == 0.0
    assert _share_interval(10, 10, 0.95)[1] == 1.0


def test_pictures():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ax = goodness(Gaussian(0.3), X, Y, random_state=0).plot()
    assert len(ax.lines) == 9
    _, other = plt.subplots()
    assert goodness(Sigmoid(0.1), X, X[:, 0], task="regression", random_state=0).plot(other) is other
    assert len(other.lines) >= 1
    plt.close("all")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "ranking"}, "task must be"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"n_points": 0}, "n_points must be"),
        ({"confidence": 2.0}, "confidence must be"),
        ({"y": np.zeros(160)}, "1 class"),
        ({"y": Y[:5]}, "as many"),
        ({"similarity": "precomputed"}, "must be square"),
        ({"task": "regression", "B": -1.0}, "B must be"),
        ({"X": X[:3], "y": [0, 1, 0]}, "4 objects at least"),
    ],
)
def test_bad_input(changes, message):
    call = {"similarity": Gaussian(1.0), "X": X, "y": Y, **changes}
    with pytest.raises((ValueError, TypeError), match=message):
        goodness(**call)
