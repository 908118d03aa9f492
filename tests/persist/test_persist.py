"""Model files: everything comes back bit for bit, nothing runs code, a damaged or forged file is refused."""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import struct

import model_files
import numpy as np
import pytest
from safetensors.numpy import load as arrays_from
from safetensors.numpy import save as bytes_of
from scipy.sparse import csr_array

import gristmill
from gristmill import (
    SGD,
    DropOldest,
    DropRandom,
    Gaussian,
    Hinge,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    ModelFileError,
    Normalized,
    PassiveAggressive,
    Polynomial,
    Squared,
    Unbounded,
    checks,
    persist,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
LABELS = np.where(X[:, 0] > 0, "up", "down")
NUMBERS = X @ [1.0, -1.0, 0.5]


def models():
    hinge = SGD(Hinge(1.0, nu=0.2), 0.3, 0.05, intercept=True)
    yield "binary", KernelClassifier(Gaussian(1.0), hinge, DropOldest(9)).fit(X, LABELS)
    yield "three", KernelClassifier(2.0 * Gaussian(1.0) + Normalized(Polynomial(2))).fit(X, np.arange(60) % 3)
    yield "one-class", KernelClassifier(Gaussian(1.0)).fit(X, np.zeros(60, dtype=bool))
    yield "regression", KernelRegressor(random_state=3, budget=DropRandom(7)).fit(X, NUMBERS)
    yield "infinite-C", KernelRegressor(rule=PassiveAggressive(C=np.inf, variant=0)).fit(X, NUMBERS)
    yield "average", KernelRegressor(None, SGD(Squared(), 0.1), Unbounded(), average=True).fit(X, NUMBERS)
    yield "novelty", KernelNovelty().fit(X)
    yield "single", KernelRegressor(Gaussian(1.0)).fit(X.astype(np.float32), NUMBERS)
    yield "sparse", KernelRegressor(Gaussian(1.0)).fit(csr_array(X), NUMBERS)
    wide = csr_array(np.hstack([X, np.zeros((60, 2000))]))
    yield "wide", KernelRegressor(Gaussian(1.0)).fit(wide, NUMBERS)
    yield "wide-single", KernelRegressor(Gaussian(1.0)).fit(wide.astype(np.float32), NUMBERS)


MODELS = dict(models())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_file_brings_back_the_whole_model(model, path):
    model.save(path)
    other = gristmill.load(path)
    assert checks.snapshot(other) == checks.snapshot(model)
    assert repr(other) == repr(model)
    rows = csr_array(X) if model.n_features_in_ == 3 else csr_array(np.hstack([X, np.zeros((60, 2000))]))
    assert np.array_equal(other.predict(rows), model.predict(rows))
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_pickle_wraps_the_same_bytes(model):
    assert checks.snapshot(pickle.loads(pickle.dumps(model))) == checks.snapshot(model)


def test_feature_names_and_changed_parameters_come_back(path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = KernelRegressor(Gaussian(1.0), budget=DropOldest(5)).fit(frame, NUMBERS)
    model.set_params(budget=DropOldest(50))
    with pytest.raises(ValueError, match="changed in mid-stream"):
        model.save(path)
    model.set_params(budget=DropOldest(5)).save(path)
    other = gristmill.load(path)
    assert other.feature_names_in_.tolist() == ["a", "b", "c"]
    assert other.budget == DropOldest(5)
    other.partial_fit(frame, NUMBERS)
    model.partial_fit(frame, NUMBERS)
    assert other.n_support_ == 5
    assert checks.snapshot(other) == checks.snapshot(model)


# ---- damage --------------------------------------------------------------------------------------


def refused(path, data, words=""):
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=words or "not a model that gristmill can read") as error:
        gristmill.load(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("name", ["binary", "wide", "average"])
def test_truncated_anywhere(name, path):
    MODELS[name].save(path)
    data = path.read_bytes()
    header = 8 + struct.unpack("<Q", data[:8])[0]
    for end in {0, 1, 7, 8, 9, header // 2, header - 1, header, header + 1, len(data) // 2, len(data) - 1}:
        refused(path, data[:end])
    refused(path, data + b"more")


def test_every_flipped_bit_of_the_header_is_harmless(path):
    """A flipped bit may by chance leave a legal file; it never crashes or gives an error of another kind."""
    MODELS["binary"].save(path)
    data = path.read_bytes()
    header, outcomes = 8 + struct.unpack("<Q", data[:8])[0], set()
    rng = np.random.default_rng(1)
    places = [*range(16), *rng.integers(8, header, 400), *rng.integers(header, len(data), 300)]
    for place in places:
        broken = bytearray(data)
        broken[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(broken))
        try:
            model = gristmill.load(path)
        except ModelFileError:
            outcomes.add("refused")
            continue
        with contextlib.suppress(ValueError):  # numbers so large that the next score overflows
            model.partial_fit(X[:2], LABELS[:2])
    assert "refused" in outcomes


# ---- forgery -------------------------------------------------------------------------------------


def forged(model, path, arrays=(), drop=(), text=lambda t: t, fitted=()):
    """The model's file with some arrays, metadata or fitted values replaced."""
    model.save(path)
    held, meta = model_files.opened(path)
    meta["fitted"] |= dict(fitted)
    kept = {k: v for k, v in (held | dict(arrays)).items() if k not in drop}
    return model_files.closed(kept, text(meta))


N = MODELS["binary"].n_support_
FORGERIES = {
    "newer format": ({"text": lambda t: t | {"format": 99, "version": "9.9"}}, "format 99 .*9.9"),
    "no format": ({"text": lambda t: {k: v for k, v in t.items() if k != "format"}}, "format"),
    "unknown estimator": ({"text": lambda t: t | {"class": "os.system"}}, "estimator 'os.system'"),
    "estimator of the wrong kind": ({"text": lambda t: t | {"class": "KernelRegressor"}}, ""),
    "class that is a list": ({"text": lambda t: t | {"class": ["KernelClassifier"]}}, ""),
    "text that is a list": ({"text": lambda t: [t]}, ""),
    "unknown part": ({"fitted": {"kernel": {"type": "Popen", "args": "ls"}}}, "'Popen'"),
    "python kernel": (
        {"fitted": {"kernel": {"type": "PythonKernel", "function": "os.system"}}},
        "PythonKernel",
    ),
    "parameter out of range": ({"fitted": {"kernel": {"type": "Gaussian", "gamma": -1.0}}}, "gamma"),
    "parameter too many": ({"fitted": {"kernel": {"type": "Gaussian", "gamma": 1.0, "x": 1}}}, ""),
    "kernel that is a rule": ({"fitted": {"kernel": {"type": "Perceptron"}}}, "kernel"),
    "rule that is a kernel": ({"fitted": {"rule": {"type": "Linear"}}}, "rule"),
    "budget that is nothing": ({"fitted": {"budget": None}}, "budget"),
    "the state of another rule": (
        {"fitted": {"rule": {"type": "Alma", "alpha": 0.9, "B": None, "C": None}}},
        "corrections",
    ),
    "wrong width": ({"fitted": {"n_features_in": 4}}, "number of features"),
    "no classes": ({"fitted": {"labels": []}}, "class labels"),
    "equal classes": ({"fitted": {"labels": ["up", "up"]}}, "distinct"),
    "too many classes": ({"fitted": {"labels": ["up", "down", "x"]}}, "classes"),
    "classes of two kinds": ({"fitted": {"labels": ["up", 1]}}, "class labels"),
    "a parameter out of range": (
        {"text": lambda t: {**t, "parameters": t["parameters"] | {"kernel": False}}},
        "kernel",
    ),
    "NaN points": ({"arrays": {"points": np.full((N, 3), np.nan)}}, "NaN"),
    "infinite points": ({"arrays": {"points": np.full((N, 3), np.inf)}}, "infinity"),
    "points of a strange type": ({"arrays": {"points": np.zeros((N, 3), dtype=np.int8)}}, ""),
    "points in one dimension": ({"arrays": {"points": np.zeros(3 * N)}}, ""),
    "too few points": ({"arrays": {"points": np.zeros((1, 3))}}, "fit the points"),
    "too many points": ({"arrays": {"points": np.zeros((N + 1, 3))}}, "fit the points"),
    "NaN coefficient": ({"arrays": {"coef": np.full((1, N), np.nan)}}, "not finite"),
    "too few coefficients": ({"arrays": {"coef": np.zeros((1, N - 1))}}, "fit the others"),
    "too many outputs": ({"arrays": {"coef": np.zeros((5, N))}}, ""),
    "no outputs": ({"arrays": {"coef": np.zeros((0, N))}}, ""),
    "scale 0": ({"arrays": {"scale": np.zeros(1)}}, "'scale' is 0"),
    "no scale": ({"arrays": {"scale": np.ones(0)}}, "fit the others"),
    "a scale of another type": ({"arrays": {"scale": np.ones(1, dtype=np.int64)}}, "another type"),
    "equal ids": ({"arrays": {"ids": np.zeros(N, dtype=np.int64)}}, "distinct"),
    "negative ids": ({"arrays": {"ids": -1 - np.arange(N)}}, "positions"),
    "ids beyond the stream": ({"arrays": {"ids": 10**6 + np.arange(N)}}, "positions"),
    "an endless stream": ({"arrays": {"seen": np.full(1, 2**64 - 1, dtype=np.uint64)}}, "number of events"),
    "endless steps": ({"arrays": {"steps": np.full(1, 2**61, dtype=np.uint64)}}, "more than the events"),
    "endless classes": ({"arrays": {"classes": np.full(1, 2**40, dtype=np.uint64)}}, "classes"),
    "two intercepts": ({"arrays": {"intercept": np.zeros(2)}}, ""),
    "infinite intercept": ({"arrays": {"intercept": np.full(1, np.inf)}}, "not finite"),
    "a rule without its state": ({"drop": ["rule.width"]}, "rule.width"),
    "no points": ({"drop": ["points"]}, ""),
    "no counters": ({"drop": ["seen"]}, "missing"),
    "average without sums": ({"fitted": {"average": True, "budget": {"type": "Unbounded"}}}, ""),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged(name, path):
    change, words = FORGERIES[name]
    refused(path, forged(MODELS["binary"], path, **change), words)


@pytest.mark.parametrize(
    "change",
    [
        {"indices": lambda a: a + 5000},
        {"indices": lambda a: -a - 1},
        {"indices": lambda a: a[::-1].copy()},
        {"indices": lambda a: a.astype(np.int64)},
        {"indptr": lambda a: a[::-1].copy()},
        {"indptr": lambda a: a * 2},
        {"indptr": lambda a: a[:0]},
        {"data": lambda a: a[:-1]},
        {"data": lambda a: a * np.nan},
        {"data": lambda a: a.astype(np.int32)},
        {"width": lambda a: a * 0},
        {"width": lambda a: a[:0]},
        {"width": lambda a: a + 2**40},
    ],
)
def test_forged_sparse_points(change, path):
    MODELS["wide"].save(path)
    arrays = arrays_from(path.read_bytes())
    ((name, spoil),) = change.items()
    refused(path, forged(MODELS["wide"], path, arrays={name: spoil(arrays[name])}))


def test_headers_that_lie(path):
    MODELS["binary"].save(path)
    data = path.read_bytes()
    for length in (0, 1, 2**31, 2**62, 2**64 - 1):
        refused(path, struct.pack("<Q", length) + data[8:])
    for text in (
        b"{}",
        b"not json",
        b"[" * 100_000,
        b'{"__metadata__": 3}',
        b'{"__metadata__": {"gristmill": "{"}}',
    ):
        refused(path, struct.pack("<Q", len(text)) + text)
    refused(path, bytes_of({"x": np.zeros(3)}), "no gristmill metadata")
    deep = '{"type": "Multiple", "factor": 1.0, "base": ' * 5000 + "1" + "}" * 5000
    refused(path, bytes_of({"x": np.zeros(3)}, metadata={"gristmill": deep}))
    refused(path, b"")
    refused(path, os.urandom(4096))


def test_a_missing_file_is_an_os_error(path):
    with pytest.raises(FileNotFoundError):
        gristmill.load(path)


# ---- saving --------------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", ["write", "flush", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(broken, path, monkeypatch):
    model = MODELS["binary"]
    model.save(path)
    before = path.read_bytes()

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    if broken in ("fsync", "replace"):
        monkeypatch.setattr(os, broken, full)
    else:
        real = os.fdopen

        class Full:
            def __init__(self, *args):
                self.file = real(*args)

            def __enter__(self):
                return self

            def __exit__(self, *args):
                self.file.close()

            def write(self, data):
                self.file.write(data[: len(data) // 2])
                if broken == "write":
                    full()

            def flush(self):
                full()

            def fileno(self):
                return self.file.fileno()

        monkeypatch.setattr(os, "fdopen", Full)
    with pytest.raises(OSError, match="No space left"):
        KernelClassifier(Gaussian(2.0)).fit(X, LABELS).save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name], "no half-written file is left behind"


def test_a_really_full_disk(path):
    """/dev/full takes no byte; where there is none, the test above stands for it."""
    if not os.path.exists("/dev/full"):
        return
    with open("/dev/full", "wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        file.write(b"x")
    with pytest.raises(OSError, match=r"."):
        MODELS["binary"].save("/dev/full/model")


def test_a_saved_file_has_the_usual_rights(path):
    mask = os.umask(0o022)
    try:
        MODELS["binary"].save(path)
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o644


def shared(a, b):
    return float(a @ b)


class Lazy:
    def __call__(self, trial):
        return None


class Never:
    def victim(self, stored):
        return -1


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (KernelClassifier(shared), "shared"),
        (KernelClassifier(Gaussian(1.0) + gristmill.kernels.PythonKernel(shared)), "shared"),
        (KernelClassifier(rule=Lazy()), "rule=.*Lazy"),
        (KernelClassifier(budget=Never()), "budget=.*Never"),
    ],
)
def test_python_code_is_refused_by_name_and_pickled(model, words, path):
    model.fit(X, LABELS)
    with pytest.raises(TypeError, match=words):
        model.save(path)
    assert not path.exists()
    other = pickle.loads(pickle.dumps(model))
    assert np.array_equal(other.decision_function(X), model.decision_function(X))


def test_only_fitted_estimators_of_gristmill_are_saved(path):
    with pytest.raises(ValueError, match="not fitted"):
        KernelClassifier().save(path)

    class Mine(KernelClassifier):
        pass

    with pytest.raises(TypeError, match="Mine is not an estimator of gristmill"):
        Mine().fit(X, LABELS).save(path)
    assert not path.exists()


def test_the_closed_list_holds_values_only():
    for name, kind in persist.parts().items():
        assert kind.__name__ == name
        assert name != "PythonKernel"


def test_a_number_of_classes_that_no_array_bears_out_takes_no_memory(tmp_path):
    from gristmill.similarity import StreamLandmarkClassifier

    path = tmp_path / "model.safetensors"
    X = np.arange(40.0).reshape(20, 2)
    StreamLandmarkClassifier(Gaussian(0.1), n_landmarks=5, random_state=0).fit(X, np.arange(20) % 3).save(path)
    arrays, text = model_files.opened(path)
    arrays["classes"] = np.array([2**28])
    path.write_bytes(model_files.closed(arrays, text))
    with pytest.raises(gristmill.ModelFileError, match="do not fit together"):
        gristmill.load(path)
