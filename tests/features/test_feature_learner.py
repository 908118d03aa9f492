"""FeatureLearner: the rules over explicit weights agree with the kernel learners."""

import contextlib
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import gristmill
from gristmill import (
    SGD,
    Adatron,
    Alma,
    EpsilonInsensitive,
    Exponential,
    FeasibleSet,
    FeatureLearner,
    Gaussian,
    Hinge,
    Huber,
    Implicit,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    Linear,
    Logistic,
    PassiveAggressive,
    Perceptron,
    Pinball,
    Polynomial,
    RandomMaclaurin,
    Romma,
    Squared,
    Step,
    Unbounded,
    Vovk,
)
from gristmill.features import Compose, FeatureClassifier, FeatureNovelty, FeatureRegressor

KERNEL_TWIN = {
    FeatureClassifier: KernelClassifier,
    FeatureRegressor: KernelRegressor,
    FeatureNovelty: KernelNovelty,
}


class Ball:
    """A rule of the user's own that asks for the norm: the perceptron, held inside a ball."""

    needs_norm = True

    def __repr__(self):  # the same in every process: it names tests
        return "Ball()"

    def __call__(self, trial):
        if trial.label * trial.score > 0.1 * np.sqrt(trial.norm2):
            return None
        return Step(coefficient=trial.label, shrink=0.99, radius=1.5)


CLASSIFIERS = [
    Perceptron(),
    SGD(Hinge(), rate=0.3, reg=0.01),
    SGD(Hinge(0.5, nu=0.2), rate=0.3, reg=0.01, schedule="inv_sqrt", intercept=True),
    SGD(Logistic(), rate=0.5, reg=0.001),
    PassiveAggressive(0.5),
    PassiveAggressive(0.5, variant=2),
    FeasibleSet(),
    FeasibleSet(radius=0.8),
    Implicit(Hinge(), C=0.5, reg=0.01),
    Implicit(Logistic(), C=0.5),
    Alma(0.8),
    Romma(),
    Romma(aggressive=True),
    Ball(),
]
REGRESSORS = [
    SGD(Squared(), rate=0.05, reg=0.01),
    SGD(EpsilonInsensitive(0.1, nu=0.3), rate=0.1),
    SGD(Huber(0.5), rate=0.1, intercept=True),
    SGD(Pinball(0.25), rate=0.1, intercept=True),
    PassiveAggressive(0.5, epsilon=0.05),
    FeasibleSet(epsilon=0.1, radius=2.0),
    Implicit(Squared(), C=0.2, reg=0.01),
]
NOVELTIES = [
    SGD(Hinge(0.0, nu=0.1), rate=0.1, reg=0.5),
    PassiveAggressive(0.3),
    Implicit(Hinge(0.5), C=0.1, reg=0.1),
]
MODELS = [
    *((FeatureClassifier, rule, classes) for rule in CLASSIFIERS for classes in (2, 4)),
    *((FeatureRegressor, rule, 0) for rule in REGRESSORS),
    *((FeatureNovelty, rule, 0) for rule in NOVELTIES),
]


def stream(classes, n=240, d=5, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d)) / np.sqrt(d)
    if classes == 0:
        return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    return X, np.digitize(X[:, 0] * X[:, 1], np.quantile(X[:, 0] * X[:, 1], np.arange(1, classes) / classes))


def small_map(**options):
    return RandomMaclaurin(Polynomial(2), 41, random_state=5, **options)


def learned(model, X, y, **options):
    return model.prequential(X, None if isinstance(model, FeatureNovelty | KernelNovelty) else y, **options)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize(("kind", "rule", "classes"), MODELS, ids=lambda value: repr(value).split(" at 0x")[0])
def test_it_agrees_with_the_kernel_learner_on_the_mapped_rows(kind, rule, classes, average):
    X, y = stream(classes)
    model = kind(small_map(), rule, average=average)
    scores = learned(model, X, y)
    Z = small_map().fit(X).transform(X)
    twin = KERNEL_TWIN[kind](Linear(), rule, Unbounded(), average=average)
    assert scores == pytest.approx(learned(twin, Z, y), abs=1e-9)
    assert model.decision_function(X) == pytest.approx(twin.decision_function(Z), abs=1e-9)
    assert model.intercept_ == pytest.approx(twin.intercept_, abs=1e-9)
    assert model.coef_ == pytest.approx(twin.dual_coef_.T @ twin.support_vectors_, abs=1e-9)
    if not average:
        assert model.norm_ == pytest.approx(np.linalg.norm(model.coef_), abs=1e-12)


@pytest.mark.parametrize(("kind", "rule", "classes"), MODELS, ids=lambda value: repr(value).split(" at 0x")[0])
def test_however_the_stream_is_cut_the_model_is_the_same(tmp_path, kind, rule, classes):
    X, y = stream(classes)
    y = None if kind is FeatureNovelty else y
    whole = kind(small_map(), rule)
    options = {"classes": list(range(classes))} if classes else {}
    scores = whole.prequential(X, y, **options)
    cut = kind(small_map(), rule)
    seen = []
    for i, at in enumerate(range(0, len(X), 17)):
        part = slice(at, at + 17)
        seen.append(cut.prequential(X[part], None if y is None else y[part], **options))
        if i == 6:
            cut = pickle.loads(pickle.dumps(cut))
            if not isinstance(rule, Ball):
                cut.save(tmp_path / "model")
                cut = gristmill.load(tmp_path / "model")
    assert np.array_equal(np.concatenate(seen), scores)
    one = kind(small_map(), rule)
    one.partial_fit(X[:1], None if y is None else y[:1], **options)
    for i in range(1, len(X)):
        one.learn_one(X[i], None if y is None else y[i])
    for other in (cut, one):
        assert np.array_equal(other.coef_, whole.coef_)
        assert np.array_equal(other.decision_function(X), whole.decision_function(X))
        assert other.n_seen_ == len(X)
    if kind is not FeatureClassifier or classes == 2:
        assert one.score_one(X[3]) == whole.decision_function(X[3:4])[0]


def test_a_long_chunk_is_mapped_in_slices_and_undone_as_a_whole():
    X, y = stream(2, n=2500)
    model, cut = FeatureLearner(small_map(), Perceptron()), FeatureLearner(small_map(), Perceptron())
    model.partial_fit(X, y)
    for at in range(0, 2500, 700):
        cut.partial_fit(X[at : at + 700], y[at : at + 700])
    assert np.array_equal(model.coef_, cut.coef_)
    assert model.memory_bytes_ == cut.memory_bytes_

    class Fails:
        count = 0

        def __call__(self, trial):
            self.count += 1
            if self.count == 2300:
                raise RuntimeError("enough")
            return Step(coefficient=trial.label)

    failing = FeatureLearner(small_map(), Fails()).partial_fit(X[:10], y[:10])
    before = failing.coef_
    with pytest.raises(RuntimeError, match="enough"):
        failing.partial_fit(X, y)
    assert np.array_equal(failing.coef_, before)
    assert failing.n_seen_ == 10


def test_sparse_and_single_precision_rows():
    X, y = stream(2)
    X[np.abs(X) < 0.2] = 0
    dense = FeatureLearner(small_map(), PassiveAggressive()).fit(X, y)
    sparse = FeatureLearner(small_map(), PassiveAggressive()).fit(sp.csr_array(X), y)
    assert np.array_equal(dense.coef_, sparse.coef_)
    single = FeatureLearner(small_map(), PassiveAggressive()).fit(X.astype(np.float32), y)
    assert single.coef_ == pytest.approx(dense.coef_, abs=1e-2)
    assert dense.decision_function(sp.csr_matrix(X)) == pytest.approx(dense.decision_function(X), abs=0)


def test_memory_is_constant_and_long_runs_stay_healthy():
    X, y = stream(2, n=3000)
    model = FeatureLearner(small_map(), SGD(Hinge(), rate=0.9, reg=1.0)).partial_fit(X[:10], y[:10])
    memory = model.memory_bytes_
    for _ in range(10):
        model.partial_fit(X, y)
    assert model.memory_bytes_ == memory
    # rate * reg = 0.9 shrinks tenfold a step: without care the lazy scale would underflow after 300 events
    w = np.zeros(41)
    Z, sign = small_map().fit_transform(X), 2 * y - 1
    for z, s in zip(Z[-50:], sign[-50:], strict=True):
        w = 0.1 * w + (0.9 * s * z if s * (w @ z) <= 1 else 0)
    assert model.coef_[0] == pytest.approx(w, rel=1e-9, abs=1e-9)


def test_the_task_follows_from_the_rule():
    for rule, kind in [
        (None, FeatureClassifier),
        (Perceptron(), FeatureClassifier),
        (SGD(Logistic()), FeatureClassifier),
        (SGD(Squared()), FeatureRegressor),
        (SGD(Huber()), FeatureRegressor),
        (Ball(), FeatureClassifier),
    ]:
        model = FeatureLearner(small_map(), rule)
        assert type(model) is kind
        assert isinstance(model, FeatureLearner)
        assert type(clone(model)) is kind
    assert type(FeatureLearner(small_map(), PassiveAggressive(), task="regression")) is FeatureRegressor
    assert type(FeatureLearner(small_map(), SGD(Hinge(nu=0.1)), task="novelty")) is FeatureNovelty
    model = FeatureLearner(small_map(), SGD(Hinge(0.0, nu=0.1)), task="novelty").fit(stream(0)[0])
    assert model.margin_ == model.offset_


def test_other_maps():
    from sklearn.frozen import FrozenEstimator
    from sklearn.kernel_approximation import Nystroem, RBFSampler
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer, StandardScaler

    X, y = stream(2, n=600)
    optimal = RandomMaclaurin(Polynomial(2), 40, measure="optimal", random_state=0)
    for map_ in (
        RBFSampler(n_components=60, random_state=0),
        make_pipeline(Normalizer(), RandomMaclaurin(Polynomial(2), 40, random_state=0)),
        optimal.fit(X),
        FrozenEstimator(Nystroem(n_components=40, random_state=0).fit(X)),
        FrozenEstimator(make_pipeline(StandardScaler(), clone(optimal)).fit(X)),
        RandomMaclaurin(Compose(Polynomial(2), Gaussian(0.5)), 40, random_state=0),
    ):
        model = FeatureLearner(map_, PassiveAggressive()).fit(X, y)
        assert model.score(X, y) > 0.6
        assert np.array_equal(pickle.loads(pickle.dumps(model)).coef_, model.coef_)
    for map_ in (StandardScaler(), Nystroem(), clone(optimal), make_pipeline(StandardScaler(), small_map())):
        with pytest.raises(ValueError, match="fit it on a sample first"):
            FeatureLearner(map_, PassiveAggressive()).fit(X, y)


def test_new_classes_may_arrive():
    X, y = stream(4)
    model = FeatureLearner(small_map(), PassiveAggressive())
    for label in range(4):
        model.partial_fit(X[y == label][:20], y[y == label][:20])
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.coef_.shape == (4, 41)
    assert model.partial_fit(X, y).score(X, y) > 0.4


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (
            lambda m, X, y: m.partial_fit(np.where(np.arange(5) == 2, np.nan, X), y),
            ValueError,
            "NaN: row 0, column 2",
        ),
        (lambda m, X, y: m.partial_fit(X[:, :3], y), ValueError, "features"),
        (lambda m, X, y: m.partial_fit(X, y[:-1]), ValueError, "inconsistent numbers"),
        (lambda m, X, y: m.partial_fit(1e200 * X, y), ValueError, "row 0 is too large"),
        (lambda m, X, y: m.learn_one(np.full(5, np.inf), 1), ValueError, "infinity"),
        (lambda m, X, y: m.predict(X[:, :2]), ValueError, "features"),
    ],
)
def test_bad_input_changes_nothing(act, error, words):
    X, y = stream(2)
    model = FeatureLearner(small_map(), PassiveAggressive()).fit(X, y)
    before = model.coef_, model.n_seen_, model.decision_function(X)
    with pytest.raises(error, match=words):
        act(model, X, y)
    assert np.array_equal(model.coef_, before[0])
    assert model.n_seen_ == before[1]
    assert np.array_equal(model.decision_function(X), before[2])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: FeatureLearner(small_map(), Perceptron(), task="ranking"), "task must be one of"),
        (lambda: FeatureRegressor(small_map(), Perceptron()), "not for regression"),
        (lambda: FeatureRegressor(small_map(), task="classification"), "is for regression"),
        (lambda: FeatureLearner(small_map(), Adatron()), "works on stored points"),
        (lambda: FeatureLearner(3, Perceptron()), "map must be a transformer"),
        (lambda: FeatureClassifier(small_map(), 3), "rule must be a rule"),
    ],
)
def test_what_makes_no_sense_is_refused(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make().fit(*stream(2))


def test_inputs_outside_the_radius_are_refused_before_anything_is_learned():
    X, y = stream(2)
    X /= 2 * np.linalg.norm(X, axis=1)[:, None]
    model = FeatureLearner(RandomMaclaurin(Vovk(), 30, random_state=0), PassiveAggressive()).fit(X, y)
    bad = X.copy()
    bad[7] *= 2.5
    with pytest.raises(ValueError, match=r"row 7 has norm 1\.25"):
        model.partial_fit(bad, y)
    assert model.n_seen_ == len(X)


def test_there_are_no_points():
    model = FeatureLearner(small_map(), PassiveAggressive()).fit(*stream(2))
    for name in ("support_vectors_", "support_ids_", "dual_coef_", "n_support_"):
        assert not hasattr(model, name)


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "model"
    FeatureLearner(small_map(), PassiveAggressive()).fit(*stream(2)).save(path)
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(40):
        broken = bytearray(data)
        for at in rng.integers(0, len(data), 3):
            broken[at] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(broken))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(ValueError):  # a clear refusal, or a model whose numbers were changed
                gristmill.load(path).predict(np.zeros((1, 5)))


#: what cannot pass, and why
EXPECTED = {
    "check_class_weight_classifiers": "an online learner takes one step an event, whatever its weight",
    "check_sample_weight_equivalence_on_dense_data": "a weighted event is one larger step, not two steps",
    "check_sample_weight_equivalence_on_sparse_data": "a weighted event is one larger step, not two steps",
    "check_regressors_no_decision_function": "every learner has the same verbs",
}


@pytest.mark.parametrize(
    "model",
    [
        FeatureClassifier(RandomMaclaurin(Polynomial(2), 60, random_state=0)),
        FeatureRegressor(RandomMaclaurin(Polynomial(1), 60, exact_low_order=True, random_state=0), random_state=0),
        FeatureNovelty(
            RandomMaclaurin(Exponential(3.0), 60, random_state=0), SGD(Hinge(0.5, nu=0.3), rate=0.3, reg=0.5)
        ),
    ],
    ids=lambda m: type(m).__name__,
)
def test_scikit_learns_own_checks(model):
    from sklearn.utils.estimator_checks import check_estimator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(model, on_fail=None)
    failed = {r["check_name"]: str(r["exception"]) for r in results if r["status"] not in ("passed", "skipped")}
    assert set(failed) <= set(EXPECTED), failed


@pytest.mark.parametrize(
    "model",
    [
        FeatureLearner(small_map(), PassiveAggressive()),
        FeatureLearner(small_map(structured=True), SGD(Hinge(), rate=0.3, reg=0.01)),
        FeatureLearner(small_map(exact_low_order=True), SGD(Squared(), rate=0.05), average=True),
        FeatureLearner(small_map(), SGD(Hinge(0.0, nu=0.1), rate=0.1, reg=0.5), task="novelty"),
    ],
    ids=lambda m: type(m).__name__,
)
def test_the_contract(model):
    for check in gristmill.checks.yield_checks(model):
        check(model)
