"""What the learners of a ranking share: scores, a threshold from the buffer, the AUC along the stream."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .._base.predictors import Classifier
from .._base.tasks import CLASSIFICATION, Classification
from .._common.types import Table
from ._base import Array, PairStreamLearner


class Ranker(PairStreamLearner, Classifier):
    """Base of the AUC learners. The core's first class is negative; outward, classes_[1] is positive."""

    learning_task: ClassVar[Classification] = CLASSIFICATION
    _most_classes = 2

    def _sign(self) -> float:
        return self._view(self._started()).sign

    # ---- scores ------------------------------------------------------------------------------------------

    def decision_function(self, X: Table) -> Array:
        """f(x): the higher, the more like classes_[1]. Only the order has a meaning; `threshold_` cuts it."""
        return super().decision_function(X)

    def prequential(self, X: Any, y: Any = None, classes: Any = None) -> Array:
        """Learn from X, y as `partial_fit` does, and return f(x) of each event before it was learned.

        The AUC along the way is `buffer_auc_`: it compares each event with the buffer, not with the whole
        past.
        """
        return np.asarray(self._learn(X, y, want_scores=True, classes=classes))

    def predict(self, X: Table) -> npt.NDArray[np.generic]:
        """The class of each event: f(x) against `threshold_`."""
        return self._at_rest(lambda model: super().predict(X))

    def predict_one(self, x: object) -> Any:
        """The class of one event; None before anything was learned."""
        return None if self._run is None else self._at_rest(lambda model: super().predict_one(x))

    def _cut(self) -> float:
        return self.threshold_

    # ---- estimates from the buffer ----------------------------------------------------------------------------

    def _buffer_scores(self) -> tuple[Array, Array]:
        """f at the buffer's points and their labels, with the outward sign."""
        report = self._report()
        if len(report["labels"]) == 0:
            return np.empty(0), np.empty(0)
        scores, _ = self._engine.score(np.ascontiguousarray(report["points"]))
        return self._sign() * np.ravel(scores), self._sign() * report["labels"]

    @property
    def threshold_(self) -> float:
        """Where `predict` cuts: the cut with the fewest errors on the buffer; 0 while it has one class."""
        run, seen = self._started(), self.n_seen_
        at, cut = run.found.get("cut", (-1, 0.0))
        if at != seen:  # found once for each state of the model
            run.found["cut"] = seen, (cut := self._best_cut())
        return float(cut)

    def _best_cut(self) -> float:
        scores, labels = self._buffer_scores()
        if len(np.unique(labels)) < 2:
            return 0.0
        order = np.argsort(scores, kind="stable")
        scores, labels = scores[order], labels[order]
        # cut k puts the first k below it: right are the negatives among them and the positives after
        right = np.concatenate([[0], np.cumsum(labels < 0)]) + np.concatenate([np.cumsum(labels[::-1] > 0)[::-1], [0]])
        inner = np.concatenate([[True], scores[1:] > scores[:-1], [True]])
        cut = int(np.argmax(np.where(inner, right, -1)))
        if cut in (0, len(scores)):
            return float(scores[0] if cut == 0 else np.nextafter(scores[-1], np.inf))
        return float((scores[cut - 1] + scores[cut]) / 2)

    @property
    def buffer_auc_(self) -> float:
        """AUC along the stream, estimated on the buffer; NaN while only one class has come.

        It is the mean over the events of the class that came less often of the share of the other class's points
        in the buffer that f put in the right order before it learned the event. (Events of the frequent class
        be compared with few points of the rare one, always the same, from which f has learned: they would flatter.)
        """
        return float(self._report()["auc"])

    @property
    def waiting_(self) -> bool:
        """True while only one class has come, so that there is no pair to learn from."""
        return self.n_pairs_ == 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
