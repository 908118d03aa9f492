"""`python -m benchmarks.video CLIP`: SILK a pixel beside OpenCV's MOG2 and KNN on the waving-trees clip.

The clip is waving-trees.npz.xz of the data folder, with one frame segmented by hand. The paper's own videos are not to be
had, and it prints no protocol beyond omega = 20, rho = 1. Thresholds are chosen on frames that are not scored: as high as
leaves at most one pixel in two hundred of the empty scene in the mask. Then frames per second over those of MOG2, in
alternating runs: with and without the median filter, at the size of the clip and at twice that.
"""

from __future__ import annotations

import io
import lzma
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from gristmill import Gaussian, ilk_novelty
from gristmill.video import BackgroundSubtractor, smooth

from .measure import best, pin

QUIET = slice(150, 235)  # the scene is empty; the person comes later


def clip() -> tuple[Any, Any, int]:
    folder = Path(os.environ.get("GRISTMILL_DATA", "."))
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else folder / "waving-trees.npz.xz"
    with lzma.open(path) as file:
        data = np.load(io.BytesIO(file.read()))
    return data["frames"], data["truth"] > 0, int(data["truth_frame"])


def row(name: str, threshold: str, plain: float, smoothed: float, seconds: float) -> None:
    print(f"{name:<28} {threshold:>9} {plain:>7.3f} {smoothed:>9.3f} {1 / seconds:>9.0f}")


def f1(found: Any, truth: Any) -> float:
    return float(2 * (found & truth).sum() / (found.sum() + truth.sum()))


def silk(frames: Any, at: int, gamma: float) -> tuple[Any, float]:
    """The scores of the frame that is judged, and the threshold that the empty scene asks for."""
    subtractor = BackgroundSubtractor(ilk_novelty(Gaussian(gamma), C=0.1, reg=0.005, size=20))
    scores = [subtractor.score(frame) for frame in frames[: at + 1]]
    for threshold in np.linspace(-0.3, -0.98, 35):
        if np.mean([smooth(score < threshold, 5) > 0 for score in scores[QUIET]]) < 0.005:
            break
    return scores[at], float(threshold)


def main() -> None:
    pin()
    frames, truth, at = clip()
    print(f"{'detector':<28} {'threshold':>9} {'F1':>7} {'median 5':>9} {'frames/s':>9}")
    for gamma in (20.0, 40.0, 60.0):
        scores, threshold = silk(frames, at, gamma)
        subtractor = BackgroundSubtractor(ilk_novelty(Gaussian(gamma), C=0.1, reg=0.005, size=20), threshold)
        for frame in frames[:60]:
            subtractor.apply(frame)
        seconds = best(lambda s=subtractor: [s.apply(frame) for frame in frames[60:90]], 2) / 30  # type: ignore[misc]
        new = scores < threshold
        row(f"SILK, gamma {gamma:g}", f"{threshold:.2f}", f1(new, truth), f1(smooth(new, 5) > 0, truth), seconds)
    try:
        import cv2
    except ImportError:
        print("OpenCV is not installed (gristmill[video])")
        return
    cv2.setNumThreads(1)
    for name, make in (("MOG2", cv2.createBackgroundSubtractorMOG2), ("KNN", cv2.createBackgroundSubtractorKNN)):
        model = make()
        for frame in frames[: at + 1]:
            mask = model.apply(frame)
        seconds = best(lambda m=model: [m.apply(frame) for frame in frames[60:90]], 2) / 30  # type: ignore[misc]
        row(
            name, "", f1(mask == 255, truth), f1(cv2.medianBlur(mask, 5) == 255, truth), seconds
        )  # shadows are not foreground
    speed(frames, cv2)


def speed(frames: Any, cv2: Any) -> None:
    """Processor time of MOG2 over ours for frame after frame, and where ours goes."""
    print(f"\n{'frame':<10} {'MOG2 us':>8} {'/ ours':>8} {'no median':>10}   conversion, detectors, median: us")
    for times in (1, 2):
        scaled = np.ascontiguousarray(frames[:90].repeat(times, axis=1).repeat(times, axis=2))
        models = {
            "MOG2": cv2.createBackgroundSubtractorMOG2(),
            "median": BackgroundSubtractor(),
            "plain": BackgroundSubtractor(median=1),
        }
        for model in models.values():
            for frame in scaled[:60]:
                model.apply(frame)
        taken = dict.fromkeys(models, np.inf)
        for _ in range(6):
            for name, model in models.items():
                seconds = best(lambda m=model, s=scaled[60:]: [m.apply(f) for f in s], 1)  # type: ignore[misc]
                taken[name] = min(taken[name], seconds / 30)
        fleet, mask = models["plain"].fleet_, scaled[60, ..., 0] > 100
        rows = scaled[60].reshape(1, -1, 3).astype(np.float32) / np.float32(255)
        parts = [
            best(lambda x=scaled[60]: [x.astype(np.float32) / np.float32(255) for _ in range(30)]),  # type: ignore[misc]
            best(lambda f=fleet, r=rows: [f.prequential(r) for _ in range(30)]),  # type: ignore[misc]
            best(lambda m=mask: [smooth(m, 5) for _ in range(30)]),  # type: ignore[misc]
        ]
        size = f"{scaled.shape[2]} x {scaled.shape[1]}"
        print(
            f"{size:<10} {1e6 * taken['MOG2']:>8.0f} {taken['MOG2'] / taken['median']:>8.2f} "
            f"{taken['MOG2'] / taken['plain']:>10.2f}   " + ", ".join(f"{1e6 * part / 30:.0f}" for part in parts)
        )


if __name__ == "__main__":
    main()
