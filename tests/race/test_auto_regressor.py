"""AutoRegressor: targets in any units, lines beside the kernels, and the parts of both against their twins."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gristmill
from gristmill import AutoRegressor, KernelRegressor, Laplacian, Merge, _core
from gristmill.prepared.target_scaler import TargetScale
from gristmill.race.baselines import Line, LineOfChanges
from gristmill.race.expert_sets import WIDEST


def events(count=900, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 4)) * [1.0, 20.0, 0.01, 3.0] - 7.0
    y = np.sin(2 * (X[:, 0] + 7)) + 0.05 * (X[:, 1] + 7) + 0.1 * rng.normal(size=count)
    return X, y


# ---- parts --------------------------------------------------------------------------------------------------------


def test_the_line_is_that_of_weighted_least_squares():
    rng = np.random.default_rng(1)
    Z, y = rng.normal(size=(300, 5)), rng.normal(size=300)
    line = _core.LeastSquares(5, 1.0)
    said = line.learn(Z, y)
    for row in (0, 1, 57, 299):
        A = np.eye(5) + Z[:row].T @ Z[:row]
        assert said[row] == pytest.approx(Z[row] @ np.linalg.solve(A, Z[:row].T @ y[:row]), abs=1e-9)
    forgetful = _core.LeastSquares(5, 0.95)
    forgetful.learn(Z, y)
    weight = 0.95 ** np.arange(299, -1, -1)
    A = 0.95**300 * np.eye(5) + (Z * weight[:, None]).T @ Z
    expected = np.linalg.solve(A, (Z * weight[:, None]).T @ y)
    np.testing.assert_allclose(forgetful.score(np.eye(5)), expected, rtol=1e-6, atol=1e-9)


def test_a_line_stays_sound_where_a_column_stands_still():
    line = _core.LeastSquares(2, 0.9)
    Z = np.tile([1.0, 0.0], (20_000, 1))
    assert np.isfinite(line.learn(Z, np.full(20_000, 3.0))).all()
    assert line.score(np.array([[1.0, 1.0]]))[0] == pytest.approx(3.0, abs=0.1)
    assert np.isfinite(line.state()["inverse"]).all()


def test_targets_are_measured_anew_at_positions_that_double_only():
    rng = np.random.default_rng(2)
    targets = np.concatenate([rng.normal(100.0, 3.0, size=64), rng.normal(900.0, 50.0, size=448)])
    scale, moves, start = TargetScale(), {}, 0
    while start < len(targets):
        stop = min(len(targets), start + scale.due())
        found = scale.learn(targets[start:stop])
        start = stop
        if found is not None or start == 2:
            moves[start] = found
    assert set(moves) <= {2, 4, 8, 16, 32, 64, 128, 256, 512}
    assert {2, 128} <= set(moves)
    assert scale.centre == pytest.approx(targets.mean())
    assert scale.spread == pytest.approx(targets.std())
    np.testing.assert_allclose(scale.outside(scale.inside(targets)), targets)


@pytest.mark.filterwarnings("ignore:.*first 100 events")  # columns are not scaled here
def test_what_is_said_does_not_jump_when_targets_are_measured_anew():
    X, y = events(300)
    model = KernelRegressor(Laplacian(0.3), budget=Merge(60)).fit(X, y)
    before, core = model.predict(X), model._engine
    labels = core.labels()[0].copy()
    core.rescale_targets(np.array([0.25]), np.array([-3.0]))
    np.testing.assert_allclose(model.predict(X), 0.25 * before - 3.0, atol=1e-12)
    np.testing.assert_allclose(core.labels()[0], 0.25 * labels - 3.0)
    with pytest.raises(ValueError, match="factor"):
        core.rescale_targets(np.array([-1.0]), np.zeros(1))


# ---- the whole ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", ["60 kB", "500 kB"])
def test_cuts_and_files_change_no_bit(memory, tmp_path):
    X, y = events()
    whole, cut, said, start = AutoRegressor(memory), AutoRegressor(memory), [], 0
    expected = whole.prequential(X, y)
    for stop in (1, 2, 7, 8, 9, 33, 100, 101, 350, 500, 640, 900):
        said.append(cut.prequential(X[start:stop], y[start:stop]))
        cut.save(tmp_path / "model")
        cut, start = gristmill.load(tmp_path / "model"), stop
    np.testing.assert_array_equal(expected, np.concatenate(said))
    np.testing.assert_array_equal(whole.predict(X), cut.predict(X))
    np.testing.assert_array_equal(whole.weights_, pickle.loads(pickle.dumps(cut)).weights_)


def test_units_of_columns_and_targets_do_not_matter():
    X, y = events(2000)
    said = AutoRegressor("300 kB").prequential(X, y)
    twos = AutoRegressor("300 kB").prequential(X * 2.0 ** np.array([3, -9, 0, 20]), y * 2.0**-12)
    np.testing.assert_array_equal(said, twos * 2.0**12)
    # Of a target that is far away fewer digits are left.
    for factor, shift, tolerance in ((10.0, 0.0, 1e-9), (1000.0, 5e4, 1e-9), (1.0, 5e4, 1e-5)):
        tens = AutoRegressor("300 kB").prequential(X, factor * y + shift)
        np.testing.assert_allclose(said[1:], ((tens - shift) / factor)[1:], rtol=0, atol=tolerance)


def test_a_target_far_from_zero_is_learned():
    X, y = events(2000)
    far = 50_000 + 100 * y
    said = AutoRegressor().prequential(X, far)
    assert np.abs(said - far)[1000:].mean() < 0.5 * np.abs(far - far.mean()).mean()


def test_a_series_is_told_no_worse_than_by_its_last_value():
    rng = np.random.default_rng(3)
    series = 100 + np.cumsum(rng.normal(size=1500))
    X = np.lib.stride_tricks.sliding_window_view(series, 5)[:-1]
    y = series[5:]
    model = AutoRegressor()
    said = model.prequential(X, y)
    last = np.abs(np.diff(y)).mean()
    assert np.abs(said - y)[100:].mean() < 1.03 * last
    experts = [type(found.expert) for found in model.report().experts if found.weight > 0.2]
    assert experts
    assert set(experts) <= {LineOfChanges, gristmill.race.baselines.LastValue}


def test_noise_is_told_no_worse_than_by_its_mean():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(1500, 3)), rng.normal(10.0, 2.0, size=1500)
    model = AutoRegressor()
    said = model.prequential(X, y)
    means = np.concatenate([[0.0], np.cumsum(y)[:-1] / np.arange(1, 1500)])
    assert np.abs(said - y).mean() <= 1.01 * np.abs(means - y).mean()
    assert model.report().baseline.error == pytest.approx(np.abs(means - y)[8:].mean(), rel=0.01)


def test_constant_targets_and_few_events():
    X, _ = events(50)
    model = AutoRegressor()
    said = model.prequential(X, np.full(50, 7.0))
    assert said[0] == 0.0
    np.testing.assert_allclose(said[1:], 7.0)
    assert model.target_spread_ == 0.0
    np.testing.assert_allclose(model.predict(X), 7.0)
    two = AutoRegressor().fit(X[:2], [1.0, 3.0])
    assert np.isfinite(two.predict(X)).all()


@pytest.mark.parametrize("memory", [60_000, 400_000])
def test_memory_is_never_more_than_was_asked(memory):
    X, y = events(2500)
    model = AutoRegressor(memory)
    for start in range(0, 2500, 97):
        model.partial_fit(X[start : start + 97], y[start : start + 97])
        assert model.memory_bytes_ <= memory


def test_bad_targets_change_nothing():
    X, y = events(400)
    model = AutoRegressor("100 kB").fit(X, y)
    before = pickle.dumps(model)
    bad = y.copy()
    bad[3] = np.nan
    with pytest.raises(ValueError, match="row 3"):
        model.partial_fit(X, bad)
    assert pickle.dumps(model) == before


def test_many_columns_have_no_lines():
    X = np.random.default_rng(0).normal(size=(30, WIDEST + 1))
    model = AutoRegressor().fit(X, X[:, 0])
    assert not any(isinstance(expert, Line) for expert in model.experts_)


def test_a_batch_is_looked_at_as_often_as_it_helps():
    X, y = events(1500)
    once, auto = AutoRegressor(passes=1).fit(X[:1000], y[:1000]), AutoRegressor().fit(X[:1000], y[:1000])
    errors = [np.abs(model.predict(X[1000:]) - y[1000:]).mean() for model in (once, auto)]
    assert errors[1] <= 1.02 * errors[0]
    assert auto.n_seen_ == 1000
