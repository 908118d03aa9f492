"""`AutoRegressor(quantile=...)`: shares of targets below the predictions, pinball losses, the mixture against a twin."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest

from gristmill import AutoRegressor, _core, merge

EVENTS = 2500


def uneven(count=EVENTS, seed=0):
    """Noise whose deviation depends on a column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3))
    return X, np.sin(2 * X[:, 0]) + (0.1 + 0.5 * np.abs(X[:, 1])) * rng.normal(size=count)


def pinball(y, predicted, quantile):
    off = y - predicted
    return float(np.maximum(quantile * off, (quantile - 1) * off).mean())


@pytest.mark.parametrize("quantile", [0.05, 0.5, 0.9])
def test_the_share_of_targets_below_is_the_quantile(quantile):
    X, y = uneven()
    found = AutoRegressor(quantile=quantile).prequential(X, y)
    for part in (slice(500, 1500), slice(1500, 2500)):
        assert abs(float((y[part] <= found[part]).mean()) - quantile) < 0.03
    assert pinball(y[500:], found[500:], quantile) < 0.8 * pinball(y[500:], np.quantile(y, quantile), quantile)


def test_the_share_stays_where_the_stream_changes():
    X, y = uneven(4000)
    y[2000:] = 5 - 3 * y[2000:]
    found = AutoRegressor(quantile=0.9).prequential(X, y)
    assert abs(float((y[2250:] <= found[2250:]).mean()) - 0.9) < 0.03


def test_a_larger_quantile_is_larger():
    X, y = uneven()
    low, middle, high = (AutoRegressor(quantile=q).fit(X, y).predict(X[:200]) for q in (0.1, 0.5, 0.9))
    assert (low < middle).mean() > 0.97
    assert (middle < high).mean() > 0.97


def test_neither_cuts_nor_units_nor_saving_matter():
    X, y = uneven(700)
    whole = AutoRegressor(quantile=0.8)
    expected = whole.prequential(X, y)
    for cuts in ((0, 1, 2, 7, 8, 9, 63, 64, 400, 700), (0, 350, 700)):
        model, parts = AutoRegressor(quantile=0.8), []
        for start, stop in itertools.pairwise(cuts):
            parts.append(model.prequential(X[start:stop], y[start:stop]))
            model = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(np.concatenate(parts), expected)
    one = AutoRegressor(quantile=0.8)
    for x, target in zip(X, y, strict=True):
        one.learn_one(x, float(target))
    np.testing.assert_array_equal(one.predict(X), whole.predict(X))
    units = 2.0 ** np.array([7, -3, 12])
    np.testing.assert_array_equal(AutoRegressor(quantile=0.8).prequential(X * units, 2.0**-9 * y), 2.0**-9 * expected)


def test_parts_become_one():
    X, y = uneven()
    parts = [AutoRegressor(quantile=0.9).partial_fit(X[at:2000:2], y[at:2000:2]) for at in (0, 1)]
    found = merge(parts).predict(X[2000:])
    assert abs(float((y[2000:] <= found).mean()) - 0.9) < 0.06
    with pytest.raises(ValueError, match="quantile"):
        merge([parts[0], AutoRegressor(quantile=0.5).partial_fit(X[:500], y[:500])])


def test_the_report_names_the_loss():
    X, y = uneven(600)
    model = AutoRegressor(quantile=0.9)
    found = model.prequential(X, y)
    report = model.report()
    assert "pinball loss of quantile 0.9" in str(report)
    own = model._engine.mixture.own_errors / 600
    assert report.error == pytest.approx(own)
    assert own == pytest.approx(pinball(y[8:], found[8:], 0.9) * 592 / 600, rel=1e-6)


@pytest.mark.parametrize("quantile", [0, 1, -0.5, 2.0, float("nan"), "high", True])
def test_what_is_no_quantile_is_refused(quantile):
    with pytest.raises((TypeError, ValueError), match="quantile"):
        AutoRegressor(quantile=quantile).partial_fit([[0.0], [1.0]], [0.0, 1.0])


# ---- a twin of the mixture ------------------------------------------------------------------------------------------


class Twin:
    """The mixture of a quantile in plain Python: two variants of each expert, pinball losses, AdaHedge, one correction."""

    def __init__(self, experts, share, quantile):
        self.count, self.share, self.quantile = experts, share, quantile
        self.weights, self.gap = [1 / (2 * experts)] * (2 * experts), 0.0
        self.residuals = [[] for _ in range(experts)]
        self.shift = self.unit = self.seen = 0.0
        self.errors, self.first = 0.0, 0.0

    def loss(self, predicted, target):
        return (self.quantile if target > predicted else 1 - self.quantile) * abs(predicted - target)

    def shift_of(self, expert):
        ranked = sorted(self.residuals[expert][-250:])
        if not ranked:
            return 0.0
        place = min(max((len(ranked) + 1) * self.quantile, 1.0), float(len(ranked)))
        below = int(place)
        low = ranked[below - 1]
        return low if below == len(ranked) else low + (place - below) * (ranked[below] - low)

    def learn(self, scores, target):
        scores = [s + self.shift_of(e) for e, s in enumerate(scores)] + list(scores)
        trust = [max(0.0, w - self.share / len(self.weights)) for w in self.weights]
        total = sum(trust)
        found = (sum(t * s for t, s in zip(trust, scores, strict=True)) / total if total > 0 else 0.0) + self.shift
        error = self.loss(found, target)
        self.seen += 1
        if self.seen == 1:
            self.first = error
        self.errors += error
        most = self.first if self.seen == 1 else 20 * (self.errors - self.first) / (self.seen - 1)
        self.hedge([min(self.loss(s, target), most) for s in scores])
        for expert in range(self.count):
            self.residuals[expert].append(target - scores[self.count + expert])
        off = target - found
        self.unit += (abs(off) - self.unit) / min(self.seen, 128)
        self.shift += 0.02 * self.unit * (self.quantile if off > 0 else self.quantile - 1)
        return found

    def hedge(self, losses):
        least, mean = min(losses), sum(w * x for w, x in zip(self.weights, losses, strict=True))
        if self.gap == 0 and mean - least > 1e-9 * mean:
            self.gap = 0.1 * (mean - least)
        if self.gap == 0:
            return
        eta = math.log(len(losses)) / self.gap
        trial = [w * math.exp(-eta * (x - least)) for w, x in zip(self.weights, losses, strict=True)]
        total = sum(trial)
        self.gap = max(0.0, 0.999 * self.gap + max(0.0, mean - (least - math.log(total) / eta)))
        self.weights = [(1 - self.share) * t / total + self.share / len(trial) for t in trial]


@pytest.mark.parametrize("quantile", [0.1, 0.95])
def test_the_mixture_is_that_of_the_twin(quantile):
    rng = np.random.default_rng(3)
    y = rng.gamma(2.0, size=600)
    scores = np.stack([y + rng.normal(size=600) * width + off for width, off in ((0.5, 0.0), (0.1, 1.0), (2.0, -1.0))])
    core, twin = _core.Mixture("numbers", 3, 0.004, quantile), Twin(3, 0.004, quantile)
    found = core.learn(np.ascontiguousarray(scores[:, :, None]), [0, 1, 2], y, 0)[:, 0]
    expected = [twin.learn(scores[:, at].tolist(), float(y[at])) for at in range(600)]
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
    assert abs(float((y[200:] <= found[200:]).mean()) - quantile) < 0.04
