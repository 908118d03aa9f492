"""What `gristmill learn --key` does without settings, beside a model a key, one model, and what it might have done instead.

`python -m benchmarks.keyed_defaults [events]`: mean absolute error, or share of errors, over the second half of each
stream, each event predicted before it was learned. Sets of files come from the data home (GRISTMILL_DATA).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gristmill import KernelClassifier, KernelRegressor, KeyedFleet, Merge, Prepared
from gristmill.cli.keyed.defaults import LEARNERS, PRIORS
from gristmill.notation import parse

from .data import SEED, arrays, shuffled

CHUNK = 1000


class Keyed(NamedTuple):
    """A stream of events of many keys."""

    name: str
    keys: Any
    X: Any
    y: Any
    task: str = "regression"


def levels(name: str, spread: float, keys: int = 40, events: int = 3000, noise: float = 0.0) -> Keyed:
    """y = 2 x0 + level(key): all keys react alike."""
    rng = np.random.default_rng(SEED)
    key, X = rng.integers(0, keys, size=events), rng.normal(size=(events, 2))
    return Keyed(name, key, X, 2 * X[:, 0] + spread * rng.normal(size=keys)[key] + noise * rng.normal(size=events))


def slopes(events: int = 3000) -> Keyed:
    """Far from 0, and each key reacts in its own way."""
    rng = np.random.default_rng(SEED)
    key, X, own = rng.integers(0, 40, size=events), rng.normal(size=(events, 3)), rng.normal(size=40)
    wave = np.sin(X[:, 0]) * (1 + own[key]) + own[key] + 0.1 * rng.normal(size=events)
    return Keyed("own slopes", key, X, 50_000 + 1000 * wave)


def directions(name: str, apart: float, keys: int = 40, events: int = 4000) -> Keyed:
    """Two classes; 0: the same for all keys, 1: nothing in common."""
    rng = np.random.default_rng(SEED)
    key, X = rng.integers(0, keys, size=events), rng.normal(size=(events, 4))
    across = np.array([1.0, 0.0, 0.0, 0.0]) + 3 * apart * rng.normal(size=(keys, 4))
    score = (X * across[key]).sum(axis=1) + apart * rng.normal(size=keys)[key] + 0.3 * rng.normal(size=events)
    return Keyed(name, key, X, (score > 0).astype(int), "classification")


def made() -> Iterator[Keyed]:
    for spread in (0.0, 1.15, 11.5, 34.6):
        yield levels(f"levels {spread:g} apart", spread)
    yield levels("levels 34.6 apart, noise", 34.6, noise=1.0)
    yield levels("levels 11.5 apart, 5 keys", 11.5, keys=5)
    yield levels("levels 11.5 apart, 400 keys", 11.5, keys=400)
    yield slopes()
    yield directions("classes, alike", 0.0)
    yield directions("classes, 400 keys", 0.0, keys=400)
    yield directions("classes, own", 1.0)


def _cells() -> Keyed:
    X, y = shuffled(*arrays("cadata"))
    place = np.floor(4 * X[:, :2]).astype(int)
    return Keyed("cadata, quarter degrees", 10_000 * place[:, 0] + place[:, 1], X, y)


def _colours() -> Keyed:
    both = [arrays(f"winequality-{colour}") for colour in ("red", "white")]
    colour = np.repeat([0, 1], [len(y) for _, y in both])
    X, y = np.vstack([X for X, _ in both]), np.concatenate([y for _, y in both])
    rows, y = shuffled(np.column_stack([colour, X]), y)
    return Keyed("winequality, colour", rows[:, 0].astype(int), rows[:, 1:], y)


def _sexes() -> Keyed:
    X, y = shuffled(*arrays("abalone"))  # the first columns are the categories of the sex
    return Keyed("abalone, sex", X[:, : X.shape[1] - 7].argmax(axis=1), X[:, -7:], y)


def _demand() -> Keyed:
    X, _ = arrays("elec2")
    return Keyed("elec2 demand, half hour", np.rint(47 * X[:, 2]).astype(int), X[:, [1, 3, 5, 6, 7]], 1000 * X[:, 4])


def _weekdays() -> Keyed:
    X, y = arrays("elec2")
    return Keyed("elec2, weekday", X[:, 1].astype(int), X[:, 2:], y, "classification")


def _families() -> Keyed:
    X, y = shuffled(*arrays("nursery"))
    return Keyed("nursery, parents", X[:, :3].argmax(axis=1), X[:, 3:], y, "classification")


FILES: list[Callable[[], Keyed]] = [_cells, _colours, _sexes, _demand, _weekdays, _families]


def streams() -> Iterator[Keyed]:
    yield from made()
    for make in FILES:
        try:
            yield make()
        except FileNotFoundError as error:
            print(f"left out: {error}", file=sys.stderr)


# ---- who learns -------------------------------------------------------------------------------------------------------


def settled(model: Any, columns: int) -> Any:
    """With the kernel that the command line gives it."""
    model.kernel = model.default_kernel(columns)
    return model


def follower(task: str) -> Any:
    return Prepared(KernelRegressor() if task == "regression" else KernelClassifier())


def fleet(stream: Keyed, center: bool, prior: str | None) -> Any:
    columns = stream.X.shape[1]
    member = Prepared(settled(parse(LEARNERS[stream.task]), columns), target=None)
    shared = {
        "settled": lambda: Prepared(settled(parse(PRIORS[stream.task]), columns)),
        "follows": lambda: follower(stream.task),
    }
    return KeyedFleet(member, prior=None if prior is None else shared[prior](), center=center)


def along(model: Any, stream: Keyed) -> Any:
    """What a fleet says of each event before it learns it."""
    known = {} if stream.task == "regression" else {"classes": np.unique(stream.y).tolist()}
    parts = [slice(start, start + CHUNK) for start in range(0, len(stream.y), CHUNK)]
    said = [model.prequential(stream.keys[part], stream.X[part], stream.y[part], **known) for part in parts]
    return answers(np.concatenate(said), stream)


def answers(scores: Any, stream: Keyed) -> Any:
    if stream.task == "regression":
        return scores
    classes = np.unique(stream.y)
    return classes[scores.argmax(axis=1) if scores.ndim == 2 else (scores >= 0).astype(int)]


def separate(stream: Keyed) -> Any:
    """A learner with a scaling of its own for each key, target and all."""
    kind = KernelRegressor if stream.task == "regression" else KernelClassifier
    known = {} if stream.task == "regression" else {"classes": np.unique(stream.y).tolist()}
    said = np.empty(len(stream.y), dtype=stream.y.dtype if known else float)
    for key in np.unique(stream.keys):
        own = stream.keys == key
        scores = Prepared(kind(budget=Merge(100))).prequential(stream.X[own], stream.y[own], **known)
        said[own] = answers(scores, stream)
    return said


def one(stream: Keyed) -> Any:
    return answers(follower(stream.task).prequential(stream.X, stream.y), stream)


WAYS: dict[str, Callable[[Keyed], Any]] = {
    "a model a key": separate,
    "one model": one,
    "prior that follows": lambda stream: along(fleet(stream, False, "follows"), stream),
    "prior that settles": lambda stream: along(fleet(stream, False, "settled"), stream),
    "--no-prior": lambda stream: along(fleet(stream, stream.task == "regression", None), stream),
    "--key": lambda stream: along(fleet(stream, stream.task == "regression", "settled"), stream),
}


def wrong(said: Any, stream: Keyed) -> float:
    late = slice(len(stream.y) // 2, None)
    if stream.task == "regression":
        return float(np.abs(said[late] - stream.y[late]).mean())
    return float((said[late] != stream.y[late]).mean())


def main(events: int | None) -> None:
    print(f"| stream | {' | '.join(WAYS)} |")
    print("|---" * (len(WAYS) + 1) + "|")
    for stream in streams():
        short = stream._replace(keys=stream.keys[:events], X=stream.X[:events], y=stream.y[:events])
        found = [f"{wrong(way(short), short):.3g}" for way in WAYS.values()]
        print(f"| {stream.name} | {' | '.join(found)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
