"""Base of the pairwise learners: a core that pairs each sample with a buffer of earlier ones."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .. import persist
from .._base.estimator import Run
from .._base.predictors import LabelMixin
from .._common.labels import LabelTable
from .._common.ranges import Range
from .._common.seeds import seed_of

Array = npt.NDArray[np.float64]


class PairStreamLearner(LabelMixin):
    """Base of the pairwise learners. Its parts are a kind of core and what to make it with: `(kind, named)`."""

    #: how many classes there may be
    _most_classes: int | None = None
    _takes_sparse = False

    def _check_range(self, name: str, range_: Range) -> Any:
        value = getattr(self, name)
        range_.check(type(self).__name__, name, value)
        return value

    def _make_core(self, parts: tuple[Any, dict[str, Any]], width: int, seed: int) -> Any:
        kind, named = parts
        return kind(**named, width=width, seed=seed)

    def _begin(self, run: Run, X: Any) -> Any:
        width = 0 if isinstance(X, list) else X.shape[1]
        return self._make_core(run.parts, width, seed_of(getattr(self, "random_state", None)))

    def _targets(self, run: Run, y: Any, count: int, classes: Any) -> tuple[LabelTable, Any, int]:
        labels, numbers, known = super()._targets(run, y, count, classes)
        if self._most_classes is not None and len(labels) > self._most_classes:
            raise ValueError(
                f"{type(self).__name__} is for two classes. Only binary classification is supported: "
                f"y holds {len(labels)} classes, {list(labels.names)!r}; learn one against the rest instead"
            )
        return labels, numbers, known

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Go on learning from X, y, in order; cutting a stream into chunks in any way gives the same model.

        `classes`, all labels that will come, is optional: new ones may arrive at any time.
        """
        self._learn(X, y, classes=classes)
        return self

    # ---- fitted attributes -------------------------------------------------------------------------------

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

    def _parts_from_file(self, arrays: dict[str, Any], fitted: dict[str, Any]) -> Any:
        self._check_width(arrays, int(arrays["width"][0]))
        return self._parts()

    def _check_width(self, arrays: dict[str, Any], width: int) -> None:
        """Nothing of the size that a file states is made unless its numbers are as many."""
        if not 1 <= width <= 10**7:
            raise persist.ModelFileError(f"it states {width!r} features")
        if width != self.n_features_in_ and getattr(self, "features", None) is None:
            raise persist.ModelFileError("its points do not have the number of features it states")
        size = getattr(getattr(self, "buffer", None), "size", getattr(self, "size", 0))
        persist.justify(8.0 * max(width, size), arrays, "buffer and features")

    def _restored(self, parts: Any, state: dict[str, Any]) -> Any:
        core = self._make_core(parts, int(state["width"][0]), 0)
        core.restore(state)
        return core

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
