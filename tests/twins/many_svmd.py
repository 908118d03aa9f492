"""SVMD for many classes in NumPy: the own class and its strongest rival take a step together.

A point has a coefficient for each class in f and in the tangent v, and the joint space of points and classes carries the
inner products. With two classes it is the library's SVMD with twice the kernel.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

_BLOCK = 256  # events whose kernel values are computed at once
_LARGEST_SHARE = 0.99  # of f that one step may forget


@dataclass
class ManySVMD:
    """Gradient steps on the hinge loss of own class against strongest rival, whose rate descends too.

    Parameters are those of `gristmill.svmd`; the buffer drops its oldest point.
    """

    kernel: Any
    rate: float
    reg: float
    meta_rate: float
    decay: float
    size: int
    along: float = field(default=0.0, init=False)  #: <f, v>
    norm2: float = field(default=0.0, init=False)  #: <f, f>

    def mistakes(self, X: Any, y: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether each event was a mistake, for labels 0, 1, ...; a tie is one."""
        stored: deque[int] = deque()
        f = v = np.zeros((0, int(y.max()) + 1))
        wrong = np.zeros(len(y), dtype=bool)
        for start in range(0, len(y), _BLOCK):
            events = range(start, min(start + _BLOCK, len(y)))
            near = np.array([*stored, *events])
            values = np.asarray(self.kernel(X[near], X[near]), dtype=np.float64)
            room = np.zeros((len(events), f.shape[1]))
            f, v = np.vstack([f, room]), np.vstack([v, room])
            kept = deque(range(len(stored)))
            for place, event in enumerate(events, start=len(stored)):
                wrong[event] = self._step(values, f, v, kept, place, int(y[event]))
            stored = deque(int(near[place]) for place in kept)
            f, v = f[list(kept)], v[list(kept)]
        return wrong

    def _step(self, values: Any, f: Any, v: Any, kept: deque[int], place: int, label: int) -> bool:
        """Learn from one event, in place; returns whether it was a mistake."""
        scores, tangents = values[place] @ f, values[place] @ v
        others = scores.copy()
        others[label] = -np.inf
        rival = int(np.argmax(others))
        margin, tangent = scores[label] - scores[rival], tangents[label] - tangents[rival]
        slope = -1.0 if margin <= 1 else 0.0
        if not np.isfinite(margin) or not np.isfinite(self.along):
            raise ValueError("the rate of SVMD runs away")
        self.rate *= float(np.exp(np.clip(-self.meta_rate * (self.reg * self.along + slope * tangent), -500, 500)))
        if self.reg > 0:
            self.rate = min(self.rate, _LARGEST_SHARE / self.reg)
        self._move(f, v, slope, margin, tangent, 2 * values[place, place])
        if slope:
            for weights in (f, v):
                weights[place, label] += self.rate
                weights[place, rival] -= self.rate
            kept.append(place)
            if len(kept) > self.size:
                self._drop(values, f, v, kept.popleft())
        return bool(margin <= 0)

    def _move(self, f: Any, v: Any, slope: float, margin: float, tangent: float, self_product: float) -> None:
        """f <- s f + eta z and v <- d s v - eta lambda f + eta z, but for the new point; inner products of the result."""
        eta, step, d = self.rate, -self.rate * slope, self.decay
        s, mix = 1 - eta * self.reg, -eta * self.reg
        keep = d * s
        self.along = (
            s * keep * self.along
            + s * mix * self.norm2
            + step * ((s + mix) * margin + keep * tangent)
            + step**2 * self_product
        )
        self.norm2 = s**2 * self.norm2 + 2 * s * step * margin + step**2 * self_product
        v *= keep
        v += mix * f
        f *= s

    def _drop(self, values: Any, f: Any, v: Any, place: int) -> None:
        own, score, tangent = values[place, place], values[place] @ f, values[place] @ v
        self.along -= float(f[place] @ tangent + v[place] @ score - own * (f[place] @ v[place]))
        self.norm2 -= float(2 * f[place] @ score - own * (f[place] @ f[place]))
        f[place], v[place] = 0.0, 0.0
