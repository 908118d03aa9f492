"""
One model per animal: the weights of chicks
===========================================

River's ChickWeights has the weights of fifty chicks every other day, on four diets. A chick has at most twelve weights,
too few to learn from alone. With `center=True` a `KeyedFleet` subtracts the running mean of each chick from its
weights; with few weights this mean is shrunk towards that of all chicks.
"""

import matplotlib.pyplot as plt
import numpy as np

from gristmill import AutoRegressor, Gaussian, KernelRegressor, KeyedFleet, Merge, Prepared
from river import datasets

rows, targets = zip(*datasets.ChickWeights(), strict=True)
chick = np.array([row["chick"] for row in rows])
X = np.array([[row["time"], *(row["diet"] == diet for diet in (1, 2, 3, 4))] for row in rows], dtype=float)
y = np.array(targets, dtype=float)

fleet = KeyedFleet(Prepared(KernelRegressor(Gaussian(0.3), budget=Merge(20)), target=None), center=True)
per_chick = fleet.prequential(chick, X, y)
together = AutoRegressor(random_state=0).prequential(X, y)
late = slice(100, None)
print(f"one model for all chicks: mean absolute error {np.abs(together - y)[late].mean():.1f} g")
print(f"a fleet of {len(fleet)} models: mean absolute error {np.abs(per_chick - y)[late].mean():.1f} g")

# %%
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for colour, one in zip(("C0", "C1", "C2"), (7, 24, 35), strict=True):
    its = chick == one
    axes.plot(X[its, 0], y[its], "o", color=colour, label=f"chick {one}")
    axes.plot(X[its, 0], per_chick[its], "-", color=colour, alpha=0.6)
axes.set(xlabel="day", ylabel="weight in grams (lines: predicted before it was weighed)")
axes.legend()
plt.show()
