"""
How many random features?
=========================

A random feature map approximates a polynomial kernel: the more features, the closer the inner products come to the values
of the kernel, and the closer a linear learner comes to the kernel learner. No points are stored.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from gristmill import KernelClassifier, PassiveAggressive, Polynomial, RandomMaclaurin, Unbounded
from gristmill.features import FeatureClassifier

X, y = load_digits(return_X_y=True)
X = X / np.linalg.norm(X, axis=1, keepdims=True)
kernel = Polynomial(3, gamma=1.0, coef0=0.1)
exact = kernel(X[:300])
counts = [30, 100, 300, 1000, 3000]

value_errors, mistakes = [], []
for count in counts:
    features = RandomMaclaurin(kernel, count, random_state=0)
    Z = features.fit_transform(X[:300])
    value_errors.append(np.abs(Z @ Z.T - exact).mean())
    scores = FeatureClassifier(RandomMaclaurin(kernel, count, random_state=0), PassiveAggressive()).prequential(X, y)
    mistakes.append((scores.argmax(axis=1) != y).mean())
    print(f"{count:5} features: kernel values off by {value_errors[-1]:.3f}, {mistakes[-1]:.3f} wrong")
warnings.filterwarnings("ignore", "KernelClassifier: column")  # rows of unit length, as the map wants them
with_points = KernelClassifier(kernel, PassiveAggressive(), Unbounded())
limit = (with_points.prequential(X, y).argmax(axis=1) != y).mean()
print(f"the kernel itself, {with_points.n_support_} points: {limit:.3f} wrong")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.loglog(counts, value_errors, "o-")
left.set(xlabel="features", ylabel="mean error of a kernel value")
right.semilogx(counts, mistakes, "o-", label="random features")
right.axhline(limit, color="k", linestyle=":", label="the kernel itself")
right.set(xlabel="features", ylabel="error on the digits", ylim=(0, None))
right.legend()
plt.show()
