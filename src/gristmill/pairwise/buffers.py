"""Buffers: which events of the past a new one is compared with.

A buffer may also be any Python object with a whole number `size` and a method `offer(step, x, label, filled)`
that looks at the event (`step` counts from 1, `x` is the row or None for objects, `label` the class as a
number) and returns the positions it shall be written to: None, a number, or several. Positions up to
`filled`, the first free one, are allowed. The theory of the chapter is for policies that do not look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .._common.ranges import Checked, Range, count, is_whole, one_of


class PairBuffer(Checked):
    """Base class of the buffers that run in the core."""

    size: int

    def core_spec(self) -> dict[str, object]:
        return {"buffer": type(self).__name__, **vars(self)}


@dataclass(frozen=True)
class Fifo(PairBuffer):
    """The last `size` events.

    Parameters
    ----------
    size : int >= 1
        s: how many events are kept.

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, section 6.5.1.

    Examples
    --------
    >>> from gristmill import Fifo, PairwiseAUC
    >>> model = PairwiseAUC(buffer=Fifo(2)).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    >>> sorted(model.buffer_ids_.tolist())
    [2, 3]
    """

    size: int

    _ranges: ClassVar[dict[str, Range]] = {"size": count}


@dataclass(frozen=True)
class Reservoir(PairBuffer):
    """A uniform sample without replacement: every subset of `size` events so far is equally likely.

    Parameters
    ----------
    size : int >= 1
        s: how many events are kept.

    References
    ----------
    J. S. Vitter, Random Sampling with a Reservoir, ACM Transactions on Mathematical Software 11(1), 1985.

    Examples
    --------
    >>> from gristmill import PairwiseAUC, Reservoir
    >>> model = PairwiseAUC(buffer=Reservoir(2), random_state=0)
    >>> model = model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    >>> len(set(model.buffer_ids_.tolist()))
    2
    """

    size: int

    _ranges: ClassVar[dict[str, Range]] = {"size": count}


@dataclass(frozen=True)
class ReservoirX(PairBuffer):
    """A sample with replacement: each place is an independent uniform draw from all events so far.

    This is the buffer of the regret bounds. The first `size` events are all kept; at the next one the whole
    buffer is drawn again; from then on event t replaces each place with probability 1/t. An event may be there
    several times.

    Parameters
    ----------
    size : int >= 1
        s: how many places there are.
    method : {"skip", "binomial", "bernoulli"}, default="skip"
        Three ways to draw from one law: the next event that changes anything is computed (random numbers only
        for those), a binomial number of places (RS-x^2), or a coin for each place (RS-x as printed).

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Algorithms 7 and 9, Theorem 6.12.

    Examples
    --------
    >>> from gristmill import PairwiseAUC, ReservoirX
    >>> model = PairwiseAUC(buffer=ReservoirX(2), random_state=0)
    >>> model = model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    >>> len(model.buffer_ids_)
    2
    """

    size: int
    method: str = "skip"

    _ranges: ClassVar[dict[str, Range]] = {"size": count, "method": one_of("skip", "binomial", "bernoulli")}


def check_buffer(buffer: object, default: int) -> Any:
    """A buffer as the core takes it, a Python one copied for the model; None is ReservoirX(default)."""
    import copy

    if buffer is None:
        return ReservoirX(default).core_spec()
    if isinstance(buffer, PairBuffer):
        return buffer.core_spec()
    if isinstance(buffer, type) or not hasattr(buffer, "offer"):
        raise TypeError(f"buffer must be a buffer such as ReservoirX(100) or have a method offer, got {buffer!r}")
    size: Any = getattr(buffer, "size", None)
    if not is_whole(size) or size < 1:
        raise ValueError(f"buffer: its size must be a whole number >= 1, got {size!r}")
    return copy.deepcopy(buffer)
