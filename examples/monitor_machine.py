"""Monitor a machine: healthy data at first, slow wear, a few faults, one alarm in a hundred events."""

import numpy as np

from gristmill import Gaussian, Prepared, norma_novelty

rng = np.random.default_rng(7)
n_events = 20_000

# Four sensors that depend on one another (speed drives the rest), while heat creeps up with wear.
speed = 50 + 10 * np.sin(np.arange(n_events) / 400) + rng.normal(size=n_events)
wear = np.linspace(0, 5, n_events)
heat = 0.8 * speed + wear + rng.normal(scale=0.5, size=n_events)
vibration = 0.02 * speed + rng.normal(scale=0.02, size=n_events)
current = 0.1 * speed + rng.normal(scale=0.1, size=n_events)
X = np.column_stack([speed, heat, vibration, current])

# Faults of ten events each: a loose bearing shakes although the speed is as usual.
starts = np.sort(rng.choice(np.arange(2_000, n_events, 20), size=8, replace=False))
faulty = np.isin(np.arange(n_events), (starts[:, None] + np.arange(10)).ravel())
X[faulty, 2] += 0.5

# nu is the share of alarms; the scaling is learned on the way; 200 points are all it ever keeps.
model = Prepared(norma_novelty(Gaussian(0.5), nu=0.01, rate=0.001, size=200))
alarms = model.prequential(X) < 0

later = np.arange(n_events) >= 2_000  # the first events teach it what is usual
caught = sum(alarms[start : start + 10].any() for start in starts)
print(f"faults noticed: {caught} of {len(starts)}")
print(f"false alarms: {(alarms & ~faulty)[later].mean():.2%} of healthy events")
print(f"memory: {model.n_support_} points, {model.memory_bytes_:,} bytes")
