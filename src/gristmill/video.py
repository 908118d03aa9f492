"""Background subtraction: one novelty detector a pixel, stepped together."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from .catalogue import ilk_novelty
from .fleets.fleet import Fleet
from .kernels import Gaussian
from .learners.kernel import KernelNovelty


class BackgroundSubtractor:
    """Marks what is new in a video: `apply(frame)` returns a mask, as the subtractors of OpenCV do.

    Each pixel has a novelty detector over its own colours; foreground is where the detector's score falls below the
    threshold. Frames must have one size and one type. Whole numbers without a sign (8 or 16 bits) are divided by the largest
    of their type, so the kernel gets numbers in [0, 1]; other numbers are not scaled.

    Experimental: it may change in any minor version.

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

    Notes
    -----
    Detectors compute in float32. Beside float64, over 248 frames of the clip Waving Trees, single scores differ by up to
    0.18, and 13 of 4,761,600 pixels of the masks; 2 after the median filter.

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
        if isinstance(median, bool) or not isinstance(median, int) or median < 1 or median % 2 == 0:
            raise ValueError(f"median must be an odd whole number above 0, got {median!r}")
        given: Any = threshold
        if isinstance(given, bool) or not isinstance(given, Real) or not np.isfinite(float(given)):
            raise ValueError(f"threshold must be a finite number such as -0.7, got {threshold!r}")
        self.prototype = prototype
        self.threshold = threshold
        self.median = median
        self.n_jobs = n_jobs
        self.fleet_: Fleet | None = None
        self._frame: tuple[tuple[int, ...], np.dtype[Any]] | None = None  # shape and type of each

    def score(self, frame: object) -> npt.NDArray[np.float64]:
        """Learn a frame and return the score of each pixel before: the lower, the more unusual."""
        return self._scores(np.asarray(frame)[None])[0]

    def apply(self, frame: object) -> npt.NDArray[np.uint8]:
        """Learn a frame and return its mask: 255 where there is foreground, 0 elsewhere, and in all of the first."""
        return self.apply_many(np.asarray(frame)[None])[0]

    def apply_many(self, frames: object) -> npt.NDArray[np.uint8]:
        """Learn frames in order and return their masks, the same as `apply` for each of them.

        For video that is recorded already: many frames at a time take less time each, because the detectors of a few
        pixels stay in the cache while all frames are learned. Sixteen are enough.

        Parameters
        ----------
        frames : array of shape (frames, height, width) or (frames, height, width, colours)
        """
        begins = self.fleet_ is None
        masks = np.stack([smooth(scores < self.threshold, self.median) for scores in self._scores(np.asarray(frames))])
        if begins:
            masks[0] = 0
        return masks

    def _scores(self, frames: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Learn frames and return the scores before: (frames, height, width)."""
        shape = frames.shape[1:]
        if len(shape) not in (2, 3) or frames.size == 0:
            raise ValueError(f"a frame has the shape (height, width) or (height, width, colours), got {shape}")
        known = (shape, frames.dtype)
        if self._frame not in (None, known):
            raise ValueError(
                "frames have the shape {} and the type {}, got {} and {}".format(*self._frame or (), *known)
            )
        if frames.dtype.kind not in "uf" and frames.dtype != bool:
            raise ValueError(f"a frame holds uint8, uint16 or numbers in [0, 1] as floats, got {frames.dtype}")
        rows = frames.reshape(len(frames), shape[0] * shape[1], -1).astype(np.float32)
        if frames.dtype.kind == "u":
            rows /= np.float32(np.iinfo(frames.dtype).max)
        fleet = Fleet(self.prototype, rows.shape[1], self.n_jobs) if self.fleet_ is None else self.fleet_
        scores = fleet.prequential(rows)
        self.fleet_, self._frame = fleet, known
        return np.asarray(scores).reshape(-1, *shape[:2])


def smooth(new: npt.NDArray[np.bool_], side: int) -> npt.NDArray[np.uint8]:
    """The median of a mask over squares: what the majority says, the border repeated outwards."""
    counts: npt.NDArray[Any] = new.view(np.uint8)
    if side > 1:
        edge, (height, width) = side // 2, new.shape
        wide = np.empty((height + 2 * edge, width + 2 * edge), dtype=np.uint8 if side < 16 else np.uint32)
        middle = slice(edge, edge + width)
        wide[edge : edge + height, middle] = new
        wide[:edge, middle], wide[edge + height :, middle] = new[0], new[-1]
        wide[:, :edge], wide[:, edge + width :] = wide[:, [edge]], wide[:, [edge + width - 1]]
        columns = wide[:height] + wide[1 : height + 1]
        for at in range(2, side):
            columns += wide[at : at + height]
        counts = columns[:, :width] + columns[:, 1 : width + 1]
        for at in range(2, side):
            counts += columns[:, at : at + width]
    return (counts > side * side // 2).view(np.uint8) * np.uint8(255)
