"""
A kernel of your own
====================

Wind direction is an angle: 359 degrees and 1 degree are neighbours, but a Gaussian kernel treats them as far apart. A
kernel may be any function of two points, so a periodic kernel takes three lines of Python.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from gristmill import Gaussian, passive_aggressive_regressor


def round_the_compass(a, b):
    """Large when two directions (in degrees) are close, all the way round."""
    return np.exp(4 * (np.cos(np.radians(a[0] - b[0])) - 1))


def true_power(direction):
    """A hill to the south-east takes some of the wind; from the north it blows best."""
    return 3 + 1.5 * np.cos(np.radians(direction)) - np.exp(-(((direction - 135) / 30) ** 2))


rng = np.random.default_rng(0)
direction = rng.uniform(0, 360, 1500)
power = true_power(direction) + 0.2 * rng.normal(size=1500)
X = direction[:, None]

warnings.filterwarnings("ignore", "KernelRegressor: column 0")  # degrees, and kernels made for them
kernels = {"Gaussian": Gaussian(8 / 180**2 * np.pi**2 / 4), "round the compass": round_the_compass}
models, near_north = {}, np.minimum(direction, 360 - direction) < 10
for name, kernel in kernels.items():
    models[name] = passive_aggressive_regressor(kernel, C=0.1, epsilon=0.1)
    error = np.abs(models[name].prequential(X, power) - power)[500:]
    print(f"{name:18} error {error.mean():.3f}, within 10 degrees of north {error[near_north[500:]].mean():.3f}")

# %%
# Both learned from the same events. At north, where 360 degrees become 0, the Gaussian kernel has a dip.

grid = np.linspace(-180, 180, 361)
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes.plot((direction + 180) % 360 - 180, power, ".", color="lightgrey", markersize=3)
for name, model in models.items():
    axes.plot(grid, model.predict(grid[:, None] % 360), label=name)
axes.plot(grid, true_power(grid % 360), "k:", label="true")
axes.set(xlabel="direction of the wind in degrees (0 is north)", ylabel="power", xlim=(-180, 180))
axes.legend(loc="lower center", ncols=3)
plt.show()
