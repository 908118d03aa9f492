"""
Follow a slowly moving number: opinion polls
============================================

River's TrumpApproval has five polls for each of 1,001 days, and an average of them. The learner predicts
the average from the polls of the day. A forecast should beat the trivial ones: yesterday's average,
and the mean of the polls.
"""

import matplotlib.pyplot as plt
import numpy as np

from gristmill import AutoRegressor, Gaussian, Prepared, passive_aggressive_regressor
from river import datasets

rows, targets = zip(*datasets.TrumpApproval(), strict=True)
names = ["gallup", "ipsos", "morning_consult", "rasmussen", "you_gov"]
X, y = np.array([[row[name] for name in names] for row in rows]), np.array(targets)

forecasts = {
    "yesterday": np.concatenate([y[:1], y[:-1]]),
    "mean of the polls": X.mean(axis=1),
    "one learner": Prepared(passive_aggressive_regressor(Gaussian(0.1), epsilon=0.05)).prequential(X, y),
    "AutoRegressor": AutoRegressor(random_state=0).prequential(X, y),
}
late = slice(100, None)
for name, values in forecasts.items():
    print(f"{name:18} mean absolute error: {np.abs(values - y)[late].mean():.3f}")

# %%
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for name, values in forecasts.items():
    error = np.abs(values - y)[late]
    axes.plot(np.convolve(error, np.ones(50) / 50, "valid"), label=name)
axes.set(xlabel="day", ylabel="absolute error, mean of 50 days", ylim=(0, None))
axes.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
plt.show()
