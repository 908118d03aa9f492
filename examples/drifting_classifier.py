"""A classifier on a stream whose rule changes: what each way to forget costs and buys."""

from gristmill import (
    DropOldest,
    Gaussian,
    KernelClassifier,
    PassiveAggressive,
    Unbounded,
    norma_classifier,
)
from gristmill.evaluate import compare
from gristmill.streams import rotating_hyperplane

# Points of a cube on either side of a plane that turns once round: half-way all labels are reversed.
stream = rotating_hyperplane(n_events=20_000, n_features=5, noise=0.05, random_state=1)
kernel = Gaussian(1.0)

results = compare(
    {
        "PA-I, keeps everything": KernelClassifier(kernel, PassiveAggressive(0.1), Unbounded()),
        "PA-I, 500 newest": KernelClassifier(kernel, PassiveAggressive(0.1), DropOldest(500)),
        "NORMA, last 1000 steps": norma_classifier(kernel, rate=0.1, reg=0.01, window=1000),
    },
    stream,
)
print(results)
print(f"best possible error: {stream.bayes_error:.4f}")
