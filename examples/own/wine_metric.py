"""
Learn a distance: wines
=======================

scikit-learn's wine data have thirteen columns; twenty columns of noise are added. `PairwiseMetric` learns from pairs of
samples, one after the other, which directions matter. A nearest-neighbour classifier is more accurate with this metric.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from gristmill import PairwiseMetric

X, y = load_wine(return_X_y=True)
rng = np.random.default_rng(0)
X = np.hstack([StandardScaler().fit_transform(X), rng.normal(size=(len(X), 20))]) / 5
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
metric = PairwiseMetric(random_state=0)
for _ in range(20):  # twenty passes over 89 wines
    metric.partial_fit(X_train, y_train)
plain = KNeighborsClassifier(5).fit(X_train, y_train).score(X_test, y_test)
learned = KNeighborsClassifier(5).fit(metric.transform(X_train), y_train).score(metric.transform(X_test), y_test)
print(f"nearest neighbours by the Euclidean distance: {plain:.3f} right")
print(f"nearest neighbours by the learned distance: {learned:.3f} right")

# %%
# How much each column counts in the learned distance. The last twenty are noise.

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
axes.bar(range(X.shape[1]), np.sqrt(np.diag(metric.get_mahalanobis_matrix())), color=["C0"] * 13 + ["C1"] * 20)
axes.set(xlabel="column (orange: noise)", ylabel="weight in the distance")
plt.show()
