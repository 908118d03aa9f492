"""Promises that no learner may slip out of: damaged tables, labels of every type, any cut, files, columns, River."""

from __future__ import annotations

import json
import pickle

import model_files
import numpy as np
import public_learners
import pytest
from scipy.sparse import csc_array, csr_array
from sklearn.base import clone, is_classifier, is_regressor

import gristmill
from gristmill import Prepared, persist
from tests.saved import write

NAMES = list(public_learners.public())
CLASSIFIERS = [name for name in NAMES if is_classifier(public_learners.made(name))]
LABELLED = [*CLASSIFIERS, "PairwiseMetric", "PairwiseSimilarity", "TwoStageMKL"]
MANY = [name for name in CLASSIFIERS if name not in ("PairwiseAUC", "OAM")]


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def fitted(name, count=80):
    X, y = public_learners.stream(name, count)
    return public_learners.made(name).partial_fit(X, y), X, y


# ---- tables -----------------------------------------------------------------------------------------------------


def damaged(kind, index):
    table = kind(np.arange(1.0, 13.0).reshape(3, 4) / 20)
    table.indices[5] = index
    return table


@pytest.mark.parametrize("kind", [csr_array, csc_array])
@pytest.mark.parametrize("index", [-1, 4, 2**31 - 1])
def test_an_index_outside_a_sparse_table_is_refused(name, kind, index):
    model, _, _ = fitted(name, 20)
    fresh, before = public_learners.made(name), pickle.dumps(model)
    for one in (model, fresh):
        with pytest.raises(ValueError, match="damaged sparse table"):
            one.partial_fit(damaged(kind, index), [0, 1, 0])
    for verb in ("predict", "decision_function", "transform"):
        if hasattr(model, verb):
            with pytest.raises(ValueError, match="damaged sparse table"):
                getattr(model, verb)(damaged(kind, index))
    assert pickle.dumps(model) == before
    assert not fresh.__sklearn_is_fitted__()


def test_a_damaged_indptr_is_refused(name):
    table = csr_array(np.ones((3, 4)) / 2)
    table.indptr[2] = 40
    with pytest.raises(ValueError, match="damaged sparse table"):
        public_learners.made(name).partial_fit(table, [0, 1, 0])


# ---- labels -----------------------------------------------------------------------------------------------------

LABELS = {
    "int32": (np.array([7, 3], dtype=np.int32), np.dtype(np.int64)),
    "uint8": (np.array([7, 3], dtype=np.uint8), np.dtype(np.int64)),
    "uint64": (np.array([2**63 + 2, 2**63 + 1], dtype=np.uint64), np.dtype(np.uint64)),
    "bool": (np.array([True, False]), np.dtype(bool)),
    "float32": (np.array([1.0, -1.0], dtype=np.float32), np.dtype(np.float64)),
    "text": (np.array(["grist", "mi"], dtype=object), np.dtype("<U5")),
    "zeros": (["a\0", "a"], np.dtype(object)),
}


@pytest.mark.parametrize("name", LABELLED)
@pytest.mark.parametrize("kind", LABELS)
def test_the_type_of_the_classes_follows_from_the_labels_alone(name, kind, tmp_path):
    values, dtype = LABELS[kind]
    X, y = public_learners.stream(name, 30)
    labels = [values[code] for code in y]
    whole, pieces = public_learners.made(name).fit(X, labels), public_learners.made(name)
    pieces.partial_fit(X[:1], labels[:1]).partial_fit(X[1:7], labels[1:7])
    for x, label in zip(X[7:12], labels[7:12], strict=True):
        pieces.learn_one(x, label)
    pieces.save(tmp_path / "model")
    pieces = gristmill.load(tmp_path / "model").partial_fit(X[12:], labels[12:])
    for model in (whole, pieces, pickle.loads(pickle.dumps(whole))):
        assert model.classes_.dtype == dtype
        assert model.classes_.tolist() == sorted(label.item() if hasattr(label, "item") else label for label in values)
        if name in CLASSIFIERS:
            assert set(model.predict(X).tolist()) <= set(model.classes_.tolist())
    np.testing.assert_array_equal(public_learners.answers(whole, X), public_learners.answers(pieces, X))


@pytest.mark.parametrize("name", LABELLED)
@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0, 1, "a"], "all strings or all numbers"),
        ([0.0, 1.0, 0.5], "Unknown label type: continuous: row 2 is 0.5"),
        ([0, 1, None], "Unknown label type"),
        ([0.0, 1.0, float("nan")], "Input y contains NaN: row 2"),
        ([[0, 1], [1, 0], [0, 0]], "y should be a 1d array"),
    ],
)
def test_labels_that_are_none_change_nothing(name, labels, words):
    model, X, _ = fitted(name, 20)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=words):
        model.partial_fit(X[:3], labels)
    assert pickle.dumps(model) == before


def late(count=90):
    """Four classes, each of which comes later than the one before."""
    X = np.random.default_rng(4).uniform(0.05, 0.95, size=(count, 4))
    names = np.array(["stone", "grist", "mill", "water"])
    first = np.minimum(np.arange(count) // 12, 3)
    return X, names[np.minimum((4 * X[:, 0]).astype(int), first)]


@pytest.mark.parametrize("name", MANY)
def test_classes_that_come_late_do_not_care_how_the_stream_is_cut(name):
    X, y = late()
    given = {"labels": sorted(set(y.tolist()))} if name == "StructuredLearner" else {}
    whole, single, cut, told = (public_learners.made(name, **given) for _ in range(4))
    said = whole.prequential(X, y)
    for x, label in zip(X, y, strict=True):
        single.learn_one(x, label)
    for part in np.split(np.arange(len(X)), [1, 5, 13, 14, 30, 31, 77]):
        cut.partial_fit(X[part], y[part])
        cut = pickle.loads(pickle.dumps(cut))
    for other in (single, cut, told.fit(X, y)):
        np.testing.assert_array_equal(whole.decision_function(X), other.decision_function(X))
    assert said.shape == (len(X), 4)


def test_earlier_rows_of_a_run_that_meets_a_third_class():
    X, y = late()
    model, twin = (gristmill.KernelClassifier(gristmill.Gaussian(2.0)) for _ in range(2))
    said, places = model.prequential(X, y), {label: int(np.argmax(y == label)) for label in set(y.tolist())}
    order = sorted(places, key=places.get)
    third = places[order[2]]
    binary = twin.prequential(X[:third], y[:third])
    sign = 1.0 if order[0] < order[1] else -1.0  # the score of two classes points to the second of the sorted
    column = {label: place for place, label in enumerate(sorted(places))}
    np.testing.assert_array_equal(said[:third, column[order[0]]], -0.5 * sign * binary)
    np.testing.assert_array_equal(said[:third, column[order[1]]], 0.5 * sign * binary)
    for label in order[2:]:  # a class that has not come yet is below all that have
        rows = slice(places[order[1]] + 1, places[label])
        others = [column[other] for other in order if places[other] < places[label]][:2]
        assert (said[rows, column[label]] < said[rows][:, others].min(axis=1)).all()


# ---- files ------------------------------------------------------------------------------------------------------


def test_a_file_with_a_changed_bit_is_refused(name, tmp_path):
    model, _, _ = fitted(name)
    path = tmp_path / "model"
    model.save(path)
    data, rng = path.read_bytes(), np.random.default_rng(0)
    for at in rng.choice(len(data), 40, replace=False):
        changed = bytearray(data)
        changed[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        with pytest.raises(gristmill.ModelFileError):
            gristmill.load(path)


def file_of(name, path):
    """Arrays and text of a file of this estimator: of the first fitted model of its class."""
    for key, (prototype, _) in sorted(write.ALL.items()):
        if type(prototype).__name__ == name:
            write.fitted(key)[0].save(path)
            return model_files.opened(path)
    X, y = public_learners.stream(name)
    public_learners.made(name).partial_fit(X, y).save(path)
    return model_files.opened(path)


#: True and False are both fine, or anything is, or nothing but None is plain
ANYTHING = ("random_state", "columns", "labels", "argmax", "cost", "n_jobs", "features", "feature_names")


@pytest.mark.parametrize("name", [name for name in persist.ESTIMATORS if "Fleet" not in name])
def test_parameters_of_a_file_are_checked_as_for_learning(name, tmp_path):
    arrays, text = file_of(name, tmp_path / "model")
    for key, value in text["parameters"].items():
        if key in ANYTHING or isinstance(value, bool):
            continue
        for wrong in (-1e308, False, {"type": "float", "value": "nan"}):
            if wrong is False and isinstance(value, float | int):
                continue
            forged = {**text, "parameters": {**text["parameters"], key: wrong}}
            (tmp_path / "forged").write_bytes(model_files.closed(arrays, forged))
            try:
                gristmill.load(tmp_path / "forged")
            except gristmill.ModelFileError:
                continue
            raise AssertionError(f"{name}({key}={wrong!r}) was loaded")


def test_no_number_of_a_file_asks_for_more_memory_than_it_justifies(tmp_path):
    from gristmill import FeatureLearner, PairwiseAUC, RandomMaclaurin

    X, y = public_learners.stream("", 30)
    path = tmp_path / "model"
    FeatureLearner(RandomMaclaurin(n_components=8, random_state=0)).fit(X, y).save(path)
    arrays, text = model_files.opened(path)
    arrays["map.degrees"][0] = 134217728
    path.write_bytes(model_files.closed(arrays, text))
    with pytest.raises(gristmill.ModelFileError, match="degrees"):
        gristmill.load(path)
    PairwiseAUC(random_state=0).fit(X, y).save(path)
    arrays, text = model_files.opened(path)
    text["parameters"]["buffer"] = {"type": "ReservoirX", "size": 2**40, "method": "skip"}
    path.write_bytes(model_files.closed(arrays, text))
    with pytest.raises(gristmill.ModelFileError, match="do not justify"):
        gristmill.load(path)


# ---- behind a scaling, and in River -------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["standard", "minmax", None])
def test_prepared_takes_every_learner(name, scale, tmp_path):
    X, y = public_learners.stream(name)
    model = Prepared(public_learners.made(name), scale)
    unlearned = public_learners.made(name)
    for verb in ("predict_one", "score_one"):
        if hasattr(unlearned, verb):
            np.testing.assert_array_equal(getattr(model, verb)(X[0]), getattr(unlearned, verb)(X[0]))
    model.partial_fit(X[:40], y[:40])
    for x, label in zip(X[40:50], y[40:50], strict=True):
        model.learn_one(x, label)
    model.save(tmp_path / "model")
    model = gristmill.load(tmp_path / "model").partial_fit(X[50:], y[50:])
    whole = clone(model).set_params(model=public_learners.made(name)).fit(X, y)
    assert model.n_seen_ == whole.n_seen_ == len(X)
    for verb in ("predict", "decision_function", "transform"):
        if hasattr(unlearned, verb):
            np.testing.assert_array_equal(getattr(model, verb)(X), getattr(whole, verb)(X))
    if is_classifier(unlearned) or is_regressor(unlearned):
        assert model.score(X, y) == whole.score(X, y)


@pytest.mark.parametrize("additive", [False, True])
def test_river_meets_names_that_it_has_not_seen(name, additive):
    river = pytest.importorskip("gristmill.river")
    model = public_learners.made(name)
    kinds = {"classification": river.Classifier, "regression": river.Regressor, "novelty": river.AnomalyDetector}
    kind = kinds.get(gristmill._base.estimator.task_of(model))
    if kind is None or (additive and not name.startswith("Kernel")):
        return  # River has no such learner, or it has no kernel to be additive
    if additive:
        model.set_params(kernel=gristmill.Additive(gristmill.Spline(0)))
    adapter, rng = kind(model), np.random.default_rng(0)
    for step in range(120):
        x = {f"name {i}": float(rng.random()) for i in rng.choice(step + 2, 3)}
        if kind is river.AnomalyDetector:
            adapter.learn_one(x)
        else:
            adapter.learn_one(x, step % 2)
    answer = adapter.score_one(x) if kind is river.AnomalyDetector else adapter.predict_one(x)
    assert answer in (0, 1) if kind is river.Classifier else np.isfinite(answer)
    assert len(adapter._columns) > 64


def test_an_additive_model_that_is_widened_is_the_sum_it_says():
    kernel = gristmill.Additive(gristmill.Laplacian(1.0)) + 0.5 * gristmill.Additive(gristmill.Spline(1), columns=[0])
    for y in (np.arange(60) % 2, np.arange(60) % 3):
        X = np.random.default_rng(2).uniform(size=(60, 3))
        model = gristmill.KernelClassifier(kernel, budget=gristmill.DropOldest(25)).fit(X, y)
        model.widen(7)
        wide = np.random.default_rng(3).uniform(size=(20, 7))

        def sums(model=model, wide=wide):
            values = kernel(wide, model.support_vectors_) @ model.dual_coef_ + model.intercept_
            return values[:, 0] if values.shape[1] == 1 else values

        np.testing.assert_allclose(model.decision_function(wide), sums(), atol=1e-10)
        gram = kernel(model.support_vectors_, model.support_vectors_)
        norm2 = np.einsum("ij,ik,jk->", gram, model.dual_coef_, model.dual_coef_)
        assert model.norm_ == pytest.approx(np.sqrt(norm2))
        model.partial_fit(wide, y[:20])
        np.testing.assert_allclose(model.decision_function(wide), sums(), atol=1e-10)
        assert pickle.loads(pickle.dumps(model)).predict(wide).tolist() == model.predict(wide).tolist()


def unchanged_by_learning(model, X, y):
    """A file is written outside the lock: its parts must be copies of one moment."""
    arrays, plain = model.saved_fields()
    before = json.dumps(plain), {key: np.array(array) for key, array in arrays.items()}
    model.partial_fit(X, y)
    same = (np.array_equal(array, before[1][key], equal_nan=True) for key, array in arrays.items())
    return json.dumps(plain) == before[0] and all(same)


def test_what_is_being_saved_does_not_change_when_the_model_learns_on(name):
    model, X, y = fitted(name, 60)
    assert unchanged_by_learning(model, X, y)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("Kernel", "Auto", "Feature"))])
def test_a_growing_table_that_is_being_saved_does_not_change(name):
    X, y = public_learners.stream(name, 60)
    X = [{"a": float(x[0]), "hue": f"v{place % 17}", f"new{place // 20}": 1.0} for place, x in enumerate(X)]
    model = Prepared(public_learners.made(name)).partial_fit(X[:30], None if y is None else y[:30])
    assert unchanged_by_learning(model, X[30:], None if y is None else y[30:])
