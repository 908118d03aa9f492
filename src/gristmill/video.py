"""Background subtraction: one novelty detector a pixel, stepped together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .catalogue import ilk_novelty
from .fleet import Fleet
from .kernels import Gaussian
from .learners import KernelNovelty


class BackgroundSubtractor:
    """Marks what is new in a video: `apply(frame)` returns a mask, as the subtractors of OpenCV do.

    Each pixel has a novelty detector over its own colours; foreground is where the detector's score falls below the
    threshold. Frames must have one size. Colours of 8 bits are divided by 255, so the kernel sees numbers in [0, 1].

    Parameters
    ----------
    prototype : KernelNovelty, default=ilk_novelty(Gaussian(40.0), C=0.1, reg=0.005, size=20)
        What each pixel has; the default is SILK with 20 points (omega = 20, rho = 1 in the paper).
    threshold : float, default=-0.7
        A pixel is foreground where f(x) - margin is below this. With the default detector f is about 1 on a background that
        is well known and 0 on a colour that never came.
    median : odd int, default=5
        Side of the square over which the mask is smoothed by majority; 1 leaves it as it is.
    n_jobs : int, default=1
        Threads; the result is the same for any number.

    References
    ----------
    L. Cheng, S. V. N. Vishwanathan, D. Schuurmans, S. Wang, T. Caelli, Implicit Online Learning with Kernels, NIPS 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill.video import BackgroundSubtractor
    >>> rng = np.random.default_rng(0)
    >>> subtractor = BackgroundSubtractor()
    >>> for _ in range(30):
    ...     mask = subtractor.apply(rng.integers(100, 110, size=(48, 64, 3), dtype=np.uint8))
    >>> frame = np.full((48, 64, 3), 105, dtype=np.uint8)
    >>> frame[10:30, 20:40] = 250
    >>> mask = subtractor.apply(frame)
    >>> np.unique(mask).tolist(), int((mask == 255).sum())
    ([0, 255], 388)
    """

    def __init__(
        self, prototype: KernelNovelty | None = None, threshold: float = -0.7, median: int = 5, n_jobs: int = 1
    ) -> None:
        if prototype is None:
            prototype = ilk_novelty(Gaussian(40.0), C=0.1, reg=0.005, size=20)
        if not isinstance(prototype, KernelNovelty):
            raise TypeError(f"prototype must be a KernelNovelty such as ilk_novelty(...), got {prototype!r}")
        if not isinstance(median, int) or median < 1 or median % 2 == 0:
            raise ValueError(f"median must be an odd whole number above 0, got {median!r}")
        self.prototype = prototype
        self.threshold = threshold
        self.median = median
        self.n_jobs = n_jobs
        self.fleet_: Fleet | None = None
        self._shape: tuple[int, ...] = ()

    def score(self, frame: Any) -> npt.NDArray[np.float64]:
        """Learn a frame and return the score of each pixel before: the lower, the more unusual."""
        pixels = np.asarray(frame)
        if pixels.ndim not in (2, 3) or pixels.size == 0:
            raise ValueError(f"a frame has the shape (height, width) or (height, width, colours), got {pixels.shape}")
        if self.fleet_ is not None and pixels.shape != self._shape:
            raise ValueError(f"frames have the shape {self._shape}, got {pixels.shape}")
        height, width = pixels.shape[:2]
        rows = pixels.reshape(height * width, -1).astype(np.float32)
        if pixels.dtype == np.uint8:
            rows /= np.float32(255)
        fleet = Fleet(self.prototype, len(rows), self.n_jobs) if self.fleet_ is None else self.fleet_
        scores = fleet.step(rows)
        self.fleet_, self._shape = fleet, pixels.shape
        return np.asarray(scores).reshape(height, width)

    def apply(self, frame: Any) -> npt.NDArray[np.uint8]:
        """Learn a frame and return its mask: 255 where there is foreground, 0 elsewhere, and in all of the first."""
        begins = self.fleet_ is None
        new = self.score(frame) < self.threshold
        return np.zeros(new.shape, dtype=np.uint8) if begins else smooth(new, self.median)


def smooth(new: npt.NDArray[np.bool_], side: int) -> npt.NDArray[np.uint8]:
    """The median of a mask over squares: what the majority says."""
    from scipy.ndimage import uniform_filter

    if side > 1:
        new = uniform_filter(new.astype(np.float32), side, mode="nearest") > 0.5
    return np.where(new, np.uint8(255), np.uint8(0))
