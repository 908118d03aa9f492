"""
Columns of words: solar flares
==============================

River's SolarFlare describes 1,066 active regions of the sun by categories and small numbers. Will there be a flare of class
C within a day? `Prepared` encodes the words while it learns. Only one region in six has a flare, so rank them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import RocCurveDisplay, roc_auc_score

from gristmill import AutoClassifier, Gaussian, Prepared, passive_aggressive
from river import datasets

rows, flares = zip(*datasets.SolarFlare(), strict=True)
rows, y = list(rows), np.array([flare["c-class-flares"] > 0 for flare in flares])
model = Prepared(AutoClassifier(random_state=0))
scores = {"AutoClassifier": model.prequential(rows, y)}
scores["balanced classes"] = Prepared(
    passive_aggressive(Gaussian(0.1), C=0.1, size=200).set_params(class_weight="balanced")
).prequential(rows, y)
print(model.table_)
print(f"share of regions with a flare: {y.mean():.2f}")
figure, axes = plt.subplots(figsize=(5.5, 5), layout="constrained")
for name, values in scores.items():
    print(f"{name:16} area under the ROC curve: {roc_auc_score(y[200:], values[200:]):.3f}")
    RocCurveDisplay.from_predictions(y[200:], values[200:], name=name, ax=axes)
plt.show()
