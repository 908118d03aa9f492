"""Sparse rows of very many columns: `AutoClassifier` beside linear models by stochastic gradients.

`python -m benchmarks.sparse_text` generates documents of two topics over 50,000 words. Each topic prefers its own words;
`tilt` is by how much. It prints the prequential error and its seconds (the peer learns in chunks of 200), then the error on
the last quarter after a fit on the rest, and the seconds of the fit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.linear_model import SGDClassifier

from gristmill import AutoClassifier

CHUNK = 200


def topics(
    tilt: float, documents: int = 20_000, words: int = 50_000, length: int = 100, seed: int = 0
) -> tuple[Any, Any]:
    """Counts of words, whose frequencies fall as by Zipf's law, and the topic of each document."""
    rng = np.random.default_rng(seed)
    frequency, lean = 1.0 / (np.arange(words) + 10.0), tilt * rng.normal(size=words)
    y, lengths = rng.integers(0, 2, documents), 5 + rng.poisson(length, documents)
    topic, draw = np.repeat(y, lengths), rng.random(lengths.sum())
    drawn = np.empty(len(draw), dtype=np.int64)
    for which, sign in enumerate((-1, 1)):
        sums = np.cumsum(frequency * np.exp(sign * lean))
        drawn[topic == which] = np.searchsorted(sums / sums[-1], draw[topic == which])
    columns = rng.permutation(words).astype(np.int32)[np.minimum(drawn, words - 1)]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)  # scikit-learn takes 32 bits only
    found = csr_array((np.ones(len(columns)), columns, starts), (documents, words))
    found.sum_duplicates()
    return found, y


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    found = work()
    return found, time.process_time() - began


def prequential(X: Any, y: Any) -> float:
    """Error of SGDClassifier, tested on each chunk before it learns it."""
    model, wrong = SGDClassifier(random_state=0), 0
    for start in range(0, len(y), CHUNK):
        part = slice(start, start + CHUNK)
        wrong += CHUNK // 2 if start == 0 else int((model.predict(X[part]) != y[part]).sum())
        model.partial_fit(X[part], y[part], classes=[0, 1])
    return wrong / len(y)


def main() -> None:
    print(
        f"{'tilt':>5} {'memory':>7} {'error':>7} {'SGD':>7} {'s':>6} {'SGD':>6} {'test':>7} {'SGD':>7} {'s':>6} {'SGD':>6}"
    )
    for tilt in (0.2, 0.35, 0.6):
        X, y = topics(tilt)
        head = len(y) * 3 // 4
        peer, peer_seconds = timed(lambda: prequential(X, y))  # noqa: B023  # called at once
        fitted, fit_seconds = timed(lambda: SGDClassifier(random_state=0).fit(X[:head], y[:head]))  # noqa: B023
        for memory in ("300 kB", "1 MB", "8 MB"):
            model = AutoClassifier(memory)
            scores, seconds = timed(lambda: model.prequential(X, y))  # noqa: B023
            batch, batch_seconds = timed(lambda: AutoClassifier(memory).fit(X[:head], y[:head]))  # noqa: B023
            test = [float((one.predict(X[head:]) != y[head:]).mean()) for one in (batch, fitted)]
            print(
                f"{tilt:5} {memory:>7} {((scores >= 0) != y).mean():7.4f} {peer:7.4f} {seconds:6.2f} {peer_seconds:6.2f} "
                f"{test[0]:7.4f} {test[1]:7.4f} {batch_seconds:6.2f} {fit_seconds:6.2f}"
            )


if __name__ == "__main__":
    main()
