"""The steps of `StructuredLearner` as loops in NumPy: what a user would write without it.

Rule `Implicit()`, budget `DropSmallest(size)`, a Gaussian kernel. Each returns the sizes of the steps that are stored at the
end, in the order of the stream, to compare with the learner's.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from gristmill import Implicit
from gristmill.structured import viterbi
from gristmill.structured.search import SequenceScore

RULE = Implicit()
KEEP = 1 / (1 + RULE.rate * RULE.reg)
LIMIT = KEEP * RULE.rate * RULE.C


def smallest(steps: Any, ids: Any) -> int:
    """The slot of the smallest step, the oldest on ties."""
    equal = np.flatnonzero(steps == steps.min())
    return int(equal[ids[equal].argmin()])


def classes(gamma: float, X: Any, y: Any, count: int, size: int) -> Any:
    """Each class has a column of coefficients; a full store overwrites the slot that it drops."""
    points, norms, A = np.zeros((size, X.shape[1])), np.zeros(size), np.zeros((size, count))
    steps, ids, used = np.zeros(size), np.zeros(size, dtype=int), 0
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        norm = x @ x
        k = np.exp(-gamma * (norms[:used] + norm - 2 * (points[:used] @ x)))
        f = k @ A[:used]
        others = f + 1.0
        others[label] = -np.inf
        rival = others.argmax()
        step = min(max((1.0 - KEEP * (f[label] - f[rival])) / 2, 0.0), LIMIT)
        if KEEP < 1:
            A[:used] *= KEEP
            steps[:used] *= KEEP
        if step == 0:
            continue
        if used < size:
            slot, used = used, used + 1
        else:
            slot = smallest(steps, ids)
            if step < steps[slot]:
                continue  # the new one is the smallest
        points[slot], norms[slot], steps[slot], ids[slot] = x, norm, step, t
        A[slot], A[slot, label], A[slot, rival] = 0.0, step, -step
    return steps[:used][ids[:used].argsort()]


def words(gamma: float, transitions: float, X: list[Any], y: list[tuple[int, ...]], tags: int, size: int) -> Any:
    """Sequences of one length, and Viterbi's search of the library for the rival."""
    length, columns = X[0].shape
    rows, norms = np.zeros((size, length, columns)), np.zeros((size, length))
    A, moves = np.zeros((size, length, tags)), np.zeros((size, tags, tags))
    steps, ids, used, places = np.zeros(size), np.zeros(size, dtype=int), 0, np.arange(length)
    follow, names = np.zeros((tags, tags)), {tag: tag for tag in range(tags)}
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        squares = (x**2).sum(axis=1)
        flat = rows[:used].reshape(-1, columns)
        k = np.exp(-gamma * (squares[:, None] + norms[:used].ravel() - 2 * (x @ flat.T)))
        score = SequenceScore(names, f"row {t}", k @ A[:used].reshape(-1, tags), transitions * follow)
        rival = viterbi(score, x, exclude=label)
        change, move = np.zeros((length, tags)), np.zeros((tags, tags))
        change[places, label] += 1
        change[places, rival] -= 1
        for sign, sequence in ((1, label), (-1, rival)):
            for step_from, step_to in pairwise(sequence):
                move[step_from, step_to] += sign
        own = np.exp(-gamma * (squares[:, None] + squares - 2 * (x @ x.T)))
        extent = float((own * (change @ change.T)).sum() + transitions * (move**2).sum())
        step = min(max((1.0 - KEEP * (score(label) - score(rival))) / extent, 0.0), LIMIT)
        if KEEP < 1:
            A[:used] *= KEEP
            steps[:used] *= KEEP
            follow *= KEEP
        if step == 0:
            continue
        if used < size:
            slot, used = used, used + 1
        else:
            slot = smallest(steps, ids)
            if step < steps[slot]:
                continue
            follow -= steps[slot] * moves[slot]
        rows[slot], norms[slot], steps[slot], ids[slot] = x, squares, step, t
        A[slot], moves[slot] = step * change, move
        follow += step * move
    return steps[:used][ids[:used].argsort()]
