"""
Additive functions: what makes a flat cost what it does?
========================================================

The price of a flat is modelled as a sum of one curve for each column. The curves are learned along the stream of sales,
and each of them can be plotted. The sales are simulated, so that the true curves (dotted) are known.
"""

import matplotlib.pyplot as plt
import numpy as np

from gristmill import Additive, KernelRegressor, Laplacian, PassiveAggressive, Unbounded

rng = np.random.default_rng(3)
n_sales, noise = 20_000, 0.1
names = ["area", "distance to the centre", "age", "house number"]
X = rng.uniform(size=(n_sales, 4))  # every column from 0 to 1
curves = [
    lambda area: 1.2 * np.sqrt(area),
    lambda distance: np.exp(-4 * distance) + 0.3 * np.exp(-(((distance - 0.7) / 0.08) ** 2)),  # a second centre
    lambda age: 1.5 * (age - 0.6) ** 2,  # new ones and old ones are dear
    lambda number: 0 * number,
]
y = sum(curve(column) for curve, column in zip(curves, X.T, strict=True)) + noise * rng.normal(size=n_sales)

# One tree per column: a step costs the logarithm of the number of stored points, so all of them can be kept.
model = KernelRegressor(Additive(Laplacian(3.0)), PassiveAggressive(C=0.02, epsilon=noise), Unbounded())
error = np.abs(y - model.prequential(X, y))
print(f"mean absolute error: {error[:1000].mean():.3f} at first, {error[-5000:].mean():.3f} in the end")
print(f"least possible: {noise * np.sqrt(2 / np.pi):.3f}")
swing = np.ptp(model.components(X[:2000]), axis=0)
print("swing of each part: " + ", ".join(f"{name} {size:.2f}" for name, size in zip(names, swing, strict=True)))

# %%
# The curves, each shifted to mean 0. The house number is irrelevant, and its curve is flat.

grid = np.linspace(0, 1, 200)
parts = model.components(np.repeat(grid[:, None], 4, axis=1))
figure, axes = plt.subplots(1, 4, figsize=(11, 3), layout="constrained", sharey=True)
for ax, name, part, curve in zip(axes, names, parts.T, curves, strict=True):
    ax.plot(grid, part - part.mean(), label="learned")
    ax.plot(grid, curve(grid) - curve(grid).mean(), "k:", label="true")
    ax.set(xlabel=name)
axes[0].set_ylabel("adds to the price")
axes[0].legend()
plt.show()
