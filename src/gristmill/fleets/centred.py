"""A keyed fleet that learns residuals: each key's running mean is subtracted from its targets."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from .._common.seqlock import SeqLock
from .._common.times import read_ttl
from ..learners.kernel import KernelRegressor
from .key_means import KeyMeans
from .keyed import KeyedFleet
from .keys import KeyedEvents, read_keys


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

    _levels: KeyMeans | None = None

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

    def _run_with(self) -> None:
        self._turns = self._turns or SeqLock()  # means and learners are updated together
        super()._run_with()

    # ---- learning ---------------------------------------------------------------------------------------------------

    def _take_in(self, core: Any, seed: int | None, events: KeyedEvents, weights: Any, classes: Any, want: bool) -> Any:
        levels = self._levels or KeyMeans()
        levels.configure(*self._level_room())
        told = levels.tell(_listed(events.rows), events.labels, weights, events.times)
        centred = np.where(told.known, events.labels - told.before, 0.0)
        if not told.known.all():  # the first sample of a key only sets its mean
            weights = np.where(told.known, 1.0 if weights is None else weights, 0.0)
        before = core.changes
        try:
            said = super()._take_in(
                core, seed, events._replace(labels=centred, y=centred, weights=weights), weights, classes, want
            )
        finally:  # an interrupt may come afterwards
            if self._core_ is core and core.changes != before:
                levels.keep(told)
                self._levels = levels
        return told.before + said if want else None

    def _level_room(self) -> tuple[float, int | None]:
        """Time after which a key's mean expires."""
        return read_ttl(self.ttl), self.max_keys if self.spill is None else None

    def _forget(self, core: Any, rows: Any) -> int:
        known = super()._forget(core, rows)
        if self._levels is not None:
            self._levels.forget(_listed(rows))
        return known

    # ---- answers ----------------------------------------------------------------------------------------------------

    def _scored(self, core: Any, rows: Any, X: Any, times: Any, shares: bool) -> tuple[Any, int]:
        said, classes = super()._scored(core, rows, X, times, shares)
        assert self._levels is not None
        return said + self._levels.of(_listed(rows), times), classes

    def level(self, keys: Any) -> Any:
        """The shrunken target mean of each key; the global mean for an unknown key."""
        self._settle()
        assert self._levels is not None
        levels, rows = self._levels, _listed(read_keys(keys, self._kind)[1])
        return self._looking(lambda: levels.of(rows, None))

    @property
    def memory_bytes_(self) -> int:
        """Bytes that all keys together keep."""
        return super().memory_bytes_ + (0 if self._levels is None else self._levels.nbytes)

    # ---- files ------------------------------------------------------------------------------------------------------

    def _written(self) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays, fitted = super()._written()
        assert self._levels is not None
        return {**arrays, **self._levels.to_file(self._kind != "int")}, fitted

    def _from_file(self, arrays: dict[str, Any], fitted: dict[str, Any]) -> None:
        arrays, levels = dict(arrays), KeyMeans()
        levels.from_file(arrays, fitted["kind"] != "int")
        super()._from_file(arrays, fitted)
        levels.configure(*self._level_room())
        self._levels = levels

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_levels"}


def _listed(rows: Any) -> list[Any]:
    """Keys as the core takes them, as plain values."""
    return rows if isinstance(rows, list) else list(rows.tolist())
