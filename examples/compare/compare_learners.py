"""
Several learners on one stream: will the price rise?
====================================================

A simulated market of electricity with one event per half-hour. Demand depends on the hour and the weekday, the price
depends on demand, and half-way a new supplier changes this dependence. As in the well-known data set Elec2, the question is
whether the price is above its mean over the last day. A fair comparison includes the trivial prediction: the previous label.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import SGDClassifier

from gristmill import DropOldest, Gaussian, KernelClassifier, PassiveAggressive, norma_classifier, projectron_pp
from gristmill.evaluate import compare
from gristmill.streams import from_arrays

rng = np.random.default_rng(0)
n = 20_000
hour, weekday = np.arange(n) % 48 / 2, np.arange(n) // 48 % 7
demand = 1 + 0.3 * np.sin((hour - 9) * np.pi / 12) - 0.15 * (weekday >= 5) + 0.05 * rng.normal(size=n)
transfer = np.convolve(rng.normal(size=n + 47), np.ones(48) / 7, "valid")
steep = np.where(np.arange(n) < n // 2, 3.0, -2.0)  # the new supplier has its cheapest hours when demand is high
price = np.abs(demand - 0.9) * steep + 0.15 * transfer + 0.05 * rng.normal(size=n)
mean_of_last_day = np.convolve(np.concatenate([np.zeros(48), price]), np.ones(48) / 48, "valid")[:n]
X = np.column_stack([hour / 6 - 2, weekday / 3 - 1, 4 * demand - 4, transfer])  # all of about the same size
y = price > mean_of_last_day
stream = replace(from_arrays(X, y), classes=(False, True))  # scikit-learn wants to know the classes beforehand

kernel = Gaussian(1.0)
results = compare(
    {
        "PA-I, newest 500": KernelClassifier(kernel, PassiveAggressive(C=0.1), DropOldest(500)),
        "NORMA, last 2,000 events": norma_classifier(kernel, rate=0.2, reg=0.002, window=2000),
        "Projectron++": projectron_pp(kernel, tolerance=0.3),
        "linear (scikit-learn)": SGDClassifier(loss="log_loss", random_state=0),
    },
    stream,
)
for result in results:
    print(f"{result.name:25} error {result.metrics['error']:.3f}, stored {result.stored}")
print(f"{'the last label again':25} error {(y[1:] != y[:-1]).mean():.3f}")

# %%
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for result in results:
    events = [entry["event"] for entry in result.curve]
    axes.plot(events, [entry["rolling_error"] for entry in result.curve], label=result.name)
axes.axvline(n // 2, color="grey", linestyle=":")
axes.set(xlabel="event (dotted: the new supplier)", ylabel="error over the last 1,000 events", ylim=(0, None))
axes.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
plt.show()
