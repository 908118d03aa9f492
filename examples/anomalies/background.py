"""
Background subtraction on a small clip
======================================

`BackgroundSubtractor` keeps one small novelty detector per pixel. It learns the usual grey values of the pixel (two of them
where a lamp flickers) and follows slow changes of the light. Unusual values are foreground. The clip is simulated.
"""

import matplotlib.pyplot as plt
import numpy as np

from gristmill import Gaussian, ilk_novelty
from gristmill.video import BackgroundSubtractor

rng = np.random.default_rng(1)
n_frames, height, width = 130, 24, 36
rows, columns = np.mgrid[:height, :width]
wall = 0.4 + 0.1 * np.sin(columns / 4) + 0.002 * rows
clip = np.repeat(wall[None], n_frames, axis=0) + np.linspace(0, 0.15, n_frames)[:, None, None]  # the sun comes out
lamp = (rows - 4) ** 2 + (columns - 30) ** 2 <= 6
clip[:, lamp] += 0.3 * (rng.random(n_frames) < 0.5)[:, None]
truth = np.zeros(clip.shape, dtype=bool)
for frame in range(80, n_frames):
    left = frame - 86
    truth[frame] = (columns >= left) & (columns < left + 6) & (rows >= 12)
clip[truth] = np.broadcast_to(0.78 + 0.12 * np.sin(rows), clip.shape)[truth]  # striped
clip += 0.02 * rng.normal(size=clip.shape)

# Each pixel is a stream of one number per frame. The score is near 0 for usual values and -1 for unknown ones.
subtractor = BackgroundSubtractor(ilk_novelty(Gaussian(100.0), C=0.04, size=40), threshold=-0.7, median=1)
masks = np.array([subtractor.apply(frame) for frame in clip]) == 255

seen = slice(80, None)
print(f"foreground found: {masks[seen][truth[seen]].mean():.1%}")
print(f"background taken for foreground: {masks[seen][~truth[seen]].mean():.1%}")

# %%
# The passer-by wears stripes. A stripe that is as grey as the wall behind it cannot be seen. The flickering lamp raises no
# alarm.

figure, axes = plt.subplots(2, 3, figsize=(9, 4.4), layout="constrained")
for ax, frame in zip(axes[0], (60, 100, 115), strict=True):
    ax.imshow(clip[frame], cmap="gray", vmin=0, vmax=1)
    ax.set_title(f"frame {frame}")
for ax, frame in zip(axes[1], (60, 100, 115), strict=True):
    ax.imshow(masks[frame], cmap="gray", vmin=0, vmax=1)
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
axes[0, 0].set_ylabel("clip")
axes[1, 0].set_ylabel("foreground")
plt.show()
