"""What does each cause add? Demand for heat as a sum of one learned function a column, with its picture."""

import numpy as np

from gristmill import Additive, AdditiveDisplay, KernelRegressor, Laplacian, PassiveAggressive, Unbounded

rng = np.random.default_rng(3)
n_events, noise = 20_000, 0.1

# Every column from 0 to 1: the hour of the day, outdoor temperature, wind, and one that has no effect at all.
X = rng.uniform(size=(n_events, 4))
hour, temperature, wind, _ = X.T
morning_and_evening = np.exp(-(((hour - 0.3) / 0.07) ** 2)) + np.exp(-(((hour - 0.8) / 0.1) ** 2))
cold = 2 * np.maximum(0.6 - temperature, 0)
y = morning_and_evening + cold + 0.5 * wind**2 + noise * rng.normal(size=n_events)

# A sum of trees, one a column: a step costs the logarithm of the stored points, so all of them may stay.
rule = PassiveAggressive(C=0.02, epsilon=noise)
model = KernelRegressor(Additive(Laplacian(3.0)), rule, Unbounded())
error = np.abs(y - model.prequential(X, y))
print(f"mean absolute error: {error[:1000].mean():.3f} at first, {error[-5000:].mean():.3f} in the end")
print(f"least possible: {noise * np.sqrt(2 / np.pi):.3f}")

# The parts of a prediction sum to it, so each can be read by itself.
swing = np.ptp(model.components(X[:2000]), axis=0)
names = ["hour", "temperature", "wind", "nothing"]
print("swing of each part: " + ", ".join(f"{name} {size:.2f}" for name, size in zip(names, swing, strict=True)))
try:
    AdditiveDisplay.from_estimator(model, names, X=X).figure_.savefig("additive_regressor.png", dpi=100)
    print("picture: additive_regressor.png")
except ImportError:
    print("no picture: pip install 'gristmill[plot]'")
