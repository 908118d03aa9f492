"""
A fleet of sensors
==================

Thirty sensors send readings in one mixed stream. Usual values differ between sensors, so a `KeyedFleet` keeps one detector
per sensor, with its own scaling; it is created at the first reading of the sensor. After event 20,000 one sensor has a
loose contact, and its readings become noisy.
"""

import matplotlib.pyplot as plt
import numpy as np

from gristmill import Gaussian, KeyedFleet, Prepared, ilk_novelty

rng = np.random.default_rng(0)
n_sensors, n_events = 30, 30_000
level, swing = rng.normal(20, 5, n_sensors), rng.uniform(1, 4, n_sensors)
unit = 10.0 ** rng.integers(0, 4, n_sensors)  # some send degrees, some thousandths of them
loose, loose_at = 17, 20_000

sensor = rng.integers(n_sensors, size=n_events)
hour = np.arange(n_events) / 100 % 24
reading = level[sensor] + swing[sensor] * np.sin(hour * np.pi / 12) + 0.3 * rng.normal(size=n_events)
shaken = (sensor == loose) & (np.arange(n_events) >= loose_at)
reading[shaken] += 3 * rng.normal(size=shaken.sum())
X = np.column_stack([reading * unit[sensor], np.sin(hour * np.pi / 12), np.cos(hour * np.pi / 12)])

fleet = KeyedFleet(Prepared(ilk_novelty(Gaussian(2.0), C=0.2, size=60)))
scores = np.concatenate([fleet.prequential(sensor[i : i + 1000], X[i : i + 1000]) for i in range(0, n_events, 1000)])
alarm = (scores < -0.3) & (np.arange(n_events) > 10_000)  # 0: usual, -1: never seen the like

counts = np.bincount(sensor[alarm], minlength=n_sensors)
print(f"{len(fleet)} models, {fleet.memory_bytes_ / len(fleet) / 1000:.1f} kB each")
print(f"alarms after event 10,000: {np.median(counts):.0f} for the median sensor, {counts[loose]} for sensor {loose}")

# %%
# The detector of one sensor is an ordinary learner: it can be inspected, saved, or trained further alone.
member = fleet[loose]
print(member.n_seen_, "readings of sensor", loose, "and", member.n_support_, "points")

# %%
figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
colours = ["C1" if key == loose else "C0" for key in range(n_sensors)]
times = [np.flatnonzero(alarm & (sensor == key)) for key in range(n_sensors)]
axes.eventplot(times, colors=colours, linelengths=0.8)
axes.axvline(loose_at, color="grey", linestyle=":")
axes.set(
    xlabel=f"event (dotted: sensor {loose} gets a loose contact)", ylabel="sensor", title="alarms, one row per sensor"
)
axes.set_xlim(10_000, n_events)
plt.show()
