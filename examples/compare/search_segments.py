"""
Tune a learner in one pass over the stream
==========================================

`gristmill.evaluate.search` runs all candidates of a grid along the stream, and drops the worst early. The stream is River's
ImageSegments in random order, behind an online scaler.
"""

import matplotlib.pyplot as plt
import numpy as np

from gristmill import Gaussian, Laplacian, Prepared, passive_aggressive
from gristmill.evaluate import prequential, search
from gristmill.streams import from_arrays
from river import datasets

rows, labels = zip(*datasets.ImageSegments(), strict=True)
order = np.random.default_rng(0).permutation(len(labels))
X, y = np.array([list(row.values()) for row in rows])[order], np.array(labels)[order]

found = search(
    lambda kernel, gamma, C: Prepared(passive_aggressive(kernel(gamma), C=C, size=300)),
    {"kernel": [Gaussian, Laplacian], "gamma": [0.02, 0.05, 0.2], "C": [0.1, 1.0]},
    from_arrays(X, y),
)
rows = found.rows()
best = found.best_params
print(f"best of {len(rows)}: {best['kernel'].__name__}({best['gamma']}), C = {best['C']}")
result = prequential(Prepared(passive_aggressive(best["kernel"](best["gamma"]), C=best["C"], size=300)), (X, y))
print(f"its error: {result.metrics['error']:.3f}")

# %%
figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
axes.plot([entry["event"] for entry in result.curve], [entry["rolling_error"] for entry in result.curve], "o-")
axes.set(xlabel="samples", ylabel="error of the best candidate", ylim=(0, None))
plt.show()
