"""
Anomalies of a space shuttle's sensors
======================================

River's Shuttle has nine sensor values for each of 49,097 moments; 7 % of them are unusual. The first 5,000 moments are the
stream here. The detector gets no labels. It scores each moment before it learns it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import RocCurveDisplay, roc_auc_score

from gristmill import AutoNovelty, KernelNovelty, Prepared
from river import datasets

rows, labels = zip(*datasets.Shuttle().take(5000), strict=True)
X, odd = np.array([list(row.values()) for row in rows], dtype=float), np.array(labels) == 1
print(f"{odd.mean():.1%} of the moments are unusual")
detectors = {"AutoNovelty": AutoNovelty(random_state=0), "KernelNovelty": Prepared(KernelNovelty())}
figure, axes = plt.subplots(figsize=(5.5, 5), layout="constrained")
for name, detector in detectors.items():
    scores = detector.prequential(X)
    late = slice(500, None)
    print(f"{name:14} area under the ROC curve: {roc_auc_score(odd[late], -scores[late]):.3f}")
    RocCurveDisplay.from_predictions(odd[late], -scores[late], name=name, ax=axes)
axes.set(xlabel="usual moments above the threshold", ylabel="unusual moments found")
plt.show()
