"""One learner per key (device, customer, place), for samples in any order."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import column_or_1d

from .. import _core
from .._common.labels import LabelTable
from .._common.times import is_span, read_times
from ..learners.kernel import KernelClassifier, KernelNovelty
from .keyed_files import KeyedFiles
from .keys import KeyedEvents, KeyKind, read_keys, shown_keys
from .prior import UndoablePrior


class KeyedFleet(KeyedFiles):
    """One learner for each key, with the same kernel, rule and budget, created at the first event of the key.

    The learner of a key equals the prototype trained on the events of that key alone, bit for bit, in whatever order
    the keys come. Keys are integers, strings or bytes.

    Parameters
    ----------
    prototype : KernelClassifier, KernelRegressor, KernelNovelty, or one of them in Prepared
        The learner of each key; in `Prepared`, each key has its own scaling. See `Fleet` for the supported rules and
        budgets.
    max_keys : int, optional
        Largest number of keys in memory. When it is exceeded, a key without recent events (chosen by CLOCK) is written
        to `spill`, or dropped; `n_dropped_` counts the dropped ones.
    ttl : number or timedelta, optional
        A key whose last event is longer ago is forgotten, and starts again with an empty learner; `n_expired_` counts
        them. In events of the whole fleet, or in units of `time=`: seconds where times are dates.
    spill : path, optional
        An SQLite file for keys beyond `max_keys`; they are read back unchanged at their next event. It is a temporary
        file of the fleet, removed with it: `save` writes all keys. A path that is a database of another program is
        refused. A fleet that is loaded, unpickled or copied gets a file of its own in the system's temporary folder,
        whatever path stands in the model file; `set_params(spill=path)` moves it.
    prior : learner, optional
        One learner trained on the events of all keys. In regression a key learns the residual of the prior, y - p(x);
        in classification the score of the prior is added to that of the key. Not for novelty detection.

    Notes
    -----
    `max_keys`, `ttl` and the path of `spill` may be changed at any time. What has been learned with one `prototype` or
    `prior` does not go on with another one: a change is refused at the next call.

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, KeyedFleet, norma_novelty
    >>> rng = np.random.default_rng(0)
    >>> devices, X = rng.integers(0, 50, size=5000), rng.normal(size=(5000, 2))
    >>> fleet = KeyedFleet(norma_novelty(Gaussian(0.5), nu=0.05, rate=0.05, size=20))
    >>> scores = fleet.prequential(devices, X)
    >>> len(fleet), fleet[7].n_seen_ == int((devices == 7).sum())
    (50, True)
    """

    _cores = (_core.KeyedDouble, _core.KeyedSingle)

    def __init__(
        self,
        prototype: Any,
        max_keys: int | None = None,
        ttl: Any = None,
        spill: Any = None,
        prior: Any = None,
    ) -> None:
        self.prototype = prototype
        self.max_keys = max_keys
        self.ttl = ttl
        self.spill = spill
        self.prior = prior

    def _parts(self) -> Any:
        self._room()
        parts = super()._parts()
        if self.prior is None:
            return parts
        if isinstance(self._model, KernelNovelty):
            raise ValueError("novelty has no labels for a prior to explain; use prior=None")
        fits = is_classifier if isinstance(self._model, KernelClassifier) else is_regressor
        if not hasattr(self.prior, "prequential") or not fits(self.prior):
            raise ValueError(
                f"prior must be a learner for the task of the prototype, with prequential, such as a "
                f"{type(self._model).__name__}, got {self.prior!r}"
            )
        return parts

    def _begin(self, parts: Any, width: int, dtype: Any, seed: int, kind: KeyKind) -> Any:
        return self._made(
            self._cores[dtype == np.float32],
            parts,
            width,
            **self._room()._asdict(),
            texts=kind != "int",
            seed=seed,
            one_seed=self._one_seed,
        )

    # ---- learning ---------------------------------------------------------------------------------------------------

    def partial_fit(
        self, keys: Any, X: Any, y: Any = None, sample_weight: Any = None, time: Any = None, classes: Any = None
    ) -> Self:
        """Learn events in order of arrival.

        Parameters
        ----------
        keys : one whole number, string or bytes an event; an array, list or column
        X : array of shape (events, features)
        y : labels or targets; nothing for novelty
        sample_weight : numbers >= 0, optional
        time : when each event came, for `ttl`: numbers on the caller's clock, or dates. It does not run backwards: an
            event that comes late counts as of the latest time before it
        classes : all labels that will ever come, optional
        """
        self._learn(keys, X, y, sample_weight, time, classes, False)
        return self

    def prequential(
        self, keys: Any, X: Any, y: Any = None, sample_weight: Any = None, time: Any = None, classes: Any = None
    ) -> Any:
        """Learn as `partial_fit` does, and return what was predicted for each event before."""
        return self._learn(keys, X, y, sample_weight, time, classes, True)

    def learn_one(self, key: Any, x: Any, y: Any = None, sample_weight: Any = None, time: Any = None) -> None:
        """Learn one event of one key."""
        row = self._row(x)
        label, weight, when = (None if given is None else [given] for given in (y, sample_weight, time))
        self._learn([key], row, label, weight, when, None, False)

    def _learn(self, keys: Any, X: Any, y: Any, weights: Any, time: Any, classes: Any, want: bool) -> Any:
        first = self._core_ is None
        core, parts = (None, self._parts()) if first else (self._settle(), None)
        events = self._events(keys, X, y, weights, time, classes)
        seed = self._seed() if first else None
        if seed is not None:
            core = self._begin(parts, events.X.shape[1], events.X.dtype, seed, events.kind)
        weights = self._weights(weights, (len(events.X),))
        with self._writing():
            return self._take_in(core, seed, events, weights, classes, want)

    def _take_in(self, core: Any, seed: int | None, events: KeyedEvents, weights: Any, classes: Any, want: bool) -> Any:
        """Prior, core and spill file learn, or none of them; `seed`: of a core that is new."""
        table, kept = self._table, core.changes
        prior = self._prior_run if self.prior is None or self._prior_run else UndoablePrior(copy.deepcopy(self.prior))
        try:
            said = offsets = None
            numbers = events.labels
            if prior is not None:
                core.check(events.rows, events.X)  # validate before the prior learns
                said = prior.learn(events.X, events.y, weights, classes)
                if isinstance(self._model, KernelClassifier):
                    offsets = self._offsets(prior.learner, said, events.table)
                else:
                    numbers = numbers - said
            self._table = events.table  # first: a concurrent reader uses only as many names as it has scores
            given = (numbers, events.weights, offsets, events.times, events.known)
            self._kind = events.kind
            scores = self._kept(
                core, lambda: core.learn(events.rows, events.X, *given, self._found(core, events.rows), want)
            )
            self._settled_with(core, seed, events, prior)
        except BaseException:
            if self._core_ is None or core.changes == kept:
                self._undo(table, prior)
            elif prior is not None:  # an interrupt came afterwards
                prior.settle()
            raise
        if not want:
            return None
        shown = self._shown(scores, core.classes)
        return shown + said if said is not None and offsets is None else shown

    def _settled_with(self, core: Any, seed: int | None, events: KeyedEvents, prior: UndoablePrior | None) -> None:
        """Commit the chunk in prior, core and spill file."""
        if prior is not None:
            prior.keep()
            self._prior_run, self.prior_ = prior, prior.learner
        if seed is not None:
            self._start(core, seed, events)

    def _undo(self, table: LabelTable, prior: UndoablePrior | None) -> None:
        """Roll back the prior; the core has rolled back already."""
        self._table = table
        if self._core_ is None:
            self._kind = self._timed = self._runs_with = self._prior_run = self.prior_ = None
            if self._spill is not None:  # the next try may be with another path
                self._spill.close()
                self._spill = None
        elif prior is not None:
            prior.undo()
            self.prior_ = prior.learner

    def _one_each(self, y: Any, count: int) -> Any:
        """Labels or targets, one an event."""
        shape = tuple(y.shape) if hasattr(y, "shape") else np.asarray(y, dtype=object).shape
        if shape == (count, 1):
            y = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
            return column_or_1d(y, warn=True)
        if shape != (count,):
            raise ValueError(f"y must have the shape ({count},), one value an event, got {shape}")
        return y

    def _events(self, keys: Any, X: Any, y: Any, weights: Any, time: Any, classes: Any) -> KeyedEvents:
        """Events as the core takes them; nothing is changed."""
        kind, rows = read_keys(keys, self._kind)
        X = self._table_of(X, len(rows))
        times = self._times(time, len(X))
        y = None if y is None else self._one_each(y, len(X))
        table, labels, known = self._codes(y, None, classes)
        weights = self._weighed(table, labels, self._weights(weights, (len(X),)))
        return KeyedEvents(kind, rows, X, labels, weights, times, known, table, y)

    def _start(self, core: Any, seed: int, events: KeyedEvents) -> None:
        """The first events settle the kind of the keys, the width and the clock."""
        self._first_seed, self._kind, self._timed = seed, events.kind, events.times is not None
        self.n_features_in_ = events.X.shape[1]
        self._run_with()
        self._core_ = core

    def _row(self, x: Any) -> Any:
        x = np.asarray(x)
        if x.ndim != 1:
            raise ValueError(f"x must be one event, a vector of numbers, got {x.ndim} dimensions")
        return x[None]

    def _table_of(self, X: Any, count: int) -> npt.NDArray[Any]:
        X = self._numbers(X if not hasattr(X, "to_numpy") else X.to_numpy())
        width = self.n_features_in_ if self._core_ is not None else X.shape[-1] if X.ndim == 2 else 0
        if X.ndim != 2 or X.shape[1] != width or width == 0 or len(X) != count:
            raise ValueError(f"X must have the shape ({count}, {width or 'features'}), a row a key, got {X.shape}")
        if count == 0:
            raise ValueError("X holds 0 events")
        return X

    def _times(self, time: Any, count: int) -> Any:
        if time is None and is_span(self.ttl):
            raise ValueError(f"ttl={self.ttl!r} is a span of time: give time= with every event")
        if self._timed is not None and self._timed != (time is not None) and self.ttl is not None:
            raise ValueError("time= is given with every event or with none, so that ttl has one clock")
        return None if time is None else read_times(time, count)

    def _offsets(self, prior: Any, said: Any, table: LabelTable) -> npt.NDArray[np.float64]:
        """The prior's scores in the order of the core's classes."""
        shown = prior.classes_.tolist()
        if said.ndim == 1:
            second = table.names[1] if len(table) > 1 else None
            return np.ascontiguousarray((said if shown[-1] == second or len(shown) == 1 else -said)[:, None])
        order = [shown.index(name) for name in table.names if name in shown]
        return np.ascontiguousarray(said[:, order])

    # ---- answers ----------------------------------------------------------------------------------------------------

    def decision_function(self, keys: Any, X: Any, time: Any = None) -> Any:
        """Scores by the learner of each key; an unknown key is scored by an empty learner. Nothing is learned."""
        return self._scores(keys, X, time)[0]

    def predict(self, keys: Any, X: Any, time: Any = None) -> Any:
        """Predict each sample by the learner of its key: a class, a number, or -1 for an outlier and 1 for an inlier."""
        return self._answers(*self._scores(keys, X, time))

    def predict_proba(self, keys: Any, X: Any, time: Any = None) -> Any:
        """The probability of each class, in the order of `classes_`, by what each key has learned of its scores."""
        return self._scores(keys, X, time, shares=True)[0]

    def score_one(self, key: Any, x: Any, time: Any = None) -> Any:
        """`decision_function` of one event."""
        return self.decision_function([key], self._row(x), None if time is None else [time])[0]

    def predict_one(self, key: Any, x: Any, time: Any = None) -> Any:
        """`predict` of one event."""
        return self.predict([key], self._row(x), None if time is None else [time])[0]

    def _scores(self, keys: Any, X: Any, time: Any, shares: bool = False) -> tuple[Any, int]:
        core = self._settle()
        rows = read_keys(keys, self._kind)[1]
        X = self._table_of(X, len(rows))
        times = None if time is None else self._times(time, len(X))
        return self._looking(lambda: self._scored(core, rows, X, times, shares))

    def _scored(self, core: Any, rows: Any, X: Any, times: Any, shares: bool) -> tuple[Any, int]:
        said = offsets = None
        prior = self.prior_
        if prior is not None and isinstance(self._model, KernelClassifier):
            offsets = self._offsets(prior, prior.decision_function(X), self._table)
        elif prior is not None:
            said = prior.predict(X)
        asked = rows, X, offsets, times, self._found(core, rows)
        scores, classes = core.score(*asked, False)
        shown = self._shown(scores, classes)
        if shares:
            self._refuse_shares()
            shown = self._shares(core.score(*asked, True)[0], shown, classes)
        return (shown if said is None else shown + said), classes

    # ---- keys -------------------------------------------------------------------------------------------------------

    @property
    def keys_(self) -> Any:
        """Every key that is known, in memory or spilled: an array of whole numbers, or a list of strings or bytes.

        A key past its time is not known any more.
        """
        self._settle()
        return self._all_keys()

    def _all_keys(self) -> Any:
        core = self._started()
        here, others = self._looking(lambda: (core.keys(), self._others(core)))
        both = np.concatenate([here, others]) if self._kind == "int" else [*here, *others]
        return shown_keys(both, self._kind)

    def __len__(self) -> int:
        return 0 if self._core_ is None else len(self.keys_)

    def __iter__(self) -> Iterator[Any]:
        """The keys."""
        if self._core_ is None:
            return iter(())
        return iter(self.keys_ if self._kind != "int" else self.keys_.tolist())

    def __contains__(self, key: Any) -> bool:
        if self._core_ is None:
            return False
        core = self._settle()
        try:
            rows = read_keys([key], self._kind)[1]
        except (TypeError, ValueError):  # it can be no key of this fleet
            return False
        return bool(self._looking(lambda: core.known(rows, self._found(core, rows))[0]))

    def __getitem__(self, key: Any) -> Any:
        """A key's learner as a plain estimator; with a prior, what the key has learned beyond it."""
        core = self._settle()
        rows = read_keys([key], self._kind)[1]
        try:
            pack = self._looking(lambda: core.members(rows, self._found(core, rows)))
        except IndexError:
            raise KeyError(key) from None
        return self._learner(pack, self._first_seed)

    def __setitem__(self, key: Any, model: Any) -> None:
        """Put a learner of the same parts in the place of a key's."""
        core = self._settle()
        rows = read_keys([key], self._kind)[1]
        pack = self._packed(model)
        with self._writing():
            last = np.array([core.now])
            self._kept(core, lambda: core.set_members(rows, pack, last, self._found(core, rows)))

    def forget(self, keys: Any) -> int:
        """Remove these keys; returns how many of them were known."""
        core = self._settle()
        rows = read_keys(keys, self._kind)[1]
        rows = np.unique(rows) if isinstance(rows, np.ndarray) else list(dict.fromkeys(rows))
        with self._writing():
            return self._forget(core, rows)

    @property
    def n_stored_(self) -> int:
        """How many points all keys in memory have stored together."""
        return int(self._started().stored)

    @property
    def n_dropped_(self) -> int:
        """Number of evictions for lack of memory."""
        return int(self._started().dropped)

    @property
    def n_expired_(self) -> int:
        """Number of expired keys."""
        core = self._settle()
        return self._looking(lambda: self._expired(core))
