"""
Merge models from four places, and make one smaller
===================================================

Four clinics learn from their own digits and send models instead of digits. `merge` makes one model of the four,
`compress` one with fewer support vectors. The digits are scikit-learn's.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from gristmill import Gaussian, compress, merge, passive_aggressive

X, y = load_digits(return_X_y=True)
X_test, y_test = X[1200:], y[1200:]
clinics = [passive_aggressive(Gaussian(0.0015), size=200).fit(X[i:1200:4], y[i:1200:4]) for i in range(4)]
merged = merge(clinics, size=400)
accuracy = {f"clinic {number}": model.score(X_test, y_test) for number, model in enumerate(clinics, 1)}
accuracy["merged"] = merged.score(X_test, y_test)
for size in (200, 100, 50):
    small, error = compress(merged, size)
    accuracy[f"compressed to {size}"] = small.score(X_test, y_test)
    print(f"{size} support vectors: {error:.2f} of the norm lost")
for name, value in accuracy.items():
    print(f"{name:17} accuracy: {value:.3f}")

# %%
figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
axes.barh(list(accuracy), list(accuracy.values()), color=["C0"] * 4 + ["C1"] + ["C2"] * 3)
axes.invert_yaxis()
axes.set(xlabel="accuracy on new digits", xlim=(0.7, 1))
plt.show()
