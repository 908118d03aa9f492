"""A learner a key: one a device, customer or place, for events that come in any order."""

from __future__ import annotations

import copy
from numbers import Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier, is_regressor

from . import _core
from ._keyed_files import KeyedFiles
from ._keys import KeyedEvents, KeyKind, as_text, read_keys, shown_keys
from ._labels import LabelTable
from ._spill import Record, Spill
from .learners import KernelClassifier, KernelNovelty


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
    ttl : number, optional
        A key whose last event is longer ago starts again with an empty learner; in events of the whole fleet, or in
        units of `time=`.
    spill : path, optional
        An SQLite file for keys beyond `max_keys`; they are read back unchanged at their next event. It is a temporary
        file of the fleet: `save` writes all keys.
    prior : learner, optional
        One learner trained on the events of all keys. In regression a key learns the residual of the prior, y - p(x);
        in classification the score of the prior is added to that of the key. Not for novelty detection.

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
    _spill: Spill | None = None

    def __init__(
        self,
        prototype: Any,
        max_keys: int | None = None,
        ttl: float | None = None,
        spill: Any = None,
        prior: Any = None,
    ) -> None:
        self.prototype = prototype
        self.max_keys = max_keys
        self.ttl = ttl
        self.spill = spill
        self.prior = prior

    def _parts(self) -> Any:
        cap = self.max_keys
        if cap is not None and (not isinstance(cap, int | np.integer) or not 1 <= cap < 2**32 - 1):
            raise ValueError(f"max_keys must be a whole number above 0 and below 2**32 - 1, or None, got {cap!r}")
        if self.ttl is not None and not (isinstance(self.ttl, Real) and self.ttl > 0):
            raise ValueError(
                f"ttl must be a number above 0, of events or on the clock of time=, or None, got {self.ttl!r}"
            )
        if self.spill is not None and cap is None:
            raise ValueError("spill takes what max_keys leaves no room for; give max_keys too")
        parts = super()._parts()
        if self.prior is None:
            return parts
        if isinstance(self._model, KernelNovelty):
            raise ValueError("novelty has no labels for a prior to explain; use prior=None")
        fits = is_classifier if isinstance(self._model, KernelClassifier) else is_regressor
        if not fits(self.prior) or not hasattr(self.prior, "prequential"):
            raise ValueError(
                f"prior must be a learner for the task of the prototype, with prequential, got {self.prior!r}"
            )
        return parts

    def _begin(self, parts: Any, width: int, dtype: Any, seed: int, kind: KeyKind) -> Any:
        return self._made(
            self._cores[dtype == np.float32],
            parts,
            width,
            max_keys=int(self.max_keys or 0),
            ttl=float("inf") if self.ttl is None else float(self.ttl),
            spills=self.spill is not None,
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
        time : when each event came, for `ttl` in units of the caller's clock
        classes : all labels that will ever come, optional
        """
        self._learn(keys, X, y, sample_weight, time, classes, False)
        return self

    def prequential(
        self, keys: Any, X: Any, y: Any = None, sample_weight: Any = None, time: Any = None, classes: Any = None
    ) -> Any:
        """Learn as `partial_fit` does, and return what was predicted for each event before."""
        return self._learn(keys, X, y, sample_weight, time, classes, True)

    def learn_one(self, key: Any, x: Any, y: Any = None, time: Any = None) -> None:
        """Learn one event of one key."""
        self._learn(
            [key], self._row(x), None if y is None else [y], None, None if time is None else [time], None, False
        )

    def _learn(self, keys: Any, X: Any, y: Any, weights: Any, time: Any, classes: Any, want: bool) -> Any:
        parts = self._parts() if self._core_ is None else None
        events = self._events(keys, X, y, weights, time, classes)
        core, seed = self._core_, None
        if core is None:
            seed = self._seed()
            core = self._begin(parts, events.X.shape[1], events.X.dtype, seed, events.kind)
        prior, said = self._ask_prior(events.X, y, self._weights(weights, (len(events.X),)), classes)
        offsets, numbers = None, events.labels
        if said is not None and isinstance(self._model, KernelClassifier):
            offsets = self._offsets(prior, said, events.table)
        elif said is not None:
            numbers = numbers - said
        if self.spill is not None and self._spill is None:
            self._spill = Spill(self.spill)  # before anything is learned: a path may be wrong
        found = self._found(core, events.rows)
        scores = core.learn(
            events.rows, events.X, numbers, events.weights, offsets, events.times, events.known, found, want
        )
        if seed is not None:
            self._start(core, seed, events)
        self._table = events.table
        if prior is not None:
            self.prior_ = prior
        self._flush(core)
        if not want:
            return None
        shown = self._shown(scores, core.classes)
        return shown + said if said is not None and offsets is None else shown

    def _events(self, keys: Any, X: Any, y: Any, weights: Any, time: Any, classes: Any) -> KeyedEvents:
        """Events as the core takes them; nothing is changed."""
        kind, rows = read_keys(keys, self._kind)
        X = self._table_of(X, len(rows))
        times = self._times(time, len(X))
        if y is not None and np.size(y) != len(X):
            raise ValueError(f"y must have one value an event, {len(X)}, got {np.size(y)}")
        table, labels, known = self._codes(y, None, classes)
        weights = self._weighed(table, labels, self._weights(weights, (len(X),)))
        return KeyedEvents(kind, rows, X, labels, weights, times, known, table)

    def _start(self, core: Any, seed: int, events: KeyedEvents) -> None:
        """The first events settle the kind of the keys, the width and the clock."""
        self._core_, self._first_seed, self._kind = core, seed, events.kind
        self._timed = events.times is not None
        self.n_features_in_ = events.X.shape[1]

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
        if self._timed is not None and self._timed != (time is not None) and self.ttl is not None:
            raise ValueError("time= is given with every event or with none, so that ttl has one clock")
        if time is None:
            return None
        times = np.ascontiguousarray(time, dtype=np.float64)
        if times.shape != (count,):
            raise ValueError(f"time must hold a number an event, {count}, got shape {times.shape}")
        if not np.isfinite(times).all():
            row = int(np.flatnonzero(~np.isfinite(times))[0])
            raise ValueError(f"time must hold finite numbers: row {row} is {times[row]}")
        return times

    # ---- keys on disk -----------------------------------------------------------------------------------------------

    def _found(self, core: Any, rows: Any) -> list[Record]:
        return [] if self._spill is None else self._spill.get(core.missing(rows))

    def _flush(self, core: Any) -> None:
        """What left memory goes to disk; until it is there, the core keeps it."""
        if self.spill is None:
            return
        leaving = core.leaving()
        if leaving:
            self._spill = self._spill or Spill(self.spill)
            self._spill.put(leaving)
            core.flushed()

    # ---- the prior --------------------------------------------------------------------------------------------------

    def _ask_prior(self, X: Any, y: Any, weights: Any, classes: Any) -> tuple[Any, Any]:
        """A prior that has learned these events, and what it said of each before; the one in use stays as it is."""
        if self.prior is None:
            return None, None
        prior = copy.deepcopy(self.prior if self.prior_ is None else self.prior_)
        more = {} if weights is None else {"sample_weight": weights}
        if classes is not None:
            more["classes"] = classes
        return prior, np.asarray(prior.prequential(X, y, **more), dtype=np.float64)

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
        """Scores; a key that never came is scored as one that has seen nothing. Nothing is learned."""
        return self._scores(keys, X, time)[0]

    def predict(self, keys: Any, X: Any, time: Any = None) -> Any:
        """What each event's own learner says: a class, a number, or -1 for an alarm and 1 for none."""
        return self._answers(*self._scores(keys, X, time))

    def predict_proba(self, keys: Any, X: Any, time: Any = None) -> Any:
        """The probability of each class, in the order of `classes_`, by what each key has learned of its scores."""
        return self._scores(keys, X, time, shares=True)[0]

    def score_one(self, key: Any, x: Any) -> Any:
        """`decision_function` of one event."""
        return self.decision_function([key], self._row(x))[0]

    def predict_one(self, key: Any, x: Any) -> Any:
        """`predict` of one event."""
        return self.predict([key], self._row(x))[0]

    def _scores(self, keys: Any, X: Any, time: Any, shares: bool = False) -> tuple[Any, int]:
        core = self._started()
        rows = read_keys(keys, self._kind)[1]
        X = self._table_of(X, len(rows))
        times = None if time is None else self._times(time, len(X))
        said = offsets = None
        if self.prior_ is not None and isinstance(self._model, KernelClassifier):
            offsets = self._offsets(self.prior_, self.prior_.decision_function(X), self._table)
        elif self.prior_ is not None:
            said = self.prior_.predict(X)
        scores, classes = core.score(rows, X, offsets, times, self._found(core, rows), shares)
        shown = self._shares(scores, classes) if shares else self._shown(scores, classes)
        return (shown if said is None else shown + said), classes

    # ---- keys -------------------------------------------------------------------------------------------------------

    @property
    def keys_(self) -> Any:
        """Every key that is known, in memory or spilled: an array of whole numbers, or a list of strings or bytes."""
        self._started().sweep()
        return self._all_keys()

    def _all_keys(self) -> Any:
        """`keys_`, those past their time too: looking at them changes nothing."""
        resident = self._started().keys()
        if self._spill is None:
            return shown_keys(resident, self._kind)
        known = [as_text(key, self._kind) for key in resident]
        rest = set(self._spill.keys()) - set(known)
        return shown_keys(known + sorted(rest), self._kind, packed=True)

    def __len__(self) -> int:
        return 0 if self._core_ is None else len(self.keys_)

    def __contains__(self, key: Any) -> bool:
        return self._core_ is not None and bool(self._known(read_keys([key], self._kind)[1]))

    def _known(self, rows: Any) -> bool:
        core = self._started()
        missing = core.missing(rows)
        return not missing or len(self._found(core, rows)) == len(missing)

    def __getitem__(self, key: Any) -> Any:
        """A key's learner as a plain estimator; with a prior, what the key has learned beyond it."""
        core = self._started()
        rows = read_keys([key], self._kind)[1]
        if not self._known(rows):
            raise KeyError(key)
        return self._learner(core.members(rows, self._found(core, rows)), self._first_seed)

    def __setitem__(self, key: Any, model: Any) -> None:
        """Put a learner of the same parts in the place of a key's."""
        core = self._started()
        rows = read_keys([key], self._kind)[1]
        core.set_members(rows, self._packed(model), np.array([core.now]), core.now)
        self._flush(core)

    def forget(self, keys: Any) -> int:
        """Let go of these keys; returns how many of them were known."""
        core = self._started()
        rows = read_keys(keys, self._kind)[1]
        there = core.forget(rows).astype(bool)
        if self._spill is None:
            return int(there.sum())
        texts = [as_text(key, self._kind) for key in rows]
        gone = {text for text, was in zip(texts, there, strict=True) if was}
        spilled = {key for key, _ in self._spill.get(texts)}
        self._spill.forget(texts)
        return len(gone | spilled)

    @property
    def n_stored_(self) -> int:
        """How many points all keys in memory have stored together."""
        return int(self._started().stored)

    @property
    def n_dropped_(self) -> int:
        """How many times a key went away for want of room."""
        return int(self._started().dropped)

    @property
    def n_expired_(self) -> int:
        """How many times a key went away because of its age."""
        return int(self._started().expired)
