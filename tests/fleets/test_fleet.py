"""A fleet is its learners: each member equals the same learner alone, bit for bit."""

from __future__ import annotations

import contextlib
import copy
import pickle
import signal
import threading

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import gristmill
from gristmill import (
    SGD,
    Alma,
    DropOldest,
    DropRandom,
    DropSmallest,
    EpsilonInsensitive,
    Exponential,
    FeasibleSet,
    Fleet,
    Forget,
    Gaussian,
    Hinge,
    Huber,
    Implicit,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    Laplacian,
    Linear,
    Logistic,
    Merge,
    ModelFileError,
    Normalized,
    PassiveAggressive,
    Perceptron,
    Pinball,
    Polynomial,
    Project,
    Sigmoid,
    Squared,
    Unbounded,
    Window,
)
from gristmill.fleets.fleet import Fleet as Home

BUDGETS = [Window(5), Window(17), DropOldest(6), DropSmallest(6), DropSmallest(21), DropRandom(6), Merge(6), Merge(19)]
CLASSIFIERS = [
    Perceptron(),
    SGD(Hinge(0.5), 0.2, 0.05),
    SGD(Hinge(0.5, nu=0.3), 0.2, 0.05),
    SGD(Logistic(), 0.5, 0.03, "inv_sqrt", intercept=True),
    SGD(Hinge(1.0), 0.5, 2.0),  # forgets everything at each step
    PassiveAggressive(1.0, 0),
    PassiveAggressive(0.3, 1),
    PassiveAggressive(0.5, 2),
    FeasibleSet(),
    Implicit(Hinge(), 1.0, 0.7, 0.05),
    Implicit(Logistic(), 1.0, 0.7, 0.05),
]
REGRESSORS = [
    SGD(Squared(), 0.3, 0.05, intercept=True),
    SGD(EpsilonInsensitive(0.1, nu=0.3), 0.1, 0.05),
    SGD(Huber(0.3, nu=0.3), 0.1, 0.05, "inv_sqrt"),
    SGD(Pinball(0.7), 0.1, 0.05),
    PassiveAggressive(0.3, 1, 0.05),
    FeasibleSet(0.05),
    Implicit(Squared(), 1.0, 0.7, 0.05),
]
NOVELTIES = [SGD(Hinge(0.0, nu=0.1), 0.2, 0.01), Implicit(Hinge(1.0), 0.1, 1.0, 0.005)]
KERNELS = [
    Gaussian(1.3),
    Laplacian(0.7),
    Linear(),
    Polynomial(3, 0.5, 1.0),
    Exponential(1.5),
    Sigmoid(0.3, 0.1),
    Normalized(Polynomial(2, 0.5, 1.0)),
    0.5 * Gaussian(0.4) + Linear() * Laplacian(0.3),
]


def frames(count, n, width=3, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(count, n, width)).astype(dtype)


def separate(prototype, X, y=None, present=None, weights=None, classes=None):
    """The learners one by one, and what they said before learning."""
    prototype.set_params(random_state=3)
    models, said = [], []
    for i in range(X.shape[1]):
        model = clone(prototype)
        here = np.ones(len(X), dtype=bool) if present is None else present[:, i]
        label = None if y is None else y[here, i]
        weight = None if weights is None else weights[here, i]
        told = {} if classes is None else {"classes": classes}
        scores = model.prequential(X[here, i], label, weight, **told)
        full = np.full((len(X), *scores.shape[1:]), np.nan)
        full[here] = scores
        models.append(model)
        said.append(full)
    return models, np.stack(said, axis=1)


def same(a, b):
    """Every number of two learners' states, but for the intervals of regressors, which a fleet does not keep."""
    one, two = (
        {name: value for name, value in model._engine.state().items() if not name.startswith("intervals")}
        for model in (a, b)
    )
    assert list(one) == list(two)
    for name in one:
        assert np.array_equal(one[name], two[name]), name
        assert one[name].dtype == two[name].dtype


def compare(prototype, X, y=None, present=None, weights=None, classes=None, cuts=(1, 7, 8)):
    models, expected = separate(prototype, X, y, present, weights, classes)
    fleet = Fleet(prototype, X.shape[1])
    said = []
    for at in np.split(np.arange(len(X)), cuts):
        if len(at) == 0:
            continue
        part = [None if table is None else table[at] for table in (y, present, weights)]
        said.append(fleet.prequential(X[at], *part, classes=classes))
    assert np.array_equal(np.concatenate(said), expected, equal_nan=True)
    for i, model in enumerate(models):
        same(fleet[i], model)
    rows = frames(1, X.shape[1], X.shape[2], seed=9, dtype=X.dtype)[0]
    lone = np.stack([model.decision_function(rows[[i]])[0] for i, model in enumerate(models)])
    assert np.array_equal(fleet.decision_function(rows), lone)
    assert np.array_equal(fleet.predict(rows), [model.predict(rows[[i]])[0] for i, model in enumerate(models)])
    if isinstance(prototype, KernelClassifier):
        shares = np.stack([model.predict_proba(rows[[i]])[0] for i, model in enumerate(models)])
        assert np.array_equal(fleet.predict_proba(rows), shares)
    assert fleet.n_support_.tolist() == [model.n_support_ for model in models]
    assert fleet.n_seen_.tolist() == [model.n_seen_ for model in models]
    return fleet


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@pytest.mark.parametrize("rule", CLASSIFIERS, ids=repr)
def test_classifiers(rule, budget, dtype):
    X = frames(40, 19, dtype=dtype)
    y = np.where(X[:, :, 0] + 0.3 * X[:, :, 1] > 0, "up", "down")
    compare(KernelClassifier(Gaussian(0.7), rule, budget, random_state=3), X, y, classes=["down", "up"])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@pytest.mark.parametrize("rule", REGRESSORS, ids=repr)
def test_regressors(rule, budget, dtype):
    X = frames(40, 17, dtype=dtype)
    compare(KernelRegressor(Gaussian(0.7), rule, budget, random_state=3), X, np.sin(2 * X[:, :, 0]).astype(np.float64))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@pytest.mark.parametrize("rule", NOVELTIES, ids=repr)
def test_novelty(rule, budget, dtype):
    compare(KernelNovelty(Gaussian(0.7), rule, budget, random_state=3), frames(60, 33, dtype=dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels(kernel, dtype):
    X = 0.5 * frames(30, 18, 5, dtype=dtype)
    compare(
        KernelRegressor(kernel, PassiveAggressive(0.3), DropSmallest(7)), X.astype(dtype), X[:, :, 0].astype(np.float64)
    )


def test_the_kernel_by_itself():
    X = frames(20, 5, 4)
    compare(KernelRegressor(budget=DropOldest(5)), X, X[:, :, 0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("budget", [Window(9), DropSmallest(6), DropOldest(20)], ids=repr)
def test_missing_events_and_weights(budget, dtype):
    X = frames(50, 21, dtype=dtype)
    y = np.sign(X[:, :, 0])
    rng = np.random.default_rng(4)
    present, weights = rng.random((50, 21)) < 0.6, rng.integers(0, 3, size=(50, 21)) / 2
    X[~present] = np.nan  # absent members are not read
    present[0] = True
    X[0] = 0.5
    rule = SGD(Hinge(0.5, nu=0.2), 0.2, 0.05, "inv_sqrt")
    compare(KernelClassifier(Gaussian(1.0), rule, budget), X, y, present, weights, classes=[-1, 0, 1][::2])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_three_classes(dtype):
    X = frames(40, 18, dtype=dtype)
    y = np.digitize(X[:, :, 0], [-0.5, 0.5])
    for rule in (Perceptron(), PassiveAggressive(0.5), SGD(Hinge(), 0.3, 0.05, intercept=True)):
        for budget in (DropSmallest(8), Window(11)):
            compare(KernelClassifier(Gaussian(0.7), rule, budget), X, y, classes=[0, 1, 2])


def test_a_class_that_comes_late_comes_to_all():
    X = frames(30, 17)
    y = (X[:, :, 0] > 0).astype(int)
    y[0] = np.arange(17) % 2
    y[20, 5] = 2
    prototype = KernelClassifier(Gaussian(0.7), PassiveAggressive(0.5), DropSmallest(8), random_state=0)
    fleet, whole = Fleet(prototype, 17), Fleet(prototype, 17)
    fleet.partial_fit(X[:20], y[:20])
    assert fleet.classes_.tolist() == [0, 1]
    scores = fleet.prequential(X[20:], y[20:])
    assert scores.shape == (10, 17, 3)
    together = whole.prequential(X, y)
    assert together.shape == (30, 17, 3)
    assert np.array_equal(together[20:], scores)
    for i in (0, 5):
        model = clone(prototype).partial_fit(X[:20, i], y[:20, i], classes=[0, 1])
        model.partial_fit(X[20:, i], y[20:, i], classes=[0, 1, 2])
        same(fleet[i], model)
        same(whole[i], model)


def test_threads_change_nothing():
    X = frames(30, 100)
    prototype = KernelNovelty(Gaussian(0.7), budget=DropSmallest(8))
    one, three = Fleet(prototype, 100), Fleet(prototype, 100, n_jobs=3)
    assert np.array_equal(one.prequential(X), three.prequential(X))
    assert np.array_equal(one.decision_function(X), three.decision_function(X))


def test_step_is_one_frame():
    X = frames(12, 10)
    prototype = KernelNovelty(Gaussian(0.7), budget=DropSmallest(4))
    whole, steps = Fleet(prototype, 10), Fleet(prototype, 10)
    assert np.array_equal(whole.prequential(X), np.stack([steps.step(x) for x in X]))
    assert steps.memory_bytes_ == whole.memory_bytes_ or steps.n_support_.max() == 4


def test_scales_far_down_are_multiplied_in():
    X = np.repeat(frames(1, 3), 400, axis=0)
    y = np.where(np.arange(400)[:, None] % 50 == 0, 1.0, 0.0) * np.ones((400, 3))
    compare(KernelRegressor(Gaussian(1.0), SGD(EpsilonInsensitive(0.5), 0.5, 1.8), DropSmallest(3)), X, y, cuts=(100,))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 7])
@pytest.mark.parametrize(
    "budget", [DropSmallest(15), DropOldest(16), DropSmallest(33), DropSmallest(64), DropOldest(65)], ids=repr
)
def test_members_that_are_full_at_different_times(budget, width, dtype):
    """Whole frames are learned together, up to the first in which a member must be asked alone."""
    X = frames(150, 35, width, seed=2, dtype=dtype)
    X[:, 4] = X[0, 4]  # one learner that has seen it all
    y = np.sin(2 * X[:, :, 0]).astype(np.float64)
    weights = np.random.default_rng(3).integers(1, 4, size=y.shape) / 2
    weights[100:120, 8] = 0
    for rule in (SGD(Squared(), 0.2, 0.01, "inv_sqrt", intercept=True), PassiveAggressive(0.3, 1, 0.05)):
        compare(KernelRegressor(Gaussian(0.7), rule, budget), X, y, weights=weights, cuts=(90,))
    compare(KernelNovelty(Laplacian(0.5), NOVELTIES[0], budget), X, weights=weights, cuts=(90,))


# ---- members ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("reg", [0.0, 1e-12, 1e-6, 1e-4])
@pytest.mark.parametrize("gamma", [0.5, 30.0, 3000.0])
def test_coefficients_that_are_nearly_the_same_and_points_far_apart(gamma, reg, dtype):
    """Lanes are compared by a part of their numbers first, and exp of numbers far below 0 has a path of its own."""
    X = frames(60, 35, seed=4, dtype=dtype)
    X[:, 3] *= 0.01  # one learner whose points are near
    compare(KernelNovelty(Gaussian(gamma), Implicit(Hinge(1.0), 0.02, 1.0, reg), DropSmallest(18)), X)


def test_a_member_goes_out_and_in_again():
    X = frames(30, 9)
    prototype = KernelRegressor(Gaussian(0.7), SGD(Squared(), 0.3, 0.05), DropSmallest(5))
    fleet = Fleet(prototype, 9).partial_fit(X, X[:, :, 0])
    member = fleet[4].partial_fit(X[:10, 0], X[:10, 0, 1])
    before = fleet[3].decision_function(X[:, 3])
    fleet[4] = member
    same(fleet[4], member)
    assert np.array_equal(fleet[3].decision_function(X[:, 3]), before)
    assert fleet[-5].n_seen_ == 40
    with pytest.raises(IndexError, match="9 members"):
        fleet[9]
    with pytest.raises(ValueError, match="same kind and parts"):
        fleet[0] = KernelRegressor(Gaussian(0.5)).fit(X[:, 0], X[:, 0, 0])
    with pytest.raises(ValueError, match="float32"):
        fleet[0] = clone(prototype).fit(X[:, 0].astype(np.float32), X[:, 0, 0])


def test_members_begin_with_seeds_of_their_own():
    X, y = frames(60, 4), np.ones((60, 4))
    X[:] = X[:, :1]
    y[::2] = -1
    prototype = KernelClassifier(Gaussian(9.0), Perceptron(), DropRandom(3))
    ids = [tuple(Fleet(prototype, 4).partial_fit(X, y)[i].support_ids_) for i in range(4)]
    assert len(set(ids)) > 1
    prototype.random_state = 5
    seeded = Fleet(prototype, 4).partial_fit(X, y)
    assert len({tuple(seeded[i].support_ids_) for i in range(4)}) == 1


# ---- files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_files_and_pickles_go_on(tmp_path, dtype):
    X = frames(40, 20, dtype=dtype)
    y = np.digitize(X[:, :, 0], [-0.5, 0.5])
    prototype = KernelClassifier(Gaussian(0.7), SGD(Hinge(0.5, nu=0.2), 0.3, 0.05), DropRandom(6), random_state=1)
    fleet = Fleet(prototype, 20).partial_fit(X[:25], y[:25])
    fleet.save(tmp_path / "fleet")
    others = [gristmill.load(tmp_path / "fleet"), pickle.loads(pickle.dumps(fleet)), copy.deepcopy(fleet)]
    expected = fleet.prequential(X[25:], y[25:])
    for other in others:
        assert type(other) is Home
        assert other.classes_.tolist() == [0, 1, 2]
        assert np.array_equal(other.prequential(X[25:], y[25:]), expected)
        same(other[11], fleet[11])


def test_forged_files_are_refused():
    prototype = KernelNovelty(Gaussian(0.7), Implicit(Hinge(1.0), 0.1, 1.0, 0.005), DropSmallest(4))
    fleet = Fleet(prototype, 6).partial_fit(frames(9, 6))
    arrays, fitted = fleet.saved_fields()
    for name, forge in {
        "sizes": lambda a: a + 9,
        "seen": lambda a: a * 0,
        "ids": lambda a: a * 0,
        "coef": lambda a: a * np.nan,
        "scale": lambda a: a * 0,
        "points": lambda a: a[1:],
        "labels": lambda a: a.astype(np.float32),
    }.items():
        with pytest.raises(ValueError, match=name):
            clone(fleet).restore_fields({**arrays, name: np.ascontiguousarray(forge(arrays[name]))}, fitted)
    with pytest.raises(ModelFileError, match="members"):
        Fleet(fleet.prototype, 7).restore_fields(arrays, fitted)


# ---- what is refused ----------------------------------------------------------------------------------------------


def test_what_is_not_admitted_is_refused_by_name():
    X, y = frames(2, 3), np.array([[0, 1, 0], [1, 0, 1]])
    for parts, said in [
        ({"rule": Perceptron(), "budget": Unbounded()}, "Unbounded"),
        ({"rule": Perceptron(), "budget": Project(0.1)}, "Project"),
        ({"rule": Perceptron(), "budget": DropOldest("1 MB")}, "bytes"),
        ({"rule": Perceptron(), "budget": Forget(5)}, "Forget"),
        ({"rule": Alma(0.9), "budget": DropOldest(5)}, "Alma"),
        ({"rule": FeasibleSet(radius=1.0), "budget": DropOldest(5)}, "FeasibleSet"),
        ({"rule": Perceptron(), "budget": Window(growth=0.1)}, "Window"),
        ({"rule": lambda trial: None, "budget": DropOldest(5)}, "written in Python"),
        ({"rule": Perceptron(), "budget": Unbounded(), "average": True}, "average"),
        ({"kernel": lambda a, b: 1.0, "budget": DropOldest(5)}, "cannot run"),
    ]:
        with pytest.raises(ValueError, match=said) as caught:
            Fleet(KernelClassifier(**{"kernel": Gaussian(1.0), **parts}), 3).partial_fit(X, y)
        assert "use" in str(caught.value) or "work" in str(caught.value)
    with pytest.raises(TypeError, match="prototype"):
        Fleet(gristmill.FeatureLearner(gristmill.RandomMaclaurin(gristmill.Vovk(2), 5)), 3).partial_fit(X, y)
    with pytest.raises(ValueError, match="n must"):
        Fleet(KernelNovelty(budget=DropOldest(5)), 0).partial_fit(X)
    with pytest.raises(TypeError, match="dense"):
        Fleet(KernelNovelty(budget=DropOldest(5)), 3).partial_fit(csr_array(X[0]))


def test_bad_input_changes_nothing():
    X = frames(20, 20)
    y = X[:, :, 0].copy()
    prototype = KernelRegressor(Gaussian(0.7), SGD(Squared(), 0.3, 0.05), DropSmallest(5))
    fleet = Fleet(prototype, 20).partial_fit(X, y)
    before = pickle.dumps(fleet)
    bad, worse, light = X.copy(), y.copy(), np.ones((20, 20))
    bad[7, 13, 1] = np.nan
    worse[3, 2] = np.inf
    light[4, 5] = -1
    some = np.ones((20, 20), dtype=bool)
    some[:3] = False
    for args, said in [
        ((bad, y), "learner 13, frame 7"),
        ((X, worse), "infinity: learner 2, frame 3"),
        ((X, worse, some), "infinity: learner 2, frame 3"),
        ((X, y.reshape(10, 40)), r"y must have one value an event, shape \(20, 20\), got shape \(10, 40\)"),
        ((X, y, some.reshape(40, 10)), "present must have one value an event"),
        ((X, y, None, light), "sample_weight must be finite and not below 0: learner 5, frame 4 is -1"),
        ((X, y, None, light[:3]), "sample_weight must have one value an event"),
        ((X, y, None, "a"), "sample_weight must hold numbers"),
        ((X.astype(str), y), "X must hold numbers"),
        ((np.full((2, 20, 3), "a", dtype=object), y[:2]), "X must hold numbers"),
        ((np.ma.masked_greater(X, 0), y), "masked"),
        ((X[:, :19], y[:, :19]), "shape"),
        ((X[:, :, :2], y), "shape"),
        ((X, y[:5]), "one value an event"),
        ((X, None), "y is None"),
        ((X, y, np.ones((20, 20))), "boolean"),
        ((X, y, None, -np.ones((20, 20))), "sample_weight"),
    ]:
        with pytest.raises(ValueError, match=said):
            fleet.partial_fit(*args)
        assert pickle.dumps(fleet) == before


def test_another_number_of_members_is_refused_after_the_first_event():
    X = frames(3, 4)
    fleet = Fleet(KernelNovelty(Gaussian(0.7), budget=DropSmallest(5)), 4).partial_fit(X)
    member = fleet[1]
    fleet.set_params(n=100_000)
    for use in (
        lambda: fleet[99_999],
        lambda: fleet.__setitem__(17, member),
        lambda: fleet.partial_fit(frames(1, 100_000)),
        lambda: fleet.predict(X),
        lambda: fleet.n_support_,
        lambda: pickle.dumps(fleet),
    ):
        with pytest.raises(ValueError, match="n was 4 when it began to learn and is now 100000"):
            use()
    fleet.set_params(n=4, prototype__kernel=Gaussian(0.1))
    with pytest.raises(ValueError, match="prototype__kernel was"):
        fleet.predict(X)
    fleet.set_params(prototype__kernel=Gaussian(0.7))
    same(fleet[1], member)
    for wrong in (np.array([4]), np.array([-1])):
        with pytest.raises(IndexError, match="4 members"):
            fleet._core_.members(wrong)
    with pytest.raises(ValueError, match="n must be"):
        Fleet(KernelNovelty(budget=DropSmallest(5)), True).partial_fit(X)


@pytest.mark.parametrize("weights", [None, {"up": 2.0}])
def test_a_first_chunk_without_present_members(weights):
    X = frames(6, 4)
    y = np.where(X[:, :, 0] > 0, "up", "down")
    prototype = KernelClassifier(Gaussian(0.7), Perceptron(), DropSmallest(5), random_state=0, class_weight=weights)
    fleet = Fleet(prototype, 4)
    assert np.isnan(fleet.prequential(X, y, present=np.zeros((6, 4), dtype=bool))).all()
    with pytest.raises(NotFittedError, match="it has no classes"):
        fleet.predict(X[0])
    fleet.partial_fit(X, y, classes=["down", "up"])
    same(fleet[2], clone(prototype).partial_fit(X[:, 2], y[:, 2], classes=["down", "up"]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_learners_begin_a_fleet(dtype):
    X = frames(30, 3, dtype=dtype)
    y = np.digitize(X[:, :, 0], [-0.5, 0.5])
    prototype = KernelClassifier(Gaussian(0.7), PassiveAggressive(0.5), DropSmallest(8), random_state=0)
    models = [clone(prototype).partial_fit(X[:20, i], y[:20, i], classes=[0, 1, 2]) for i in range(3)]
    fleet = Fleet(prototype, 3)
    with pytest.raises(ValueError, match="a member must be a learner"):
        fleet[0] = KernelRegressor()
    with pytest.raises(ValueError, match="a member must be a learner"):
        fleet[0] = clone(prototype)
    with pytest.raises(IndexError, match="3 members"):
        fleet[3] = models[0]
    with pytest.raises(NotFittedError):
        fleet.predict(X[0])
    for i, model in enumerate(models):
        fleet[i] = model
    fleet.partial_fit(X[20:], y[20:])
    for i, model in enumerate(models):
        same(fleet[i], model.partial_fit(X[20:, i], y[20:, i]))
        assert fleet.predict_one(i, X[0, i]) == model.predict_one(X[0, i])
        assert np.array_equal(fleet.score_one(i, X[0, i]), model.score_one(X[0, i]))


def test_an_interrupt_leaves_labels_and_members_in_step():
    """Ctrl-C while a chunk is learned is raised after it: the chunk, with its new class, was learned."""
    X = frames(3000, 64)
    y = (X[:, :, 0] > 0).astype(int)
    prototype = KernelClassifier(Gaussian(0.7), PassiveAggressive(0.5), DropSmallest(30), random_state=0)
    fleet, other = (Fleet(prototype, 64).partial_fit(X[:2], y[:2]) for _ in range(2))
    y[2] = 2
    alarm = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
    alarm.start()
    with contextlib.suppress(KeyboardInterrupt):
        fleet.partial_fit(X, y)
        alarm.join()
    if fleet.n_seen_[0] > 2:
        other.partial_fit(X, y)
    assert fleet.classes_.tolist() == other.classes_.tolist()
    assert fleet.n_seen_.tolist() == other.n_seen_.tolist()
    same(fleet[7], other[7])


def test_a_member_that_diverges_is_named_and_nothing_has_changed():
    X = frames(600, 40)
    y = np.ones((600, 40))
    y[:, 7] = 1e148
    fleet = Fleet(KernelRegressor(Linear(), SGD(Squared(), 5.0, 0.0), DropOldest(5)), 40)
    fleet.partial_fit(X[:1], y[:1])
    before = pickle.dumps(fleet)
    with pytest.raises(ValueError, match="learner 7, frame") as caught:
        fleet.partial_fit(X[1:20], y[1:20])
    assert "diverged" in str(caught.value)
    assert pickle.dumps(fleet) == before
    y[:, 7] = 1
    fleet.partial_fit(X[1:2], y[1:2])


def test_memory_is_bounded_and_small():
    X = frames(64, 320, dtype=np.float32)
    prototype = KernelNovelty(Gaussian(0.7), Implicit(Hinge(1.0), 0.1, 1.0, 0.005), DropSmallest(20))
    fleet = Fleet(prototype, 320).partial_fit(X)
    full = fleet.memory_bytes_
    assert fleet.partial_fit(X).memory_bytes_ == full
    assert full / 320 < 0.3 * clone(prototype).fit(X[:, 0]).memory_bytes_
