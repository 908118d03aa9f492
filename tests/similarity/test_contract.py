"""scikit-learn's checks, model files, pickles, doctests and the example, for every landmark estimator."""

import doctest
import importlib
import pickle
import pkgutil

import model_files
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.utils.estimator_checks import parametrize_with_checks

import gristmill
from gristmill import (
    Gaussian,
    LandmarkClassifier,
    LandmarkOrdinal,
    LandmarkPairClassifier,
    LandmarkRanker,
    LandmarkRegressor,
    Landmarks,
    Manhattan,
    Sigmoid,
    SparseLandmarkRegressor,
    similarity,
)
from gristmill.similarity import SpectrumLandmarks, StreamLandmarkClassifier, StreamLandmarkRegressor

#: checks that an estimator cannot pass, and why
EXPECTED_FAILURES = {
    "LandmarkOrdinal": {
        "check_classifiers_classes": "asks for words as labels, without a stated order: refused by design",
    },
}


@parametrize_with_checks(
    [
        Landmarks(),
        Landmarks(Manhattan(), selection="diverse"),
        SpectrumLandmarks(),
        SpectrumLandmarks(Manhattan(), spectrum="shift"),
        LandmarkClassifier(),
        LandmarkClassifier(n_nonzero=5, C=[1.0, 10.0]),
        LandmarkPairClassifier(n_landmarks=20, slopes=(1.0, 10.0), C=[1.0, 100.0]),
        LandmarkPairClassifier(n_landmarks=20, transfer="sign", solver="boost"),
        LandmarkPairClassifier(n_landmarks=20, transfer="boost", candidates=30),
        LandmarkRegressor(),
        SparseLandmarkRegressor(),
        SparseLandmarkRegressor(method="plain"),
        LandmarkOrdinal(),
        LandmarkRanker(),
        StreamLandmarkClassifier(),
        StreamLandmarkRegressor(),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator).__name__, {}),
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# ---- files -------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
CODES = np.digitize(X[:, 0], [-0.5, 0.5])


def word_overlap(a, b):
    return len(set(a) & set(b))


K = Sigmoid(0.3, -1.0)
MODELS = [
    (Landmarks(K, 10, random_state=0), None),
    (SpectrumLandmarks(K, 10, spectrum="flip", random_state=0), None),
    (Landmarks(None, 10, "diverse", normalize=False, random_state=np.random.default_rng(3)), None),
    (LandmarkClassifier(0.5 * K + Gaussian(1.0), 10, C=[1.0, 5.0], random_state=0), CODES),
    (LandmarkClassifier(K, 10, n_nonzero=3, random_state=0), np.array(["x", "y", "z"])[CODES]),
    (LandmarkPairClassifier(K, 10, random_state=0), CODES),
    (
        LandmarkPairClassifier(K, 10, transfer=[similarity.Sign()], per_class=True, C=1.0, random_state=0),
        CODES > 0,
    ),
    (LandmarkRegressor(K, 10, epsilon=0.1, selection=[1, 5, 9], random_state=0), X[:, 1]),
    (SparseLandmarkRegressor(K, 5, 40, random_state=0), X[:, 1]),
    (LandmarkOrdinal(K, 10, thresholds="learned", random_state=0), CODES),
    (
        LandmarkOrdinal(K, 10, [0.0, 2.0], labels=["c", "b", "a"], random_state=0),
        np.array(["c", "b", "a"])[CODES],
    ),
    (LandmarkRanker(K, 10, random_state=0), CODES),
    (StreamLandmarkClassifier(K, 10, random_state=0), CODES),
    (StreamLandmarkRegressor(None, 10, random_state=0), X[:, 1]),
]


def answer(model, X):
    return model.transform(X) if hasattr(model, "transform") else model.predict(X)


@pytest.mark.parametrize(("model", "y"), MODELS)
def test_save_load_and_pickle(model, y, tmp_path):
    model.fit(X, y)
    path = tmp_path / "model.safetensors"
    model.save(path)
    for copy in (gristmill.load(path), pickle.loads(pickle.dumps(model))):
        assert type(copy) is type(model)
        assert np.array_equal(answer(copy, X), answer(model, X))
        if hasattr(model, "decision_function"):
            assert np.array_equal(copy.decision_function(X), model.decision_function(X))


def test_precomputed_sparse_and_named_columns_survive(tmp_path):
    import pandas

    path = tmp_path / "model.safetensors"
    looked = LandmarkRegressor("precomputed", 10, random_state=0).fit(K(X, X), X[:, 1])
    looked.save(path)
    assert np.array_equal(gristmill.load(path).predict(K(X, X)), looked.predict(K(X, X)))
    sparse = LandmarkRegressor(K, 10, random_state=0).fit(csr_array(X), X[:, 1])
    sparse.save(path)
    assert np.array_equal(gristmill.load(path).predict(csr_array(X)), sparse.predict(csr_array(X)))
    frame = pandas.DataFrame(X, columns=list("abcd"))
    LandmarkRegressor(K, 10, random_state=0).fit(frame, X[:, 1]).save(path)
    assert gristmill.load(path).feature_names_in_.tolist() == list("abcd")


def test_python_functions_are_refused_by_name_and_pickled(tmp_path):
    words = ["grist", "mill", "stream", "stone"]
    model = LandmarkRegressor(word_overlap, 3, random_state=0).fit(words, [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(TypeError, match="similarity=<function word_overlap"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(words), model.predict(words))
    pair = LandmarkPairClassifier(K, 5, transfer=np.tanh, C=1.0, random_state=0).fit(X, CODES)
    with pytest.raises(TypeError, match="transfer"):
        pair.save(tmp_path / "model")
    stream = StreamLandmarkRegressor(word_overlap, 3, random_state=0).fit(words, [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(TypeError, match="similarity=<function word_overlap"):
        stream.save(tmp_path / "model")
    assert np.array_equal(pickle.loads(pickle.dumps(stream)).predict(words), stream.predict(words))


@pytest.mark.parametrize(("model", "y"), MODELS)
def test_a_damaged_file_gets_a_clear_error(model, y, tmp_path):
    path = tmp_path / "model.safetensors"
    model.fit(X, y).save(path)
    arrays, text = model_files.opened(path)
    for name in arrays:
        for damaged in (arrays[name][:-1], np.full(arrays[name].shape, -7).astype(arrays[name].dtype), None):
            if damaged is not None and name in (
                "landmark_indices_",
                "ids",
                "met",
                "centre",
                "class_count",
                "C_",
            ):
                continue  # other values there are possible ones
            if damaged is not None and damaged.shape == arrays[name].shape and name not in ("pairs_", "indptr"):
                continue
            if damaged is None and name == "calibration":
                continue  # files from before there were probabilities have none
            changed = {key: value for key, value in arrays.items() if key != name}
            if damaged is not None:
                changed[name] = damaged
            path.write_bytes(model_files.closed(changed, text))
            with pytest.raises(gristmill.ModelFileError, match="is not a model that gristmill can read"):
                gristmill.load(path)


def test_saving_before_fitting_is_refused(tmp_path):
    for model in (LandmarkRegressor(K), StreamLandmarkRegressor(K)):
        with pytest.raises(Exception, match="not fitted"):
            model.save(tmp_path / "model")


# ---- documentation -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(similarity.__path__)])
def test_doctests(name):
    module = importlib.import_module(f"gristmill.similarity.{name}")
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(module, optionflags=flags).failed == 0


def test_public_names_are_importable_from_both_places():
    for name in similarity.__all__:
        assert getattr(similarity, name).__doc__
    for name in set(similarity.__all__) & set(gristmill.__all__):
        assert getattr(gristmill, name) is getattr(similarity, name)
    assert callable(gristmill.goodness)


def test_the_same_seed_gives_the_same_model():
    for model, y in MODELS:
        one = answer(type(model)(**{**model.get_params(deep=False), "random_state": 5}).fit(X, y), X)
        other = answer(type(model)(**{**model.get_params(deep=False), "random_state": 5}).fit(X, y), X)
        assert np.array_equal(one, other)
