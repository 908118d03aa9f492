"""What the learners of a matrix share."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .. import _core, persist
from .._common.ranges import flag, non_negative, one_of, optional, positive
from .._common.types import Fields, Table
from ._base import Array, LossTask, PairStreamLearner
from .buffers import check_buffer
from .losses import check_margin_loss
from .projections import MATRIX_NORMS


class MatrixStreamLearner(PairStreamLearner):
    """Base of metric and similarity: a matrix in a cone and a ball."""

    learning_task = LossTask()
    _form: ClassVar[str]

    def _settings(self) -> tuple[str, bool, bool]:
        """The form of the loss, whether W is positive semidefinite, whether it starts at the identity."""
        raise NotImplementedError

    def checked_parts(self) -> Any:
        name = type(self).__name__
        radius = self._check_range("radius", optional(positive))
        norm = self._check_range("norm", one_of(*MATRIX_NORMS))
        form, psd, identity = self._settings()
        return _core.MatrixLearner, dict(
            form=form,
            loss=check_margin_loss(self.loss, name).core_spec(),
            rate=float(self._check_range("rate", positive)),
            reg=float(self._check_range("reg", non_negative)),
            ball=None if radius is None else MATRIX_NORMS[norm](radius).core_ball(),
            psd=psd,
            average=bool(self._check_range("average", flag)),
            identity=identity,
            buffer=check_buffer(self.buffer, 50),
        )

    def prequential(self, X: Any, y: Any = None, classes: Any = None) -> Array:
        """Learn from X, y as `partial_fit` does; returns each event's mean loss against the buffer before.

        It is an estimate of the loss over all pairs, from the buffer; 0 for the first event, which has no
        pair.
        """
        return np.asarray(self._learn(X, y, want_scores=True, classes=classes))

    def _check_width(self, arrays: Fields, width: int) -> None:
        super()._check_width(arrays, width)
        persist.justify(8.0 * width * width, arrays, "features")

    @property
    def n_projections_(self) -> int:
        """How many events needed the eigenvalues of the matrix."""
        return int(self._engine.projections)

    def _table(self, X: Table) -> Array:
        return np.asarray(self._rows(self._engine, self._read(X, first=False)))

    def _pairs(self, pairs: object) -> tuple[Array, Array]:
        array = np.asarray(pairs, dtype=np.float64)
        width = self._engine.width
        if array.ndim != 3 or array.shape[1:] != (2, width):
            raise ValueError(f"pairs must have the shape (n_pairs, 2, {width}), got {array.shape}")
        return array[:, 0], array[:, 1]
