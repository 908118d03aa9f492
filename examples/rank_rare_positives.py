"""Rank rare events: two in a hundred are fraud, and what counts is that they stand high in the list."""

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics import roc_auc_score

from gristmill import SGD, FeatureClassifier, Logistic, PairwiseAUC, Perceptron, ReservoirX

n_events, n_streams, share = 10_000, 5, 0.02


def stream(rng):
    """Fraud has two habits, and both lie close to what honest people do as well."""
    fraud = rng.random(n_events) < share
    X = rng.normal(size=(n_events, 5))
    X[fraud, :2] += rng.choice([-1.5, 1.5], size=fraud.sum())[:, None]
    return X, fraud


# Three learners over the same random features. The first ranks each event against 200 of the past; its loss is
# the AUC's own, so that no threshold and no share of positives comes in.
features = RBFSampler(gamma=0.1, n_components=300, random_state=0).fit(np.zeros((1, 5)))
learners = {
    "pairs": lambda seed: PairwiseAUC(features=features, buffer=ReservoirX(200), random_state=seed),
    "Perceptron": lambda _: FeatureClassifier(features, Perceptron()),
    "logistic": lambda _: FeatureClassifier(features, SGD(Logistic(), 1.0, schedule="inv_sqrt", intercept=True)),
}
areas = {name: [] for name in learners}
for seed in range(n_streams):
    X, fraud = stream(np.random.default_rng(seed))
    for name, make in learners.items():
        scores = make(seed).prequential(X, fraud)  # of each event before it is learned
        areas[name].append(roc_auc_score(fraud[1000:], scores[1000:]))
for name, values in areas.items():
    error = np.std(values, ddof=1) / np.sqrt(n_streams)
    print(f"{name:11} prequential AUC {np.mean(values):.3f}, standard error {error:.3f}")
