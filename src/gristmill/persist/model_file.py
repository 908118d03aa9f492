"""Save and load: one safetensors file of numbers, parameters as JSON, classes from a closed list, no code.

Layout: the arrays of the core's state, and in the file's metadata one JSON text under the key "gristmill" with the format
version, the estimator's class, its parameters, its few fitted values, how far it has read its streams
(`stream_positions_`), and a checksum of all that and the arrays. Anything that does not fit is refused.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core
from .._common.ranges import Checked
from .._common.times import is_span, read_ttl
from .._common.types import Fields, Fitted, State
from .._version import __version__
from .atomic import write

FORMAT = 1


class ModelFileError(ValueError):
    """The file is not a model that this version can read; the message gives the reason."""


#: modules of the classes that a model file may name as a parameter: only frozen, range-checked values
PART_MODULES = (
    "race.baselines",
    "kernels",
    "learners.additive",
    "losses",
    "rules",
    "budgets",
    "features.series",
    "features.compositions",
    "pairwise.buffers",
    "pairwise.learner",
    "pairwise.losses",
    "pairwise.mkl",
    "pairwise.projections",
    "similarity.transfer",
    "structured.sequences",
)


@functools.cache
def parts() -> dict[str, type]:
    """Every class that a model file may name as a parameter."""
    found: dict[str, type] = {}
    for home in PART_MODULES:
        module = import_module(f"gristmill.{home}")
        for name, value in vars(module).items():
            if (
                isinstance(value, type)
                and issubclass(value, Checked)
                and dataclasses.is_dataclass(value)
                and name[0] != "_"
            ):
                found[name] = value
    del found["PythonKernel"]  # holds code
    return found


def encode(value: Any, where: str) -> Any:
    """A parameter as JSON; Python code is refused by name."""
    if dataclasses.is_dataclass(value) and type(value) is parts().get(type(value).__name__):
        fields = {f.name: encode(getattr(value, f.name), where) for f in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    if type(value).__name__ in ESTIMATORS and type(value) is estimator(type(value).__name__):
        parameters = value.get_params(deep=False)
        return {"type": type(value).__name__, **{name: encode(part, name) for name, part in parameters.items()}}
    if isinstance(value, tuple):
        return {"type": "tuple", "items": [encode(item, where) for item in value]}
    if isinstance(value, dict) and where in ("class_weight", "columns"):
        items = [[encode(key, "classes_"), encode(item, where)] for key, item in value.items()]
        return {"type": "dict", "items": items}
    if where == "spill" and isinstance(value, bytes | os.PathLike):
        value = os.fsdecode(value)  # it is not opened by who reads the file, which gets a place of its own
    if where == "ttl" and is_span(value):
        value = read_ttl(value)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"type": "float", "value": repr(value)}
    if isinstance(value, list | tuple | range | np.ndarray) and where != "random_state":
        return [encode(item, where) for item in value]
    if where == "random_state":
        return None  # the generator's own state is among the arrays
    raise TypeError(
        f"{where}={value!r} is Python code, and a model file holds no code; use parts of gristmill, or pickle the model"
    )


def decode(value: object) -> Any:
    """JSON back to a parameter, through the ranges of its class."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = dict(value)
    name = fields.pop("type", None)
    if name == "float":
        return float(fields["value"])
    if name == "dict":
        return {decode(key): decode(item) for key, item in fields["items"]}
    if name == "tuple":
        return tuple(decode(item) for item in fields["items"])
    part = estimator(name) if name in ESTIMATORS else parts().get(name)  # the list itself never changes
    if part is None:
        raise ModelFileError(f"it names a part {name!r} that gristmill {__version__} does not have")
    return part(**{key: decode(field) for key, field in fields.items()})


# ---- the core's arrays ----------------------------------------------------------------------------------------


def pack_core(core: Any) -> Any:
    """The core's state as the bytes of a model file; objects of a Python kernel travel beside them."""
    from safetensors.numpy import save as to_bytes

    arrays, objects = flatten(core.state())
    return {"bytes": to_bytes(arrays), "objects": objects}


def unpack_core(packed: Any) -> dict[str, object]:
    from safetensors.numpy import load as from_bytes

    return unflatten(from_bytes(packed["bytes"]), packed["objects"])


def flatten(state: State) -> tuple[dict[str, Any], list[Any] | None]:
    arrays = dict(state)
    points = arrays.pop("points", None)
    if isinstance(points, list):
        return arrays, points
    if isinstance(points, tuple):
        arrays["indptr"], arrays["indices"], arrays["data"] = points[:3]
        arrays["width"] = np.array([points[3]], dtype=np.int64)
    elif points is not None:
        arrays["points"] = points
    return arrays, None


def unflatten(arrays: Mapping[str, object], objects: list[object] | None) -> dict[str, Any]:
    state = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    if objects is not None:
        return {**state, "points": objects}
    if "indptr" in state:
        width = int(state.pop("width")[0])
        indptr, indices, data = state.pop("indptr"), state.pop("indices"), state.pop("data")
        _check_sparse(indptr, indices, data, width)
        return {**state, "points": (indptr, indices, data, width)}
    return state


def _check_sparse(indptr: Any, indices: Any, data: Any, width: int) -> None:
    """The core trusts its arrays, so a forged index is found here."""
    fine = (
        indptr.dtype == np.int64
        and indices.dtype == np.int32
        and indptr.ndim == indices.ndim == data.ndim == 1
        and len(indptr) >= 1
        and indptr[0] == 0
        and indptr[-1] == len(indices) == len(data)
        and bool(np.all(np.diff(indptr) >= 0))
        and 1 <= width < 2**31
        and (len(indices) == 0 or (indices.min() >= 0 and indices.max() < width))
    )
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)) if fine else np.empty(0)
    ascending = fine and bool(np.all((np.diff(indices) > 0) | (np.diff(rows) > 0)))
    if not ascending:
        raise ModelFileError("its sparse points are damaged")


# ---- whole models ---------------------------------------------------------------------------------------------

#: every estimator that a model file may name, and its module. Each has `saved_fields() -> (arrays, fitted)`, the
#: second plain JSON, and `restore_fields(arrays, fitted)`, which checks what it is given and raises where it does not fit.
ESTIMATORS = {
    "KernelClassifier": "learners.kernel",
    "KernelRegressor": "learners.kernel",
    "KernelNovelty": "learners.kernel",
    "AutoClassifier": "race.auto",
    "AutoNovelty": "race.auto_novelty",
    "AutoRegressor": "race.auto",
    "RaceClassifier": "race.race",
    "RaceRegressor": "race.race",
    "Fleet": "fleets.fleet",
    "KeyedFleet": "fleets.keyed",
    "OAM": "pairwise.oam",
    "PairwiseAUC": "pairwise.auc",
    "PairwiseLearner": "pairwise.learner",
    "PairwiseMetric": "pairwise.metric",
    "PairwiseSimilarity": "pairwise.similarity",
    "LandmarkClassifier": "similarity",
    "LandmarkOrdinal": "similarity",
    "LandmarkPairClassifier": "similarity",
    "LandmarkRanker": "similarity",
    "LandmarkRegressor": "similarity",
    "Landmarks": "similarity",
    "SpectrumLandmarks": "similarity",
    "SparseLandmarkRegressor": "similarity",
    "StreamLandmarkClassifier": "similarity",
    "StreamLandmarkRegressor": "similarity",
    "Prepared": "prepared.prepared",
    "TwoStageMKL": "pairwise.mkl",
    "FeatureClassifier": "features",
    "FeatureRegressor": "features",
    "FeatureNovelty": "features",
    "RandomMaclaurin": "features",
    "StructuredLearner": "structured.learner",
    "KernelKMeans": "unsupervised",
    "KernelPCA": "unsupervised",
}


def estimator(name: str) -> Any:
    if name not in ESTIMATORS:
        raise ModelFileError(f"it names an estimator {name!r} that gristmill {__version__} does not have")
    return getattr(import_module(f"gristmill.{ESTIMATORS[name]}"), name)


def save(model: Any, path: Any) -> None:
    """Write a fitted model to one file, all or nothing: a failure leaves what was there before.

    Parameters
    ----------
    model : a fitted estimator of gristmill
    path : str or path
    """
    write(Path(path), to_bytes(model))


def to_bytes(model: Any) -> bytes:
    """What `save` would write."""
    from safetensors.numpy import save as packed

    name = type(model).__name__
    if name not in ESTIMATORS or type(model) is not estimator(name):
        raise TypeError(f"{name} is not an estimator of gristmill; pickle it instead")
    model.check_parameters()  # else it could not be loaded
    model.refuse_changed_parameters("the file")
    arrays, fitted = model.saved_fields()
    metadata = {
        "format": FORMAT,
        "version": __version__,
        "isa": _core.isa(),
        "class": name,
        "parameters": encode_parameters(model),
        "fitted": fitted,
    }
    if positions := getattr(model, "stream_positions_", None):
        metadata["streams"] = json.loads(json.dumps(positions))  # plain values, or an error before anything is written
    arrays = {key: np.ascontiguousarray(value) for key, value in arrays.items()}
    body = json.dumps(metadata)  # once, so that text and checksum are of the same moment
    text = f'{body[:-1]}, "checksum": "{checksum(body, arrays)}"}}'
    data = bytes(packed(arrays, metadata={"gristmill": text}))
    if any(_is_extreme(array) for array in arrays.values()):
        _refuse_unreadable(name, data)
    return data


#: a number above this may become infinite; few models hold one
_EXTREME = 1e100


def _is_extreme(array: Any) -> bool:
    """Whether an array holds a number so large that what is computed from it may not be finite."""
    if array.dtype.kind != "f" or not array.size:
        return False
    largest = max(np.fmax.reduce(array, axis=None), -np.fmin.reduce(array, axis=None))
    return float(largest) > _EXTREME


def _refuse_unreadable(name: str, data: bytes) -> None:
    """Raise before anything is written where the file could not be loaded."""
    try:
        _read(data)
    except Exception as error:
        raise ValueError(
            f"this {name} holds numbers that are too large to be saved: {error}; train it on smaller numbers"
        ) from error


def checksum(text: str, arrays: State) -> str:
    """Of everything in a file but itself; text: the JSON text without its checksum."""
    digest = hashlib.blake2b(text.encode(), digest_size=16)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.data if array.size else b"")
    return digest.hexdigest()


def load(path: Any) -> Any:
    """Read a model that `save` wrote. The file cannot run code; a damaged or forged one gets a clear error.

    Parameters
    ----------
    path : str or path

    Examples
    --------
    >>> import os, tempfile, gristmill
    >>> model = gristmill.perceptron(gristmill.Gaussian(1.0)).fit([[0.0], [3.0]], [-1, 1])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> model.save(path)
    >>> gristmill.load(path).n_support_
    2
    """
    try:
        return _read(Path(path).read_bytes())
    except OSError:
        raise
    except Exception as error:
        raise ModelFileError(f"{os.fspath(path)} is not a model that gristmill can read: {error}") from error


def from_bytes(data: bytes) -> Any:
    """A model from what `to_bytes` gave. The bytes cannot run code; damaged or forged ones get a clear error.

    Parameters
    ----------
    data : bytes, or anything that has their buffer

    Examples
    --------
    >>> import gristmill
    >>> model = gristmill.perceptron(gristmill.Gaussian(1.0)).fit([[0.0], [3.0]], [-1, 1])
    >>> gristmill.from_bytes(model.to_bytes()).n_support_
    2
    """
    try:
        whole = bytes(memoryview(data))
    except TypeError:
        raise TypeError(f"from_bytes takes bytes, as to_bytes gives them, got {type(data).__name__}") from None
    try:
        return _read(whole)
    except Exception as error:
        raise ModelFileError(f"these {len(whole)} bytes are not a model that gristmill can read: {error}") from error


def _read(data: bytes) -> Any:
    from safetensors.numpy import load as from_bytes

    arrays = from_bytes(data)  # checks the header against the length of the file
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    if "gristmill" not in header.get("__metadata__", {}):
        raise ModelFileError("it has no gristmill metadata")
    metadata = json.loads(header["__metadata__"]["gristmill"])
    if metadata["format"] != FORMAT:
        raise ModelFileError(
            f"it has format {metadata['format']} (written by gristmill {metadata.get('version')}), "
            f"and gristmill {__version__} reads format {FORMAT}"
        )
    if metadata.pop("checksum", None) != checksum(json.dumps(metadata), arrays):
        raise ModelFileError("its checksum is wrong, so it is damaged")
    cls = estimator(metadata["class"])
    model = cls(**{name: decode(value) for name, value in metadata["parameters"].items()})
    model.check_parameters()
    model.restore_fields(arrays, metadata["fitted"])
    if "streams" in metadata:
        model.stream_positions_ = _positions(metadata["streams"])
    return model


def _positions(metadata: object) -> dict[str, object]:
    """How far the model has read each stream, by the name of the stream: plain values that only its reader takes apart."""
    if not isinstance(metadata, dict) or not all(isinstance(entry, dict) for entry in metadata.values()):
        raise ModelFileError("its positions of streams are damaged")
    return metadata


def justify(needed: float, arrays: Fields, what: str, free: int = 2**20) -> None:
    """Refuse what would take more memory than `free` bytes and the size of the file give reason for."""
    held = sum(int(array.nbytes) for array in arrays.values())
    if not 0 <= needed <= free + 64 * held:
        raise ModelFileError(f"its {what} ask for {needed:.3g} bytes, which {held} bytes of numbers do not justify")


# ---- what several estimators keep -------------------------------------------------------------------------------


def encode_parameters(model: Any) -> dict[str, object]:
    return {key: encode(value, key) for key, value in model.get_params(deep=False).items()}


def encode_labels(labels: Any) -> list[object]:
    return [encode(label, "classes_") for label in labels]


def decode_labels(labels: Any) -> list[object]:
    """Labels in order of arrival."""
    found = [decode(label) for label in labels]
    kinds = {isinstance(label, str) for label in found}
    plain = all(isinstance(label, bool | int | float | str) for label in found)
    if not found or not plain or len(kinds) > 1 or len(set(found)) != len(found):
        raise ModelFileError("its class labels are not distinct numbers or strings")
    return found


def encode_features(model: object) -> dict[str, Any]:
    """Number and names of the inputs."""
    fitted: dict[str, object] = {}
    if hasattr(model, "n_features_in_"):
        fitted["n_features_in"] = int(model.n_features_in_)
    if hasattr(model, "feature_names_in_"):
        fitted["feature_names_in"] = [str(name) for name in model.feature_names_in_]
    return fitted


def decode_features(model: Any, fitted: Fitted) -> None:
    if "n_features_in" in fitted:
        model.n_features_in_ = int(fitted["n_features_in"])
        if model.n_features_in_ < 1:
            raise ModelFileError(f"it states {model.n_features_in_} features")
    if "feature_names_in" in fitted:
        names = [str(name) for name in fitted["feature_names_in"]]
        if len(names) != model.n_features_in_:
            raise ModelFileError("it does not have as many names as features")
        model.feature_names_in_ = np.array(names, dtype=object)
