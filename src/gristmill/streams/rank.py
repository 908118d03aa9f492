"""Columns by the order of their values: the scaling behind `Prepared(scale="rank")`.

Each value becomes the normal score of its rank among a sample of recent events. The maps are renewed at positions of the
stream; points that a learner stored before follow to the present maps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from .. import _core
from .._common.types import Fields, FileFields, Fitted
from .scaling import StreamScaler

Floats = npt.NDArray[np.float64]


class RankScaler(StreamScaler):
    """Normal scores of ranks; what `Prepared` puts between its table and its learner.

    passages: rows of the last chunk before which maps were renewed, each with the scaling as it was right after; its
    `follow` turns points scaled before into points scaled after.
    """

    is_affine = False

    def __init__(self, warmup: int | None = None) -> None:
        super().__init__("rank", warmup)
        self.passages: dict[int, Any] = {}

    def _fresh(self) -> Any:
        if self.warmup is not None and self.warmup < 1:
            raise ValueError(f"warmup must be at least 1 or None, got {self.warmup!r}")
        return _core.RankScaling(self.warmup)

    def learn_checked(self, X: Floats) -> Floats:
        X = np.ascontiguousarray(X)
        core, at, self.passages = self._scaling, 0, {}
        scaled = np.empty_like(X)
        while at < len(X):
            quiet = min(int(core.due) - 1, len(X) - at)  # events before the one at which maps may be renewed
            if quiet:
                scaled[at : at + quiet] = core.learn(X[at : at + quiet])
                at += quiet
                continue
            before = core.renewals
            scaled[at : at + 1] = core.learn(X[at : at + 1])
            if core.renewals > before:
                self.passages[at] = core.copy()
            at += 1
        return scaled

    def learn_sparse(self, X: Any) -> Any:
        raise TypeError(
            'Prepared: scale="rank" orders the values of every column, and sparse rows name only those that are not 0; '
            'use scale="standard", which divides sparse columns by their root mean square, or dense rows'
        )

    def scale_sparse(self, X: Any) -> Any:
        return self.learn_sparse(X)

    def column_slopes(self) -> Floats:
        raise TypeError('Prepared: with scale="rank" a slope depends on the row; use scale="standard" for gradient')

    def affine_map(self) -> tuple[Floats, Floats]:
        raise ValueError('merge: scale="rank" is no straight line')

    @staticmethod
    def merged_of(scalers: list[Any], shares: object = None) -> Any:
        """One scaling of all: ranks among a sample of the samples, as many rows of each as it has seen events."""
        found = RankScaler(scalers[0].warmup)
        found._scaling = _core.RankScaling.merged([one._scaling for one in scalers])
        found.n_features_in_ = found._scaling.width
        return found

    def means_fields(self) -> tuple[Floats, Floats]:
        middle = np.asarray(self._scaling.values(np.zeros((1, self._scaling.width))))[0]
        return middle, np.zeros(len(middle))

    def unscaled_values(self, points: Floats) -> Floats:
        return np.asarray(self._scaling.values(points))

    def _moments(self) -> StreamScaler:
        """Moments of the sample: a scaling for a race whose memory is too small for ranks."""
        found = StreamScaler("standard", self.warmup)
        found.learn_transform(self._scaling.sample)
        return found

    def maps(self) -> list[tuple[Floats, Floats]]:
        """The knots of each column's map in ascending order, and the scores that they are scaled to."""
        check_is_fitted(self)
        found: list[tuple[Floats, Floats]] = self._scaling.maps()
        return found

    @property
    def memory_bytes(self) -> int:
        """Bytes of what was found."""
        return 0 if self._scaling is None else int(self._scaling.bytes)

    def saved_fields(self) -> FileFields:
        check_is_fitted(self)
        found = self._scaling.copy()
        return {f"rank_{name}": array for name, array in found.state().items()}, {"n_seen": int(found.seen)}

    def restore_fields(self, arrays: Fields, fitted: Fitted) -> None:
        state = {name.removeprefix("rank_"): array for name, array in arrays.items() if name.startswith("rank_")}
        scaling = self._fresh()
        scaling.restore(state)
        if scaling.seen != fitted["n_seen"]:
            raise ValueError("its scaling is damaged")
        self._scaling, self.n_features_in_ = scaling, scaling.width

    def __getstate__(self) -> dict[str, object]:
        state = dict(self.__dict__)
        scaling = state.pop("_scaling", None)
        return {**state, "passages": {}, "_scaling": None if scaling is None else scaling.copy().state()}

    def __setstate__(self, state: Fields) -> None:
        packed = state.pop("_scaling", None)
        self.__dict__.update(state)
        if packed is not None:
            self._scaling = self._fresh()
            self._scaling.restore(packed)


def united(scalers: list[StreamScaler], by_rank: bool | None = None) -> StreamScaler:
    """One scaling of several, by rank where all are or `by_rank` says so; moments take the place of ranks beside moments."""
    ranks = [one for one in scalers if isinstance(one, RankScaler)]
    if ranks and (by_rank or (by_rank is None and len(ranks) == len(scalers))):
        found: StreamScaler = RankScaler.merged_of(ranks)
        return found
    return StreamScaler.merged_of([one._moments() if isinstance(one, RankScaler) else one for one in scalers])
