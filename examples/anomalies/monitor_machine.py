"""
Alarms of a machine, and why
============================

Four sensors, slow wear, eight faults, and no labels. The detector learns the usual state of the machine and raises about one
alarm in two hundred events. `explain` shows the reason: how much higher the score would be if one sensor had its usual
value.
"""

import matplotlib.pyplot as plt
import numpy as np

from gristmill import Density, Gaussian, KernelNovelty, Prepared

rng = np.random.default_rng(7)
n_events, names = 20_000, ["speed", "heat", "vibration", "current"]
speed = 50 + 10 * np.sin(np.arange(n_events) / 400) + rng.normal(size=n_events)
heat = 0.8 * speed + np.linspace(0, 5, n_events) + rng.normal(scale=0.5, size=n_events)  # creeps up with wear
vibration = 0.02 * speed + rng.normal(scale=0.02, size=n_events)
current = 0.1 * speed + rng.normal(scale=0.1, size=n_events)
X = np.column_stack([speed, heat, vibration, current])

# Faults of ten events each: a loose bearing shakes although the speed is as usual.
starts = np.sort(rng.choice(np.arange(2_000, n_events, 20), size=8, replace=False))
faulty = np.isin(np.arange(n_events), (starts[:, None] + np.arange(10)).ravel())
X[faulty, 2] += 0.5

model = Prepared(KernelNovelty(Gaussian(0.5), Density(nu=0.005)))
scores = model.prequential(X)  # of each event, before it is learned; below 0 is an alarm
alarms = scores < 0
later = np.arange(n_events) >= 2_000  # the first events teach it what is usual
print(f"faults noticed: {sum(alarms[start : start + 10].any() for start in starts)} of {len(starts)}")
print(f"false alarms: {(alarms & ~faulty)[later].mean():.2%} of healthy events")
print(f"memory: {model.n_support_} points, {model.memory_bytes_:,} bytes")

# %%
# Why was there an alarm in the last fault? The explanation points to the vibration, which is right.

last = np.flatnonzero(alarms & faulty)[-1]
gain = model.explain(X[last]).columns
print("most unusual sensor:", names[int(np.argmax(gain))])

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", width_ratios=[2, 1])
left.plot(scores, linewidth=0.4, label="score")
left.plot(np.flatnonzero(alarms & later), scores[alarms & later], ".", color="C1", label="alarm")
left.vlines(starts, scores.min(), scores.max(), color="C2", linestyle=":", label="fault begins")
left.set(xlabel="event", ylabel="score (below 0: alarm)")
left.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
right.barh(names, gain, color="C1")
right.set(title=f"why the alarm at event {last}?", xlabel="how much higher the score would be")
plt.show()
