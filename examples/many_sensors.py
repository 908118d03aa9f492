"""
One model for each sensor
=========================

Thirty sensors send readings in one mixed stream. What is usual differs from one to the next, so each has a learner of
its own, made when the sensor is first heard of: a dict is all it takes. Then one sensor gets a loose contact, and its
readings jump.
"""

import matplotlib.pyplot as plt
import numpy as np

from gristmill import Gaussian, ilk_novelty

rng = np.random.default_rng(0)
n_sensors, n_events = 30, 30_000
level, swing = rng.normal(20, 5, n_sensors), rng.uniform(1, 4, n_sensors)
loose, loose_at = 17, 20_000

models = {}
alarms = {key: [] for key in range(n_sensors)}
for event in range(n_events):
    key = int(rng.integers(n_sensors))
    hour = event / 100 % 24
    reading = level[key] + swing[key] * np.sin(hour * np.pi / 12) + 0.3 * rng.normal()
    if key == loose and event >= loose_at:
        reading += 3 * rng.normal()
    if key not in models:
        models[key] = ilk_novelty(Gaussian(2.0), C=0.2, size=60)
    x = np.array([(reading - 20) / 2, np.sin(hour * np.pi / 12), np.cos(hour * np.pi / 12)])
    if models[key].score_one(x) < -0.3 and event > 10_000:  # 0: usual, -1: never seen the like
        alarms[key].append(event)
    models[key].learn_one(x)

total = sum(model.memory_bytes_ for model in models.values())
usual = np.median([len(times) for times in alarms.values()])
print(f"{len(models)} models, {total / len(models) / 1000:.1f} kB each")
print(f"alarms after event 10,000: {usual:.0f} for the median sensor, {len(alarms[loose])} for sensor {loose}")

# %%
figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
colours = ["C1" if key == loose else "C0" for key in range(n_sensors)]
axes.eventplot([alarms[key] for key in range(n_sensors)], colors=colours, linelengths=0.8)
axes.axvline(loose_at, color="grey", linestyle=":")
axes.set(
    xlabel=f"event (dotted: sensor {loose} gets a loose contact)", ylabel="sensor", title="alarms, one row a sensor"
)
axes.set_xlim(10_000, n_events)
plt.show()
