"""Fleets of prepared learners: each member scales by what it alone has seen, as it would alone, bit for bit."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import gristmill
from gristmill import (
    SGD,
    DropOldest,
    DropSmallest,
    Fleet,
    Gaussian,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    KeyedFleet,
    Laplacian,
    ModelFileError,
    PassiveAggressive,
    Prepared,
    Squared,
    Vovk,
)
from tests.fleets.test_fleet import frames
from tests.fleets.test_fleet import same as same_learner
from tests.fleets.test_keyed_fleet import events

CLASSIFIER = KernelClassifier(Gaussian(0.7), PassiveAggressive(0.5), DropSmallest(6), random_state=3)
REGRESSOR = KernelRegressor(Laplacian(0.4), SGD(Squared(), 0.1, 0.02, intercept=True), DropOldest(6), random_state=3)
NOVELTY = KernelNovelty(Gaussian(0.5), budget=DropSmallest(5), random_state=3)
PROTOTYPES = [
    Prepared(CLASSIFIER),
    Prepared(CLASSIFIER, "minmax"),
    Prepared(REGRESSOR, warmup=7, target=None),
    Prepared(REGRESSOR, "minmax", 3, target=None),
    Prepared(NOVELTY),
    Prepared(NOVELTY, None),
]


def same(a, b):
    same_learner(a.model_, b.model_)
    assert (a.scaler_ is None) == (b.scaler_ is None)
    if a.scaler_ is not None:
        assert a.scaler_.n_seen_ == b.scaler_.n_seen_
        for one, two in zip(a.scaler_.saved_fields()[0].values(), b.scaler_.saved_fields()[0].values(), strict=True):
            assert np.array_equal(one, two)


def targets(prototype, X):
    """Labels or targets of rows whose first column is not near 0."""
    if isinstance(prototype.model, KernelNovelty):
        return None
    return np.sin(X[..., 0]) if isinstance(prototype.model, KernelRegressor) else (X[..., 0] > 3).astype(int)


@pytest.mark.parametrize("prototype", PROTOTYPES, ids=repr)
def test_a_fleet_scales_as_its_members_would_alone(prototype):
    X = 3 + frames(60, 11) * [1.0, 1000.0, 0.0]
    y = targets(prototype, X)
    present = np.random.default_rng(1).random(X.shape[:2]) < 0.8
    fleet = Fleet(prototype, 11)
    told = {} if y is None or y.dtype.kind == "f" else {"classes": [0, 1]}
    said = []
    for at in np.split(np.arange(60), [1, 20]):
        said.append(fleet.prequential(X[at], None if y is None else y[at], present[at], **told))
    said = np.concatenate(said)
    for i in range(11):
        alone, here = clone(prototype), present[:, i]
        expected = alone.prequential(X[here, i], None if y is None else y[here, i], **told)
        assert np.array_equal(said[here, i], expected)
        same(fleet[i], alone)
        row = X[[0], i]
        assert np.array_equal(fleet.decision_function(X[0])[i], alone.decision_function(row)[0])
        assert fleet.predict(X[0])[i] == alone.predict(row)[0]


@pytest.mark.parametrize("prototype", PROTOTYPES, ids=repr)
@pytest.mark.parametrize("spill", [False, True])
def test_a_key_scales_as_its_learner_would_alone(prototype, spill, tmp_path):
    keys, X = events()
    X = 3 + X * [1.0, 1000.0, 1e-3]
    y = targets(prototype, X)
    told = {} if y is None or y.dtype.kind == "f" else {"classes": [0, 1]}
    settings = {"max_keys": 4, "spill": tmp_path / "keys.db"} if spill else {}
    fleet = KeyedFleet(prototype, **settings)
    said = []
    for at in np.split(np.arange(len(X)), [1, 50, 300]):
        said.append(fleet.prequential(keys[at], X[at], None if y is None else y[at], **told))
    said = np.concatenate(said)
    for key in np.unique(keys):
        alone, at = clone(prototype), keys == key
        assert np.array_equal(said[at], alone.prequential(X[at], None if y is None else y[at], **told))
        same(fleet[key], alone)
        assert np.array_equal(fleet.decision_function([key], X[:1]), alone.decision_function(X[:1]))
    assert fleet.decision_function([999], X[:1]).shape[0] == 1


@pytest.mark.parametrize("kind", [KernelClassifier, KernelRegressor, KernelNovelty])
def test_the_kernel_by_default_is_that_of_the_learner_alone(kind):
    keys, X = events(200, 4)
    prototype = Prepared(kind(budget=DropSmallest(6), random_state=0), target=None)
    y = targets(prototype, X)
    told = {"classes": [0, 1]} if kind is KernelClassifier else {}
    fleet = KeyedFleet(prototype).partial_fit(keys, X, y, **told)
    for key in fleet.keys_:
        at = keys == key
        same(fleet[key], clone(prototype).partial_fit(X[at], None if y is None else y[at], **told))


def test_float32_is_scaled_in_double_as_it_is_alone():
    keys, X = events(dtype=np.float32)
    fleet = KeyedFleet(Prepared(NOVELTY)).partial_fit(keys, X)
    same(fleet[3], Prepared(NOVELTY).partial_fit(X[keys == 3]))


def test_bytes_of_the_scaling_count():
    keys, X = events(4000, 500)
    plain, scaled = (KeyedFleet(model).partial_fit(keys, X) for model in (NOVELTY, Prepared(NOVELTY)))
    assert scaled.memory_bytes_ - plain.memory_bytes_ >= 500 * (3 * 3 * 8 - 63)  # a record is a number of whole lines


@pytest.mark.parametrize("kind", ["fleet", "keys"])
def test_files_pickles_and_copies_go_on(kind, tmp_path):
    if kind == "fleet":
        fleet, X = Fleet(Prepared(REGRESSOR, target=None), 5), 10 + frames(40, 5)
        first, rest = (X[:20], X[:20, :, 0]), (X[20:], X[20:, :, 0])
    else:
        keys, X = events()
        fleet = KeyedFleet(Prepared(REGRESSOR, target=None))
        first, rest = (keys[:200], X[:200], X[:200, 0]), (keys[200:], X[200:], X[200:, 0])
    fleet.partial_fit(*first).save(tmp_path / "fleet")
    others = [gristmill.load(tmp_path / "fleet"), pickle.loads(pickle.dumps(fleet)), copy.deepcopy(fleet)]
    expected = fleet.prequential(*rest)
    for other in others:
        assert np.array_equal(other.prequential(*rest), expected)
    arrays, fitted = fleet.saved_fields()
    for forged in (arrays["scaling"] * np.nan, arrays["scaling"][:, 1:]):
        with pytest.raises((ValueError, ModelFileError), match="scaling"):
            clone(fleet).restore_fields({**arrays, "scaling": np.ascontiguousarray(forged)}, fitted)


def test_a_member_goes_out_and_in_again():
    keys, X = events()
    fleet = KeyedFleet(Prepared(NOVELTY)).partial_fit(keys, X)
    member = fleet[3].partial_fit(X[:20])
    fleet[77] = member
    same(fleet[77], member)
    with pytest.raises(ValueError, match="prepared"):
        fleet[77] = member.model_
    with pytest.raises(ValueError, match="prepared"):
        fleet[77] = Prepared(NOVELTY, "minmax").partial_fit(X)


def test_a_prior_sees_the_rows_as_they_came():
    keys, X = events()
    prior = Prepared(KernelRegressor(Gaussian(0.3), budget=DropOldest(20), random_state=0), target=None)
    fleet = KeyedFleet(Prepared(REGRESSOR, target=None), prior=prior)
    said, first = fleet.prequential(keys, X, X[:, 0]), clone(prior).prequential(X, X[:, 0])
    rest = KeyedFleet(Prepared(REGRESSOR, target=None)).prequential(keys, X, X[:, 0] - first)
    assert np.array_equal(said, rest + first)


def test_what_cannot_be_scaled_changes_nothing():
    keys, X = events(100)
    for fleet, args in [
        (KeyedFleet(Prepared(NOVELTY)), (keys,)),
        (Fleet(Prepared(NOVELTY), 4), ()),
    ]:
        # Few events: later on a value so far out is drawn in.
        rows, args = (X[:20], (keys[:20],)) if args else (X.reshape(25, 4, 3)[:5], ())
        fleet.partial_fit(*args, rows)
        before = pickle.dumps(fleet)
        bad = rows.copy()
        bad.reshape(-1, 3)[10, 1] = 1e200
        with pytest.raises(ValueError, match="scaling leaves the range"):
            fleet.partial_fit(*args, bad)
        assert pickle.dumps(fleet) == before
        bad.reshape(-1, 3)[10, 1] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            fleet.partial_fit(*args, bad)
        assert pickle.dumps(fleet) == before
    vovk = KeyedFleet(Prepared(KernelNovelty(Vovk(), budget=DropSmallest(5)), "minmax"))
    with pytest.raises(ValueError, match="needs every norm below 1"):
        vovk.partial_fit(keys, X)


def test_what_members_have_no_room_for_is_refused_by_name():
    keys, X = events(50)
    with pytest.raises(ValueError, match=r"^Prepared: .*relevance"):
        KeyedFleet(Prepared(NOVELTY, "relevance")).partial_fit(keys, X)
    with pytest.raises(ValueError, match=r"^KeyedFleet cannot run Prepared\(\.\.\., scale='relevance'\)"):
        KeyedFleet(Prepared(KernelClassifier(budget=DropOldest(5)), "relevance")).partial_fit(keys, X, keys)
    with pytest.raises(TypeError, match="prototype"):
        KeyedFleet(Prepared(Prepared(NOVELTY))).partial_fit(keys, X)
    for fleet in (KeyedFleet(Prepared(REGRESSOR)), Fleet(Prepared(REGRESSOR), 2)):
        with pytest.raises(ValueError, match=r"target='scale'\); use target=None"):
            fleet.check_parameters()


# ---- classes that weigh -------------------------------------------------------------------------------------------


def test_classes_weigh_in_a_fleet_as_they_do_alone():
    keys, X = events()
    y = np.where(X[:, 0] > 0.5, "rare", "usual")
    model = clone(CLASSIFIER).set_params(class_weight={"rare": 3.0, "usual": 0.5})
    weights = np.random.default_rng(0).random(len(X))
    for given in (None, weights):
        fleet = KeyedFleet(model)
        said = fleet.prequential(keys, X, y, given, classes=["rare", "usual"])
        for key in np.unique(keys):
            at, alone = keys == key, clone(model)
            expected = alone.prequential(X[at], y[at], None if given is None else given[at], classes=["rare", "usual"])
            assert np.array_equal(said[at], expected)
    grid, labels = X[:396].reshape(99, 4, 3), y[:396].reshape(99, 4)
    fleet = Fleet(model, 4).partial_fit(grid, labels, classes=["rare", "usual"])
    same_learner(fleet[2], clone(model).partial_fit(grid[:, 2], labels[:, 2], classes=["rare", "usual"]))
    with pytest.raises(ValueError, match="balanced"):
        KeyedFleet(clone(model).set_params(class_weight="balanced")).partial_fit(keys, X, y)
