"""What the learners of a matrix share."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .. import _core
from .._validate import flag, non_negative, one_of, optional, positive
from ._stream import Array, PairStreamLearner
from .buffers import check_buffer
from .losses import check_margin_loss
from .projections import MATRIX_NORMS


class MatrixStreamLearner(PairStreamLearner):
    """Base of metric and similarity: a matrix in a cone and a ball."""

    _form: ClassVar[str]

    def _settings(self) -> tuple[str, bool, bool]:
        """The form of the loss, whether W is positive semidefinite, whether it starts at the identity."""
        raise NotImplementedError

    def _make_core(self, width: int, seed: int) -> Any:
        name = type(self).__name__
        radius = self._check_range("radius", optional(positive))
        norm = self._check_range("norm", one_of(*MATRIX_NORMS))
        form, psd, identity = self._settings()
        return _core.MatrixLearner(
            form=form,
            loss=check_margin_loss(self.loss, name)._spec(),
            rate=float(self._check_range("rate", positive)),
            reg=float(self._check_range("reg", non_negative)),
            ball=None if radius is None else MATRIX_NORMS[norm](radius)._ball(),
            psd=psd,
            average=bool(self._check_range("average", flag)),
            identity=identity,
            buffer=check_buffer(self.buffer, 50),
            width=width,
            seed=seed,
        )

    def prequential(self, X: Any, y: Any = None) -> Array:
        """Learn from X, y as `partial_fit` does; returns each event's mean loss against the buffer before.

        It is an estimate of the loss over all pairs, from the buffer; 0 for the first event, which has no
        pair.
        """
        return np.asarray(self._learn(X, y, want_scores=True))

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one event."""
        core = self.__dict__.get("_core")
        if core is not None and type(x) is np.ndarray and x.ndim == 1:
            code = self._codes.get(y)
            if code is not None:
                core.learn_one(x, float(code))
                return
        super().learn_one(x, y)

    @property
    def n_projections_(self) -> int:
        """How many events needed the eigenvalues of the matrix."""
        return int(self._fitted().projections)

    def _pairs(self, pairs: Any) -> tuple[Array, Array]:
        array = np.asarray(pairs, dtype=np.float64)
        width = self._fitted().width
        if array.ndim != 3 or array.shape[1:] != (2, width):
            raise ValueError(f"pairs must have the shape (n_pairs, 2, {width}), got {array.shape}")
        return array[:, 0], array[:, 1]
