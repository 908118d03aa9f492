"""Base of the pairwise learners: a core that pairs each sample with a buffer of earlier ones."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from .. import persist
from .._base.estimator import Run, StreamEstimator
from .._base.predictors import classes_of
from .._base.tasks import CLASSIFICATION, Classification, Encoded, Task
from .._common.labels import LabelView
from .._common.ranges import Range
from .._common.seeds import seed_of
from .._common.types import Fields, Fitted, Labels, Table
from ..persist.saved_state import number_of

Array = npt.NDArray[np.float64]


class LossTask(Classification):
    """Labels are classes; what is shown of a sample is its mean loss over the buffer."""

    def shown(self, scores: Array, view: LabelView) -> Array:
        return np.ravel(scores)


class PairStreamLearner(StreamEstimator):
    """Base of the pairwise learners. Its parts are a kind of core and what to make it with: `(kind, named)`."""

    learning_task: ClassVar[Task] = CLASSIFICATION
    #: how many classes there may be
    _most_classes: int | None = None
    _takes_sparse = False

    def _check_range(self, name: str, range_: Range) -> Any:
        value = getattr(self, name)
        range_.check(type(self).__name__, name, value)
        return value

    def new_core(self, parts: tuple[Any, dict[str, Any]], width: int, seed: int) -> Any:
        kind, named = parts
        return kind(**named, width=width, seed=seed)

    def begin_core(self, run: Run, X: Any) -> Any:
        width = 0 if isinstance(X, list) else X.shape[1]
        return self.new_core(run.parts, width, seed_of(getattr(self, "random_state", None)))

    def _targets(self, run: Run, y: Labels, count: int, classes: Labels) -> Encoded:
        found = super()._targets(run, y, count, classes)
        if self._most_classes is not None and len(found.table) > self._most_classes:
            raise ValueError(
                f"{type(self).__name__} is for two classes. Only binary classification is supported: "
                f"y holds {len(found.table)} classes, {list(found.table.names)!r}; learn one against the rest instead"
            )
        return found

    def partial_fit(self, X: Table, y: Labels = None, classes: Labels = None) -> Self:
        """Go on learning from X, y, in order; cutting a stream into chunks in any way gives the same model.

        `classes`, all labels that will come, is optional: new ones may arrive at any time.
        """
        self._learn(X, y, classes=classes)
        return self

    # ---- fitted attributes -------------------------------------------------------------------------------

    @property
    def classes_(self) -> npt.NDArray[np.generic]:
        """The classes seen so far and those of `classes=`, sorted."""
        return classes_of(self)

    def _report(self) -> dict[str, Any]:
        report: dict[str, Any] = self._engine.report()
        return report

    @property
    def n_seen_(self) -> int:
        """How many events have come."""
        return int(self._report()["seen"])

    @property
    def n_pairs_(self) -> int:
        """Number of informative pairs so far; 0 while there is only one class."""
        return int(self._report()["pairs"])

    @property
    def buffer_ids_(self) -> npt.NDArray[np.int64]:
        """Place in the stream, from 0, of each event in the buffer; an event may be there more than once."""
        ids: npt.NDArray[np.int64] = self._report()["ids"]
        return ids

    # ---- saving ------------------------------------------------------------------------------------------

    def restored_parts(self, arrays: Fields, fitted: Fitted) -> Any:
        self._check_width(arrays, int(arrays["width"][0]))
        return self.checked_parts()

    def _check_width(self, arrays: Fields, width: int) -> None:
        """Nothing of the size that a file states is made unless its numbers are as many."""
        if not 1 <= width <= 10**7:
            raise persist.ModelFileError(f"it states {width!r} features")
        if width != self.n_features_in_ and getattr(self, "features", None) is None:
            raise persist.ModelFileError("its points do not have the number of features it states")
        size = getattr(getattr(self, "buffer", None), "size", getattr(self, "size", 0))
        persist.justify(8.0 * max(width, size), arrays, "buffer and features")

    def restored_core(self, parts: Any, state: dict[str, object]) -> Any:
        core = self.new_core(parts, number_of(state, "width"), 0)
        core.restore(state)
        return core

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
