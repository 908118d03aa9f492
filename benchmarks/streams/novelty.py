"""The streams with anomalies: 1 is normal, -1 is not, and no learner gets the labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import SEED, arrays, shuffled
from .cases import of_river, source

SHARE = 0.03  # of the events are of other classes


def left_out(X: Any, y: Any, strange: Any, events: int) -> tuple[Any, Any]:
    """The other classes in random order, among them a few events of those that are left out."""
    rng = np.random.default_rng(SEED)
    odd = np.isin(y, strange)
    normal, other = rng.permutation(np.flatnonzero(~odd)), rng.permutation(np.flatnonzero(odd))
    count = min(len(other), round(SHARE * min(events, len(normal))))
    rows = rng.permutation(np.concatenate([normal[: events - count], other[:count]]))
    return X[rows], np.where(odd[rows], -1, 1)


@source("usps, 5-9 strange", "novelty", needs="usps")
def usps(events: int) -> Any:
    return left_out(*arrays("usps"), [5, 6, 7, 8, 9], events)


@source("mnist, 5-9 strange", "novelty", needs="mnist")
def mnist(events: int) -> Any:
    return left_out(*arrays("mnist"), [5, 6, 7, 8, 9], events)


@source("kdd-http", "novelty", needs="kdd-http")
def kdd_http(events: int) -> Any:
    """Attacks as often as in the file (0.4 %), which has them in a few long bursts."""
    return shuffled(*arrays("kdd-http"), events)


def _as_it_lies(name: str) -> None:
    """A file that is in random order already."""

    @source(name.removeprefix("novelty-"), "novelty", needs=name)
    def make(events: int) -> Any:
        X, y = arrays(name)  # 1 is normal, -1 is not
        return X[:events], y[:events]


for _name in ("novelty-thyroid", "novelty-mammography", "novelty-vowels", "novelty-shuttle"):
    _as_it_lies(_name)


@source("digits, 8-9 strange", "novelty")
def digits(events: int) -> Any:
    from sklearn.datasets import load_digits

    return left_out(*load_digits(return_X_y=True), [8, 9], events)


@source("segments, path and window strange", "novelty")
def segments(events: int) -> Any:
    from river.datasets import ImageSegments

    return left_out(*of_river(ImageSegments(), 10_000), ["path", "window"], events)


@source("svmguide1, 0 strange", "novelty", needs="svmguide1")
def svmguide1(events: int) -> Any:
    parts = [arrays(name) for name in ("svmguide1", "svmguide1.t")]
    return left_out(*(np.concatenate(part) for part in zip(*parts, strict=True)), [0], events)
