"""Sequences of rows with a tag per row: the joint kernel, and Viterbi's search for the best tags."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .._common.ranges import Checked, Range, non_negative
from ..kernels import Kernel

if TYPE_CHECKING:
    from .search import SequenceScore


@dataclass(frozen=True)
class Sequences(Checked):
    """Joint kernel of sequences with a tag per row, for `StructuredLearner`.

    K((x, y), (x', y')) is the sum of k(x_s, x'_t) over all pairs of rows with equal tags, plus `transitions` times the
    number of pairs of positions at which both sequences go from the same tag to the same next one. So f(x, y) is a score of
    each tag at each row plus a score of each pair of tags in a row, which is what Viterbi's search needs.

    Parameters
    ----------
    base : kernel of gristmill
        k, which compares two rows.
    transitions : float >= 0, default=1.0

    References
    ----------
    Y. Altun, I. Tsochantaridis, T. Hofmann, Hidden Markov Support Vector Machines, ICML 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, StructuredLearner
    >>> from gristmill.structured import Sequences
    >>> rng = np.random.default_rng(0)
    >>> y = [tuple("ab"[i % 2] for i in range(start, start + 4)) for start in rng.integers(2, size=60)]
    >>> X = [np.array([[tag == "a"] for tag in tags]) + rng.normal(size=(4, 1)) for tags in y]  # the tags alternate
    >>> model = StructuredLearner(Sequences(Gaussian(0.5)), labels=["a", "b"])
    >>> sum(a == b for a, b in zip(model.fit(X[:30], y[:30]).predict(X[30:]), y[30:]))
    24
    """

    base: Kernel
    transitions: float = 1.0

    _ranges: ClassVar[dict[str, Range]] = {"transitions": non_negative}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.base, Kernel) and self.base.is_native):
            raise TypeError(f"Sequences: base must be a kernel of gristmill, got {self.base!r}")


def viterbi(score: SequenceScore, x: object, exclude: tuple[Hashable, ...] | None = None) -> tuple[Hashable, ...]:
    """The tags with the highest score(tags), other than `exclude`; the first ones on ties.

    Parameters
    ----------
    score : what `StructuredLearner` gives to a search
        Its `rows`, `transitions` and `labels` are used.
    x : the sequence, which is not used
    exclude : tuple of tags, optional

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill.structured import viterbi
    >>> from gristmill.structured.search import SequenceScore
    >>> rows, transitions = np.array([[1.0, 0.0], [1.0, 0.9]]), np.array([[0.0, 0.5], [0.0, 0.0]])
    >>> score = SequenceScore({"a": 0, "b": 1}, "row 0", rows, transitions)
    >>> viterbi(score, None), viterbi(score, None, exclude=("a", "b")), score(("a", "b"))
    (('a', 'b'), ('a', 'a'), 2.4)
    """
    rows, transitions, tags = score.rows, score.transitions, score.labels
    count, length = len(tags), len(rows)
    barred = None if exclude is None else score.numbers(exclude)
    # best[c]: of the beginnings that end with tag c; where a label is excluded, of those that differ from it.
    best = rows[0].copy()
    along = 0.0  # the score of the excluded beginning itself
    back = np.empty((length, count), dtype=np.intp)
    if barred is not None:
        along = float(best[barred[0]])
        best[barred[0]] = -np.inf
    for t in range(1, length):
        through = best[:, None] + transitions
        if barred is not None:
            before, now = barred[t - 1], barred[t]
            leaving = along + transitions[before]
            leaving[now] = -np.inf
            # One row more: the beginning that has been the excluded one up to here.
            through = np.vstack([through, leaving])
            along += float(transitions[before, now] + rows[t, now])
        back[t] = through.argmax(axis=0)
        best = through[back[t], np.arange(count)] + rows[t]
    found = [int(best.argmax())]
    for t in range(length - 1, 0, -1):
        previous = int(back[t, found[-1]])
        if previous == count:  # it has left the excluded label here
            assert barred is not None
            found += reversed(barred[:t])
            break
        found.append(previous)
    return tuple(tags[number] for number in reversed(found))
