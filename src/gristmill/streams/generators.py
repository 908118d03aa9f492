"""Synthetic streams: seeded, the same however often read, with their Bayes error where it is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.types import Integers, RandomState
from .stream import ROWS, Chunk, Stream

Floats = npt.NDArray[np.float64]
_PARTS = 2  # Gaussians in a class


def _stream(
    make: Callable[[np.random.Generator], Iterator[Chunk]],
    n_events: int,
    name: str,
    random_state: Any,
    bayes_error: float | None,
    classes: tuple[Any, ...] = (-1, 1),
) -> Stream:
    if n_events < 1:
        raise ValueError(f"{name}: n_events must be at least 1, got {n_events!r}")
    seed = int(np.random.default_rng(random_state).integers(2**63))
    return Stream(lambda: make(np.random.default_rng(seed)), n_events, name, classes, bayes_error)


def _gathered(pieces: Iterator[tuple[Floats, npt.NDArray[np.int64]]]) -> Iterator[Chunk]:
    """Small pieces joined to chunks of the usual size."""
    X: list[Floats] = []
    y: list[npt.NDArray[np.int64]] = []
    for points, labels in pieces:
        X.append(points)
        y.append(labels)
        if sum(map(len, y)) >= ROWS:
            yield Chunk(np.concatenate(X), np.concatenate(y))
            X, y = [], []
    if y:
        yield Chunk(np.concatenate(X), np.concatenate(y))


# ---- NORMA, section VI
# --------------------------------------------------------------------------------------------


def _log_density(points: Floats, centres: Floats, width: float) -> Floats:
    squares = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    return np.asarray(np.logaddexp.reduce(-squares / (2 * width**2), axis=1))


def _separable(
    rng: np.random.Generator, centres: Floats, count: int, width: float, gap: float
) -> tuple[Floats, Integers]:
    """Events of the two mixtures that the Bayes rule gets right, and not just so."""
    kept_points: list[Floats] = []
    kept_labels: list[npt.NDArray[np.int64]] = []
    while sum(map(len, kept_labels)) < count:
        labels = rng.choice(np.array([-1, 1]), size=4 * count)
        which = rng.integers(_PARTS, size=4 * count)
        points = centres[(labels + 1) // 2, which] + width * rng.normal(size=(4 * count, 2))
        advantage = _log_density(points, centres[1], width) - _log_density(points, centres[0], width)
        clear = labels * advantage > gap
        kept_points.append(points[clear])
        kept_labels.append(labels[clear])
    return np.concatenate(kept_points)[:count], np.concatenate(kept_labels)[:count]


def _apart(rng: np.random.Generator, width: float) -> Floats:
    """Centres of both classes, redrawn until centres of different classes are distinct."""
    while True:
        centres = rng.uniform(-2.0, 2.0, size=(2, _PARTS, 2))
        between = np.linalg.norm(centres[0][:, None] - centres[1][None, :], axis=2)
        if between.min() > 2 * width:
            return centres


def drifting_mixture(
    n_events: int = 10_000, step: float = 0.1, width: float = 0.4, gap: float = 1.0, random_state: Any = 0
) -> Stream:
    """Two classes, each a mixture of two plane Gaussians whose centres take a small random step every ten
    events.

    Events that the Bayes rule would get wrong, or whose log density ratio is within `gap` of its border, are
    left out, as in the paper. The paper does not print its step, width or gap; these are ours.

    Parameters
    ----------
    n_events : int
    step : float
        Standard deviation of the step of each coordinate.
    width : float
        Standard deviation of each Gaussian.
    gap : float
    random_state : int, Generator or None

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing
    52(8), 2004, section VI-A.

    Examples
    --------
    >>> from gristmill.streams import drifting_mixture
    >>> X, y = drifting_mixture(500, random_state=0).arrays()
    >>> X.shape
    (500, 2)
    """

    def pieces(rng: np.random.Generator) -> Iterator[Any]:
        centres = _apart(rng, width)
        for start in range(0, n_events, 10):
            yield _separable(rng, centres, min(10, n_events - start), width, gap)
            centres = np.clip(centres + step * rng.normal(size=centres.shape), -3.0, 3.0)

    return _stream(lambda rng: _gathered(pieces(rng)), n_events, "drifting mixture", random_state, 0.0)


def switching_mixture(
    n_events: int = 10_000, every: int = 1000, width: float = 0.4, gap: float = 1.0, random_state: Any = 0
) -> Stream:
    """The same two mixtures, but all centres are drawn again after every 1000 events.

    Parameters
    ----------
    n_events : int
    every : int
        Events between two switches.
    width, gap, random_state :
        As for `drifting_mixture`.

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing
    52(8), 2004, section VI-A.

    Examples
    --------
    >>> from gristmill.streams import switching_mixture
    >>> switching_mixture(500, random_state=0).bayes_error
    0.0
    """
    if every < 1:
        raise ValueError(f"switching_mixture: every must be at least 1, got {every!r}")

    def pieces(rng: np.random.Generator) -> Iterator[Any]:
        for start in range(0, n_events, every):
            yield _separable(rng, _apart(rng, width), min(every, n_events - start), width, gap)

    return _stream(lambda rng: _gathered(pieces(rng)), n_events, "switching mixture", random_state, 0.0)


# ---- ILK / SILK, figure 1
# -----------------------------------------------------------------------------------------


def silk_sequence(
    n_events: int = 2000, speed: float = 6.0, width: float = 0.35, random_state: RandomState = 0, turns: float = 0.0
) -> Stream:
    """Two classes, each a mixture of two Gaussians, that travel together along a winding path.

    The paper shows a picture of its sequence and no numbers; path, speed, width and turns are ours. The classes
    stay side by side while both move. Without a turn no place ever changes its class, so that there is little
    to gain from forgetting.

    Parameters
    ----------
    n_events : int
    speed : float
        Length of the way along the path, in units in which the two classes are one apart.
    width : float
        Standard deviation of each Gaussian.
    random_state : int, Generator or None
    turns : float
        How often the four Gaussians turn about their middle on the way.

    References
    ----------
    L. Cheng, S. V. N. Vishwanathan, D. Schuurmans, S. Wang, T. Caelli, Implicit Online Learning with Kernels,
    NIPS 2006, figure 1.

    Examples
    --------
    >>> from gristmill.streams import silk_sequence
    >>> X, y = silk_sequence(random_state=0).arrays()
    >>> len(y)
    2000
    """

    def chunks(rng: np.random.Generator) -> Iterator[Chunk]:
        for start in range(0, n_events, ROWS):
            count = min(ROWS, n_events - start)
            along = speed * (start + np.arange(count)) / n_events
            middle = np.stack([along, np.sin(along)], axis=1)
            across = np.stack([-np.cos(along), np.ones(count)], axis=1)
            across /= np.linalg.norm(across, axis=1, keepdims=True)
            across = _turned(across, 2 * np.pi * turns * (start + np.arange(count)) / n_events)
            ahead = np.stack([across[:, 1], -across[:, 0]], axis=1)
            labels = rng.choice(np.array([-1, 1]), size=count)
            which = rng.choice(np.array([-0.5, 0.5]), size=count)
            centre = middle + 0.5 * labels[:, None] * across + which[:, None] * ahead
            yield Chunk(centre + width * rng.normal(size=(count, 2)), labels)

    # The mixture's parts lie along the path, so across it the classes are two normals one unit apart.
    error = 0.5 * math.erfc(0.5 / width / math.sqrt(2))
    return _stream(chunks, n_events, "SILK's sequence", random_state, error)


def _turned(vectors: Floats, angles: Floats) -> Floats:
    """Each row turned by its own angle."""
    cosine, sine = np.cos(angles), np.sin(angles)
    x, y = vectors.T
    return np.stack([cosine * x - sine * y, sine * x + cosine * y], axis=1)


# ---- Projectron, section 7
# ----------------------------------------------------------------------------------------


def two_gaussians(n_events: int = 10_000, flip: float = 0.1, random_state: RandomState = 0) -> Stream:
    """Two plane Gaussians at (1, 1) and (-1, -1), both of variances (0.2, 2), with flipped labels.

    Parameters
    ----------
    n_events : int
    flip : float in [0, 1/2]
        Share of labels that are wrong.
    random_state : int, Generator or None

    References
    ----------
    F. Orabona, J. Keshet, B. Caputo, Bounded Kernel-Based Online Learning, JMLR 10, 2009, section 7.

    Examples
    --------
    >>> from gristmill.streams import two_gaussians
    >>> round(two_gaussians().bayes_error, 4)
    0.1076
    """
    _share("two_gaussians", "flip", flip)
    spread = np.sqrt([0.2, 2.0])

    def chunks(rng: np.random.Generator) -> Iterator[Chunk]:
        for start in range(0, n_events, ROWS):
            count = min(ROWS, n_events - start)
            side = rng.choice(np.array([-1, 1]), size=count)
            X = side[:, None] + spread * rng.normal(size=(count, 2))
            yield Chunk(X, np.where(rng.random(count) < flip, -side, side))

    # Equal covariances: the Bayes rule errs with Phi(-d/2), d the Mahalanobis distance of the means.
    distance = math.sqrt(4 / 0.2 + 4 / 2.0)
    clean = 0.5 * math.erfc(distance / 2 / math.sqrt(2))
    return _stream(chunks, n_events, "two Gaussians", random_state, flip + (1 - 2 * flip) * clean)


# ---- two classics of the drift literature
# -------------------------------------------------------------------------


def sea(n_events: int = 50_000, noise: float = 0.1, random_state: RandomState = 0) -> Stream:
    """SEA: three features in [0, 10], positive where the first two add up to at most 8, then 9, 7 and 9.5.

    Parameters
    ----------
    n_events : int
        A quarter of them for each threshold.
    noise : float in [0, 1/2]
        Share of labels that are wrong.
    random_state : int, Generator or None

    References
    ----------
    W. N. Street, Y. Kim, A Streaming Ensemble Algorithm (SEA) for Large-Scale Classification, KDD 2001.

    Examples
    --------
    >>> from gristmill.streams import sea
    >>> X, y = sea(1000, noise=0.0).arrays()
    >>> int(((X[:250, 0] + X[:250, 1] <= 8) != (y[:250] == 1)).sum())
    0
    """
    _share("sea", "noise", noise)

    def chunks(rng: np.random.Generator) -> Iterator[Chunk]:
        for start in range(0, n_events, ROWS):
            count = min(ROWS, n_events - start)
            X = rng.uniform(0.0, 10.0, size=(count, 3))
            threshold = np.array([8.0, 9.0, 7.0, 9.5])[4 * (start + np.arange(count)) // n_events]
            truth = np.where(X[:, 0] + X[:, 1] <= threshold, 1, -1)
            yield Chunk(X, np.where(rng.random(count) < noise, -truth, truth))

    return _stream(chunks, n_events, "SEA", random_state, noise)


def rotating_hyperplane(
    n_events: int = 50_000,
    n_features: int = 10,
    turns: float = 1.0,
    noise: float = 0.05,
    random_state: RandomState = 0,
) -> Stream:
    """Points of the unit cube on either side of a hyperplane through its middle that turns steadily.

    Parameters
    ----------
    n_events : int
    n_features : int >= 2
    turns : float
        How often the normal goes round, in a plane chosen at random.
    noise : float in [0, 1/2]
        Share of labels that are wrong.
    random_state : int, Generator or None

    References
    ----------
    G. Hulten, L. Spencer, P. Domingos, Mining Time-Changing Data Streams, KDD 2001.

    Examples
    --------
    >>> from gristmill.streams import rotating_hyperplane
    >>> X, y = rotating_hyperplane(1000).arrays()
    >>> X.shape
    (1000, 10)
    """
    _share("rotating_hyperplane", "noise", noise)
    if n_features < 2:
        raise ValueError(f"rotating_hyperplane: n_features must be at least 2, got {n_features!r}")

    def chunks(rng: np.random.Generator) -> Iterator[Chunk]:
        plane, _ = np.linalg.qr(rng.normal(size=(n_features, 2)))
        for start in range(0, n_events, ROWS):
            count = min(ROWS, n_events - start)
            X = rng.uniform(size=(count, n_features))
            angle = 2 * np.pi * turns * (start + np.arange(count)) / n_events
            side = ((X - 0.5) @ plane * np.stack([np.cos(angle), np.sin(angle)], axis=1)).sum(axis=1)
            truth = np.where(side >= 0, 1, -1)
            yield Chunk(X, np.where(rng.random(count) < noise, -truth, truth))

    return _stream(chunks, n_events, "rotating hyperplane", random_state, noise)


def _share(owner: str, name: str, value: float) -> None:
    if not 0 <= value <= 0.5:
        raise ValueError(f"{owner}: {name} must be in [0, 0.5], got {value!r}")
