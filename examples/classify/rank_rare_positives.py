"""
Rare positives: rank, do not classify
=====================================

Two events in a hundred are fraud, and they should be ranked at the top. `PairwiseAUC` compares the score of each event with
those of the other class in a small buffer. It minimises a bound on 1 - AUC, so no threshold has to be chosen, and the share
of positives does not matter.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics import RocCurveDisplay, roc_auc_score

from gristmill import SGD, Logistic, PairwiseAUC, Perceptron, ReservoirX
from gristmill.features import FeatureClassifier

n_events, n_streams, share = 10_000, 5, 0.02


def stream(rng):
    """Fraud has two habits, and both lie close to what honest people do as well."""
    fraud = rng.random(n_events) < share
    X = rng.normal(size=(n_events, 5))
    X[fraud, :2] += rng.choice([-1.5, 1.5], size=fraud.sum())[:, None]
    return X, fraud


# Three learners over the same random features of a Gaussian kernel.
features = RBFSampler(gamma=0.1, n_components=300, random_state=0).fit(np.zeros((1, 5)))
learners = {
    "pairs": lambda seed: PairwiseAUC(features=features, buffer=ReservoirX(200), random_state=seed),
    "Perceptron": lambda _: FeatureClassifier(features, Perceptron()),
    "logistic": lambda _: FeatureClassifier(features, SGD(Logistic(), 1.0, schedule="inv_sqrt", intercept=True)),
}
areas = {name: [] for name in learners}
scores = {}
for seed in range(n_streams):
    X, fraud = stream(np.random.default_rng(seed))
    for name, make in learners.items():
        scores[name] = make(seed).prequential(X, fraud)  # of each event before it is learned
        areas[name].append(roc_auc_score(fraud[1000:], scores[name][1000:]))
for name, values in areas.items():
    error = np.std(values, ddof=1) / np.sqrt(n_streams)
    print(f"{name:11} prequential AUC {np.mean(values):.3f}, standard error {error:.3f}")

# %%
# ROC curves of the last of the five streams. Logistic regression is as good as learning from pairs once its rate and
# schedule are tuned. The Perceptron, which learns only from mistakes, is worse.

figure, axes = plt.subplots(figsize=(5.5, 5), layout="constrained")
for name, values in scores.items():
    RocCurveDisplay.from_predictions(fraud[1000:], values[1000:], name=name, ax=axes)
axes.set(xlabel="share of honest events ranked above", ylabel="share of frauds found")
plt.show()
