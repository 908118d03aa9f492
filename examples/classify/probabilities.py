"""
Calibrated probabilities
========================

`predict_proba` is calibrated while the model learns. Of the predictions with a probability of about 0.8, about 80 % should
be right. Here on River's ImageSegments: 2,310 pieces of outdoor pictures, seven classes.
"""

import matplotlib.pyplot as plt
import numpy as np

from gristmill import AutoClassifier
from gristmill.evaluate import ReliabilityDisplay
from river import datasets

rows, labels = zip(*datasets.ImageSegments(), strict=True)
X, y = np.array([list(row.values()) for row in rows]), np.array(labels)
order = np.random.default_rng(0).permutation(len(y))  # the file is sorted by class
X, y = X[order], y[order]

model = AutoClassifier(random_state=0).fit(X[:1200], y[:1200])
proba = model.predict_proba(X[1200:])
sure = proba.max(axis=1) > 0.9
right = model.classes_[proba.argmax(axis=1)] == y[1200:]
print(f"error: {1 - right.mean():.3f}")
print(f"of the {sure.mean():.0%} with a probability above 0.9, right: {right[sure].mean():.3f}")
print(f"of the others, right: {right[~sure].mean():.3f}")

# %%
display = ReliabilityDisplay.from_estimator(model, X[1200:], y[1200:])
display.plot()
print(f"calibration error: {display.calibration_error_:.3f}")
plt.show()
