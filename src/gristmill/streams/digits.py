"""The bundled stream: scikit-learn's digits under a camera that turns, in a drifting order of classes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._common.types import RandomState
from .stream import ROWS, Chunk, Stream

_SMOOTH = 100  # events that share one angle: a step of the camera too small to see


def drifting_digits(
    n_events: int = 50_000, turn: float = 90.0, random_state: RandomState = 0, rows: int = ROWS
) -> Stream:
    """Handwritten digits in a drifting order: classes come into fashion and go, and the camera slowly turns.

    Each event is one of scikit-learn's 1,797 digits (8 x 8 grey values from 0 to 16), drawn without repeat
    until all of its class have been shown. Over the stream the popularity of the classes goes round twice,
    and every image is turned by an angle that grows steadily from 0 to `turn`. So a learner that cannot
    forget keeps points of a world that has gone.

    Parameters
    ----------
    n_events : int
    turn : float
        Degrees by which the last images are turned.
    random_state : int, Generator or None
    rows : int
        Events in a chunk.

    References
    ----------
    E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998.

    Examples
    --------
    >>> from gristmill.streams import drifting_digits
    >>> X, y = drifting_digits(n_events=300, random_state=0).arrays()
    >>> X.shape
    (300, 64)
    """
    if n_events < 1 or rows < 1:
        raise ValueError(f"drifting_digits: n_events and rows must be at least 1, got {n_events!r} and {rows!r}")
    seed = int(np.random.default_rng(random_state).integers(2**63))
    return Stream(
        lambda: _digits(n_events, turn, seed, rows),
        n_events=n_events,
        name="drifting digits",
        classes=tuple(range(10)),
    )


def _digits(n_events: int, turn: float, seed: int, rows: int) -> Iterator[Chunk]:
    from scipy.ndimage import rotate
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8)
    rng = np.random.default_rng(seed)
    of_class = [np.flatnonzero(labels == digit) for digit in range(10)]
    waiting: list[list[int]] = [[] for _ in range(10)]
    turned, shown = [], []
    for start in range(0, n_events, _SMOOTH):
        count = min(_SMOOTH, n_events - start)
        phase = 2 * np.pi * (2 * start / n_events - np.arange(10) / 10)
        fashion = np.exp(2 * np.cos(phase))
        picked = []
        for digit in rng.choice(10, size=count, p=fashion / fashion.sum()):
            if not waiting[digit]:
                waiting[digit] = rng.permutation(of_class[digit]).tolist()
            picked.append(waiting[digit].pop())
        angle = turn * start / n_events
        batch = rotate(images[picked], angle, axes=(1, 2), reshape=False, order=1)
        turned.append(batch.reshape(count, 64))
        shown.append(labels[picked])
        done = start + count == n_events
        if done or (start + count) % max(rows // _SMOOTH * _SMOOTH, _SMOOTH) == 0:
            yield Chunk(np.concatenate(turned), np.concatenate(shown))
            turned, shown = [], []
