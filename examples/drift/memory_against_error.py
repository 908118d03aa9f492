"""
Error against memory
====================

A budget is a hard limit on the number of stored points. How does the error depend on this number, and on which points are
removed? Four budgets at six sizes, on handwritten digits: without drift, and with a camera that turns by 90 degrees in the
course of the stream.
"""

import matplotlib.pyplot as plt

from gristmill import DropOldest, DropRandom, DropSmallest, Gaussian, KernelClassifier, Merge, PassiveAggressive
from gristmill.evaluate import BudgetDisplay
from gristmill.streams import drifting_digits

budgets = {
    "DropOldest": DropOldest,
    "DropRandom": DropRandom,
    "DropSmallest": DropSmallest,
    "Merge": Merge,
}


def family(budget):
    return lambda size: KernelClassifier(Gaussian(0.0015), PassiveAggressive(C=1.0), budget(size), random_state=0)


figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, (camera, turn) in zip(axes, {"the camera stands still": 0, "the camera turns": 90}.items(), strict=True):
    families = {name: family(budget) for name, budget in budgets.items()}
    display = BudgetDisplay.from_builders(families, [25, 50, 100, 200, 400, 800], drifting_digits(5000, turn=turn))
    print(camera)
    for name, points in display.points.items():
        print(f"{name:13}", ", ".join(f"{stored}: {error:.3f}" for stored, error in points))
    display.plot(ax=ax)
    ax.set_title(camera)
plt.show()

# %%
# Without drift, `Merge` needs a half to a quarter of the points for the same error, because it keeps what was learned from
# the points that it removes. If the camera turns, what was learned early becomes wrong, and `Merge` has no advantage over
# `DropOldest`.
