"""
A messy CSV file
================

Real files have text columns, missing fields, and words where a number should be. `read` returns tables; rows that cannot
be learned are written to a separate file, with the reason, and the others are learned. The same on the
command line: ``gristmill learn trips.csv --skip-bad --quarantine bad.csv``.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from gristmill import Gaussian, Prepared, passive_aggressive
from gristmill.evaluate import prequential
from gristmill.streams import BadRows, read

rng = np.random.default_rng(0)
lines = ["distance,weather,hour,late"]
for _ in range(8_000):
    distance, weather, hour = rng.uniform(0.5, 12), rng.choice(["sun", "rain", "snow"]), int(rng.integers(24))
    rush = np.exp(-(((hour - 8) / 2) ** 2)) + np.exp(-(((hour - 17) / 2) ** 2))
    minutes = 4 + 2 * distance * {"sun": 1, "rain": 1.2, "snow": 1.8}[weather] + 10 * rush + rng.normal()
    lines.append(f"{distance:.2f},{weather},{hour},{'yes' if minutes > 22 else 'no'}")
for row in rng.choice(np.arange(100, 8_000), 60, replace=False):
    lines[row] = str(rng.choice(["3.1,rain", "n/a,sun,8,no", "4.0,snow,nine,yes", "2.2,sun,7,no,no"]))

folder = Path(tempfile.mkdtemp())
(folder / "trips.csv").write_text("\n".join(lines))
bad = BadRows(folder / "bad.csv")
stream = read(folder / "trips.csv", target="late", raw=True, bad=bad)
model = Prepared(passive_aggressive(Gaussian(0.5), C=0.3, size=400))
result = prequential(model, stream, window=250)
bad.close()
print(f"{result.n_events} events learned, {bad.count} rows put aside, among them:")
for line in (folder / "bad.csv").read_text().splitlines()[:4]:
    print("   ", line.replace(f"{folder}/", ""))
print(f"error {result.metrics['error']:.3f}, over the last 250 events {result.rolling['error']:.3f}")

# %%
# What was wrong with the rows put aside, and the error over all events so far.

reasons = (folder / "bad.csv").read_text()
kinds = {"missing field": ": 2 columns", "extra field": ": 5 columns", "not a number": "is not a number"}
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.barh(list(kinds), [reasons.count(text) for text in kinds.values()], color="C1")
left.set(xlabel="rows put aside")
right.plot([entry["event"] for entry in result.curve], [entry["error"] for entry in result.curve])
right.set(xlabel="event", ylabel="error so far", ylim=(0, None))
plt.show()
