"""
scikit-learn's grid search
==========================

Learners are scikit-learn estimators, and kernels and rules are ordinary parameter values, so a grid can list them. Here:
five-fold cross-validation over the width of the kernel and the step size, on handwritten digits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split

from gristmill import DropSmallest, Gaussian, KernelClassifier, PassiveAggressive

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
widths, steps = [0.0001, 0.0003, 0.001, 0.003, 0.01], [0.03, 0.1, 0.3, 1.0]
search = GridSearchCV(
    KernelClassifier(budget=DropSmallest(300)),
    {"kernel": [Gaussian(gamma) for gamma in widths], "rule": [PassiveAggressive(C) for C in steps]},
)
search.fit(X_train, y_train)
print("best:", search.best_params_["kernel"], search.best_params_["rule"])
print(f"accuracy {search.best_score_:.3f} in cross-validation, {search.score(X_test, y_test):.3f} on new digits")

# %%
# The width matters more than the step size. For streams, `gristmill.evaluate.search` compares candidates in one pass.

accuracy = np.reshape(search.cv_results_["mean_test_score"], (len(widths), len(steps)))
figure, axes = plt.subplots(figsize=(6, 4.2), layout="constrained")
image = axes.imshow(accuracy, cmap="viridis", aspect="auto")
for (row, column), value in np.ndenumerate(accuracy):
    axes.text(column, row, f"{value:.3f}", ha="center", va="center", color="white" if value < 0.9 else "black")
axes.set_xticks(range(len(steps)), steps)
axes.set_yticks(range(len(widths)), widths)
axes.set(xlabel="C of the rule", ylabel="gamma of the kernel")
figure.colorbar(image, label="accuracy")
plt.show()
