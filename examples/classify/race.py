"""
A race of experts: no settings, and a change half-way
=====================================================

A simulated market of electricity with one event per half-hour, similar to the well-known data set Elec2: is the price above
its mean over the last day? Half-way a new supplier reverses the relation between demand and price. `AutoClassifier` gets
the raw columns, in megawatts and hours, and chooses kernels, widths, rates and forgetting by itself.
"""

import matplotlib.pyplot as plt
import numpy as np

from gristmill import AutoClassifier
from gristmill.evaluate import RaceDisplay

rng = np.random.default_rng(0)
n = 8000
hour, weekday = np.arange(n) % 48 / 2, np.arange(n) // 48 % 7
demand = 900 + 250 * np.sin((hour - 9) * np.pi / 12) - 120 * (weekday >= 5) + 40 * rng.normal(size=n)
transfer = np.convolve(rng.normal(size=n + 47), np.ones(48), "valid")
steep = np.where(np.arange(n) < n // 2, 3.0, -3.0)  # the new supplier is cheapest when demand is high
price = np.abs(demand - 850) / 800 * steep + 0.02 * transfer + 0.05 * rng.normal(size=n)
mean_of_last_day = np.convolve(np.concatenate([np.zeros(48), price]), np.ones(48) / 48, "valid")[:n]
X = np.column_stack([hour, weekday, demand, transfer])
y = price > mean_of_last_day

model = AutoClassifier(memory="1 MB", random_state=0)
wrong = (model.prequential(X, y) >= 0) != y  # each event is predicted before it is learned
for part, when in (
    (slice(1000, n // 2), "before"),
    (slice(n // 2, n // 2 + 1000), "just after"),
    (slice(-1000, None), "at the end"),
):
    print(f"{when:10} error {wrong[part].mean():.3f}, the last label again {(y[1:] != y[:-1])[part].mean():.3f}")
print(f"{model.memory_bytes_ / 1e6:.2f} MB")

# %%
# The expert with the largest weight at the end:
print(model.leader_, f"\nweight {model.weights_.max():.2f}")

# %%
# The weights of the experts over the stream, and their mean errors. The dotted vertical line marks the change.
display = RaceDisplay.from_estimator(model).plot()
for axes in display.axes_:
    axes.axvline(n // 2, color="black", linestyle=":")
plt.show()
