"""The streams: a name, a task, and a function that makes at most so many events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np

from ..data import SEED, arrays, digest, shuffled

TASKS = ("classification", "regression", "novelty")


@dataclass(frozen=True)
class Case:
    """One stream in memory."""

    name: str
    task: str
    X: Any  #: (events, columns), double
    y: Any  #: labels, targets, or -1 (anomaly) and 1

    @cached_property
    def digest(self) -> str:
        return digest(self.X, self.y)


@dataclass(frozen=True)
class Source:
    """How a stream is made."""

    name: str
    task: str
    make: Callable[[int], tuple[Any, Any]]
    extra: bool = False  #: not one of the streams that the floors of the learners without settings are about
    needs: str | None = None  #: the data set that must be in the data home
    shuffled: bool = False  #: its order means nothing, so that another one is as good
    held_out: bool = False  #: nothing was chosen on it

    def case(self, events: int, order: int = 0) -> Case:
        """At most so many events. order: 0, or the number of a permutation of these events."""
        X, y = self.make(events)
        name = self.name
        if order:
            places = np.random.default_rng([SEED, order]).permutation(len(y))
            X, y, name = np.asarray(X)[places], np.asarray(y)[places], f"{name}{ORDER}{order}"
        return Case(name, self.task, np.ascontiguousarray(X, dtype=np.float64), np.asarray(y))


SOURCES: dict[str, Source] = {}
ORDER = ", order "  #: between the name of a stream and the number of its order


def source(
    name: str,
    task: str,
    needs: str | None = None,
    extra: bool = False,
    shuffled: bool = False,
    held_out: bool = False,
) -> Any:
    """Puts a function of the number of events on the list."""

    def register(make: Callable[[int], tuple[Any, Any]]) -> Any:
        SOURCES[name] = Source(name, task, make, extra or held_out, needs, shuffled, held_out)
        return make

    return register


def of_river(rows: Any, events: int) -> tuple[Any, Any]:
    """River's events, dicts of numbers with the same keys, as arrays."""
    taken = list(islice(rows, events))
    return np.array([list(x.values()) for x, _ in taken], dtype=float), np.array([y for _, y in taken])


# ---- classification
# ------------------------------------------------------------------------------------------------


@source("elec2", "classification", needs="elec2")
def elec2(events: int) -> Any:
    X, y = arrays("elec2")
    return X[:events], y[:events]


@source("Phishing", "classification")
def phishing(events: int) -> Any:
    from river.datasets import Phishing

    return of_river(Phishing(), events)


@source("ImageSegments", "classification")
def image_segments(events: int) -> Any:
    from river.datasets import ImageSegments

    return of_river(ImageSegments(), events)


@source("RandomRBFDrift", "classification")
def random_rbf_drift(events: int) -> Any:
    from river.datasets.synth import RandomRBFDrift

    return of_river(RandomRBFDrift(seed_model=SEED, seed_sample=SEED, change_speed=0.0002), events)


@source("Agrawal", "classification")
def agrawal(events: int) -> Any:
    """Another function of the same columns decides from the middle on."""
    from river.datasets.synth import Agrawal

    before, after = (Agrawal(function, seed=SEED + function) for function in (0, 2))
    return of_river(chain(islice(before, events // 2), after), events)


def _shuffle(name: str) -> None:
    source(name, "classification", needs=name, shuffled=True)(lambda events: shuffled(*arrays(name), events))


for _name in ("usps", "ijcnn1", "nursery", "spambase", "cod-rna"):
    _shuffle(_name)


@source("usps + noise", "classification", needs="usps", extra=True, shuffled=True)
def usps_noise(events: int) -> Any:
    """200 columns that say nothing beside the 256 that do."""
    X, y = shuffled(*arrays("usps"), events)
    return np.hstack([X, np.random.default_rng(SEED).normal(size=(len(y), 200))]), y


@source("4 of 40", "classification", extra=True, shuffled=True)
def four_of_forty(events: int) -> Any:
    """The product of two columns and the sum of two others decide; 36 columns say nothing."""
    X = np.random.default_rng(SEED).normal(size=(events, 40))
    return X, np.where(X[:, 0] * X[:, 1] + 0.7 * (X[:, 2] + X[:, 3]) > 0, 1, 0)


@source("SEA", "classification", extra=True)
def sea(events: int) -> Any:
    from gristmill.streams import sea as made

    return made(events, random_state=SEED).arrays()


# Streams that had no part in the choice of experts when they were added.


@source("26 blobs", "classification", extra=True, shuffled=True)
def blobs(events: int) -> Any:
    """Many classes of two clusters each, as letters in two typefaces are; 16 columns."""
    rng = np.random.default_rng(SEED)
    centres = 2.2 * rng.normal(size=(52, 16))
    which = rng.integers(52, size=events)
    return centres[which] + 1.5 * rng.normal(size=(events, 16)), which % 26


@source("Hyperplane", "classification", extra=True)
def hyperplane(events: int) -> Any:
    from river.datasets.synth import Hyperplane

    return of_river(Hyperplane(seed=SEED, n_drift_features=5, mag_change=0.001), events)


@source("LED drift", "classification", extra=True)
def led(events: int) -> Any:
    from river.datasets.synth import LEDDrift

    return of_river(LEDDrift(seed=SEED, irrelevant_features=True, n_drift_features=4), events)


def _shuffle_held_out(name: str) -> None:
    source(name, "classification", needs=name, extra=True, shuffled=True)(
        lambda events: shuffled(*arrays(name), events)
    )


for _name in ("german", "svmguide1", "a9a"):
    _shuffle_held_out(_name)


# ---- regression
# ----------------------------------------------------------------------------------------------------


@source("TrumpApproval", "regression")
def trump_approval(events: int) -> Any:
    from river.datasets import TrumpApproval

    return of_river(TrumpApproval(), events)


@source("FriedmanDrift", "regression")
def friedman_drift(events: int) -> Any:
    from river.datasets.synth import FriedmanDrift

    return of_river(FriedmanDrift("lea", position=(events // 4, events // 2, 3 * events // 4), seed=SEED), events)


def _shuffle_numbers(name: str) -> None:
    source(name, "regression", needs=name, shuffled=True)(lambda events: shuffled(*arrays(name), events))


for _name in ("cadata", "abalone", "cpusmall"):
    _shuffle_numbers(_name)


@source("prices", "regression")
def prices(events: int) -> Any:
    """The next price from the last eight: a random walk of its logarithm with calm and wild times, whose steps
    remember a tenth of the one before. The last price is hard to beat, and the range of prices moves away.
    """
    rng = np.random.default_rng(SEED)
    lags = 8
    steps = np.empty(events + lags)
    deviation, step = 0.01, 0.0
    for t in range(len(steps)):
        deviation = float(np.sqrt(2e-6 + 0.9 * deviation**2 + 0.08 * step**2))
        step = 0.1 * step + deviation * float(rng.normal())
        steps[t] = step
    series = 100.0 * np.exp(np.cumsum(steps))
    return np.lib.stride_tricks.sliding_window_view(series, lags)[:-1], series[lags:]


# ---- nothing was chosen on these
# -----------------------------------------------------------------------------------


def _held_out(name: str, task: str, needs: str, events_in_order: bool) -> None:
    @source(name, task, needs=needs, shuffled=not events_in_order, held_out=True)
    def make(events: int) -> Any:
        X, y = arrays(needs)
        return (X[:events], y[:events]) if events_in_order else shuffled(X, y, events)


_held_out("weather", "classification", "stream-weather", True)
_held_out("outdoor", "classification", "stream-outdoor", True)
_held_out("pageblocks", "classification", "stream-pageblocks", False)
_held_out("puma8nh", "regression", "puma8nh", False)
_held_out("winequality-white", "regression", "winequality-white", False)
