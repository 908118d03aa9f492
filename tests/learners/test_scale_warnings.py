"""The first hundred events: one warning, in every cut, and nothing else changes; and defaults that do well."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from gristmill import (
    Density,
    DropOldest,
    DropSmallest,
    Gaussian,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    Laplacian,
    Merge,
    PassiveAggressive,
    Prepared,
    Project,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(250, 3))
Y = X[:, 0] > 0
Z = np.sin(X[:, 0])


def said_by(work):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("scale", [[1, 11.0, 1], [1, 0.09, 1]], ids=str)
@pytest.mark.parametrize("build", [KernelClassifier, KernelNovelty, lambda: KernelClassifier(Gaussian(0.5))])
def test_a_column_out_of_range_is_named_once_in_every_cut(build, scale):
    rows = X * scale
    models = [build() for _ in range(4)]
    told = [
        said_by(lambda: models[0].fit(rows, Y)),
        said_by(
            lambda: [models[1].partial_fit(rows[a : a + 7], Y[a : a + 7], **known(models[1])) for a in range(0, 250, 7)]
        ),
        said_by(lambda: [models[2].learn_one(x, y) for x, y in zip(rows, Y, strict=True)]),
        said_by(lambda: models[3].partial_fit(rows[:99], Y[:99])),
    ]
    assert [len(found) for found in told] == [1, 1, 1, 0]
    assert len({found[0] for found in told[:3]}) == 1
    assert "column 1 has a mean of" in told[0][0]
    assert "Prepared(" in told[0][0]
    assert np.array_equal(models[0].dual_coef_, models[1].dual_coef_)
    assert np.array_equal(models[0].dual_coef_, models[2].dual_coef_)


def known(model):
    return {"classes": [False, True]} if isinstance(model, KernelClassifier) else {}


def test_a_mean_far_from_zero_and_a_target_out_of_range():
    told = said_by(lambda: KernelClassifier().fit(X + np.array([0, 0, 12.0]), Y))
    assert len(told) == 1
    assert "column 2" in told[0]
    for target in (Z * 50, Z * 0.05, Z + 50_000):
        told = said_by(lambda target=target: KernelRegressor().fit(X, target))
        assert len(told) == 1
        assert "the target has a mean of" in told[0]
        assert "Prepared" in told[0]


def test_names_of_columns_are_used():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X * [1, 1, 1000], columns=["a", "b", "income"])
    assert "column 'income'" in said_by(lambda: KernelClassifier().fit(table, Y))[0]


def test_nothing_is_said_where_nothing_is_odd():
    assert not said_by(lambda: KernelClassifier().fit(X, Y))
    assert not said_by(lambda: KernelRegressor().fit(X, Z))
    assert not said_by(lambda: KernelClassifier().fit(np.column_stack([X, np.full(250, 7.0)]), Y))  # a constant
    rare = (np.arange(250) == 3).astype(float)
    assert not said_by(lambda: KernelClassifier().fit(np.column_stack([X, rare]), Y))
    assert not said_by(lambda: Prepared(KernelClassifier()).fit(X * [1, 1000, 1] + 5000, Y))


def test_a_regressor_that_stores_nothing_says_so():
    quiet = KernelRegressor(Laplacian(1.0), PassiveAggressive(epsilon=2.0))
    told = said_by(lambda: quiet.fit(X, Z))
    assert len(told) == 1
    assert "stores nothing after 100 events" in told[0]
    assert "epsilon=2.0" in told[0]
    told = said_by(lambda: Prepared(KernelRegressor(rule=PassiveAggressive(epsilon=1e6))).fit(X, Z))  # spreads
    assert len(told) == 1
    assert not said_by(lambda: quiet.partial_fit(X, Z))  # once


def test_the_defaults():
    assert KernelClassifier().fit(X, Y).kernel_ == Laplacian(1.0)
    assert KernelRegressor().fit(X, Z).kernel_ == Laplacian(1 / 3)
    assert KernelNovelty().fit(X).kernel_ == Gaussian(20 / 3)
    parts = KernelNovelty().checked_parts()
    assert (parts.rule, parts.budget) == (Density(), Merge(1000))
    for budget in (DropSmallest(10), Project(0.3), DropOldest(5)):
        assert type(KernelNovelty(budget=budget).checked_parts().rule).__name__ == "SGD"


def test_a_regressor_needs_no_unit_of_its_target():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(1500, 3))
    target = np.sin(2 * rows[:, 0]) + rows[:, 1]
    small = KernelRegressor().prequential(rows, target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        large = KernelRegressor().prequential(rows, 1000 * target)
    assert np.abs(small - target)[500:].mean() < 0.25 * np.abs(target).mean()
    assert np.abs(large / 1000 - target)[500:].mean() < 1.02 * np.abs(small - target)[500:].mean()


def test_the_default_detector_finds_what_is_strange_at_its_rate():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(4000, 4))
    strange = rng.choice(np.arange(1000, 4000), 30, replace=False)
    rows[strange] = rng.uniform(-7, 7, size=(30, 4))
    said = Prepared(KernelNovelty()).prequential(rows)
    rest = np.setdiff1d(np.arange(1000, 4000), strange)
    assert (said[strange][:, None] < said[rest][None]).mean() > 0.97
    assert 0.006 < (said[1000:] < 0).mean() < 0.014


def test_lone_events_take_the_short_way_from_the_second_on(monkeypatch):
    model, twin = (KernelRegressor(Gaussian(0.5), budget=DropOldest(20)) for _ in range(2))
    rows, target = X * [1, 11.0, 1], Z * 50
    told = said_by(lambda: twin.partial_fit(rows, target))
    model.learn_one(rows[0], target[0])

    def long_way(*_, **__):
        raise AssertionError("an event of plain numbers took the long way")

    monkeypatch.setattr(KernelRegressor, "_learn", long_way)
    short = said_by(lambda: [model.learn_one(x, z) for x, z in zip(rows[1:], target[1:], strict=True)])
    assert short == told
    assert len(told) == 2
    assert np.array_equal(model.dual_coef_, twin.dual_coef_)
