"""A keyed fleet for targets that lie elsewhere for each key: a level a key, and what is left of the targets is learned."""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np

from ._keys import read_keys
from ._levels import Levels, Told
from ._targets import Targets
from .keyed import KeyedFleet
from .learners import KernelRegressor


class CentredFleet(KeyedFleet):
    """A `KeyedFleet` of regressors whose targets are centred per key.

    Houses, engines and shops each have a level of their own, and they react alike. The level of a key is the running
    mean of its targets, drawn to that of all keys as far as keys are alike and its events are few (empirical Bayes);
    the `prior`, and then the key's own learner, learn what is left. So a prior that learns from all keys does not
    follow the level of whoever came last, and a target far from 0 need not be learned at all. The first event of a key
    settles its level and is not learned otherwise; before it the level is the mean of all targets.

    Parameters
    ----------
    prototype : KernelRegressor, or one in Prepared(..., target=None)
    max_keys : int, optional
        As for `KeyedFleet`. Without `spill`, the level of a key without events is kept for 16 * max_keys events; with
        it, levels stay in memory, some 280 bytes each.
    ttl, spill : as for `KeyedFleet`
        A key that starts again has no level either.
    prior : learner, optional
        One learner of the centred targets of all keys; it must take `sample_weight`. One that settles, such as
        `Prepared(KernelRegressor(rule=SGD(Squared(), 1.0, schedule="inv_sqrt"), average=True))`, is better than one
        that follows the newest events.

    References
    ----------
    H. Robbins, An Empirical Bayes Approach to Statistics, Proc. Third Berkeley Symposium, 1956.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import CentredFleet, DropSmallest, Gaussian, KernelRegressor
    >>> rng = np.random.default_rng(0)
    >>> shops, X = rng.integers(0, 40, size=4000), rng.normal(size=(4000, 1))
    >>> y = 1000 * shops + X[:, 0]
    >>> fleet = CentredFleet(KernelRegressor(Gaussian(0.5), budget=DropSmallest(20)))
    >>> said = fleet.prequential(shops, X, y)
    >>> round(float(np.abs(said - y)[2000:].mean()), 2)
    0.14
    """

    _levels: Levels | None = None

    def _parts(self) -> Any:
        parts = super()._parts()
        if not isinstance(self._model, KernelRegressor):
            raise ValueError(
                f"CentredFleet centres numbers: its prototype must be a KernelRegressor, got {self._model!r}"
            )
        if self.prior is not None and "sample_weight" not in inspect.signature(self.prior.prequential).parameters:
            raise ValueError(
                f"prior must take sample_weight in prequential, for a key's first event has no weight; got {self.prior!r}"
            )
        return parts

    # ---- learning ---------------------------------------------------------------------------------------------------

    def partial_fit(
        self, keys: Any, X: Any, y: Any = None, sample_weight: Any = None, time: Any = None, classes: Any = None
    ) -> Self:
        """Learn events in order of arrival; the parameters are those of `KeyedFleet.partial_fit`."""
        levels, told = self._told(keys, y, sample_weight, time)
        super().partial_fit(keys, X, *self._centred(y, told, sample_weight), time=time)
        self._kept(levels, told)
        return self

    def prequential(
        self, keys: Any, X: Any, y: Any = None, sample_weight: Any = None, time: Any = None, classes: Any = None
    ) -> Any:
        """Learn as `partial_fit` does, and return what was predicted for each event before."""
        levels, told = self._told(keys, y, sample_weight, time)
        said = super().prequential(keys, X, *self._centred(y, told, sample_weight), time=time)
        self._kept(levels, told)
        return told.before + said

    def learn_one(self, key: Any, x: Any, y: Any = None, time: Any = None) -> None:
        """Learn one event of one key."""
        when = None if time is None else [time]
        self.partial_fit([key], self._row(x), None if y is None else [y], time=when)

    def _told(self, keys: Any, y: Any, weights: Any, time: Any) -> tuple[Levels, Told]:
        """What the events make of the levels, once they are learned."""
        levels = self._levels or Levels(self.ttl, self.max_keys if self.spill is None else None)
        rows = _listed(read_keys(keys, self._kind)[1])
        if y is None:
            raise ValueError("CentredFleet requires y to be passed, but y is None")
        targets = Targets().read(type(self).__name__, y.to_numpy() if hasattr(y, "to_numpy") else y, len(rows))
        if targets.ndim > 1:
            raise ValueError(f"y must have one target an event, got {targets.shape[1]}")
        times = self._times(time, len(rows))
        each = self._weights(weights, (len(rows),))
        return levels, levels.tell(rows, targets, each, times)

    def _centred(self, y: Any, told: Told, weights: Any) -> tuple[Any, Any]:
        """Targets without their levels, and weights: an event of a key without a level has nothing to teach yet."""
        y = np.asarray(y, dtype=np.float64)
        if told.known.all():
            return y - told.before, weights
        heavy = 1.0 if weights is None else np.asarray(weights, dtype=np.float64)
        return np.where(told.known, y - told.before, 0.0), np.where(told.known, heavy, 0.0)

    def _kept(self, levels: Levels, told: Told) -> None:
        levels.keep(told)
        self._levels = levels

    def forget(self, keys: Any) -> int:
        """Let go of these keys; returns how many of them were known."""
        known = super().forget(keys)
        if self._levels is not None:
            self._levels.forget(_listed(read_keys(keys, self._kind)[1]))
        return known

    # ---- answers ----------------------------------------------------------------------------------------------------

    def decision_function(self, keys: Any, X: Any, time: Any = None) -> Any:
        """The same as `predict`; a key that never came has the mean of all targets as its level."""
        said = super().decision_function(keys, X, time)
        assert self._levels is not None
        rows = _listed(read_keys(keys, self._kind)[1])
        return said + self._levels.of(rows, None if time is None else self._times(time, len(rows)))

    def predict(self, keys: Any, X: Any, time: Any = None) -> Any:
        """What each event's own learner says, in the units of y."""
        return self.decision_function(keys, X, time)

    def level(self, keys: Any) -> Any:
        """The level of each key: the mean of its targets, drawn to that of all; for a key that never came, that of all."""
        self._started()
        assert self._levels is not None
        return self._levels.of(_listed(read_keys(keys, self._kind)[1]), None)

    @property
    def memory_bytes_(self) -> int:
        """Bytes that all keys together keep."""
        return super().memory_bytes_ + (0 if self._levels is None else self._levels.nbytes)

    # ---- files ------------------------------------------------------------------------------------------------------

    def _to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays, fitted = super()._to_file()
        assert self._levels is not None
        return {**arrays, **self._levels.to_file(self._kind != "int")}, fitted

    def _from_file(self, arrays: dict[str, Any], fitted: dict[str, Any]) -> None:
        arrays = dict(arrays)
        levels = Levels(self.ttl, self.max_keys if self.spill is None else None)
        levels.from_file(arrays, fitted["kind"] != "int")
        super()._from_file(arrays, fitted)
        self._levels = levels

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_levels"}


def _listed(rows: Any) -> list[Any]:
    """Keys as the core takes them, as plain values."""
    return rows if isinstance(rows, list) else list(rows.tolist())
