"""`to_json`: a fitted model as JSON, for programs that are written by hand."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np

from .._version import __version__
from ._description import describe, snapshot
from ._plain import COVERAGES


def to_json(model: object) -> str:
    """A fitted model as JSON text: kernel, stored points, coefficients, scaling, calibration, and a row to check with.

    Numbers are written so that reading them gives the same bits; what is not finite is the text "nan", "inf" or "-inf". Each
    part has a key "part" with its name in the guide.

    Parameters
    ----------
    model : fitted KernelClassifier, KernelRegressor, KernelNovelty, FeatureLearner, Prepared, Race or Auto*

    Returns
    -------
    str

    Examples
    --------
    >>> import json
    >>> import numpy as np
    >>> from gristmill import DropOldest, Gaussian, KernelRegressor
    >>> from gristmill.export import to_json
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = KernelRegressor(Gaussian(1.0), budget=DropOldest(40)).fit(X, X[:, 0])
    >>> len(json.loads(to_json(model))["experts"][0]["body"]["points"])
    40
    """
    found = describe(snapshot(model))
    plain = {"gristmill": __version__, "format": 1, "coverages": list(COVERAGES), **_plain(found)}
    plain["order"] = found.order
    return json.dumps(plain, allow_nan=False)


def _plain(value: object) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"part": type(value).__name__, **parts}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value
