"""One learner per key (device, customer, place), for samples in any order."""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import column_or_1d

from .. import _core, persist
from .._common.frozen_params import FrozenParams
from .._common.labels import LabelTable
from .._common.seqlock import SeqLock
from .._common.times import is_span, read_times, read_ttl
from .._common.types import Fields, FileFields, Fitted, Labels, Numbers
from ..learners.kernel import KernelClassifier, KernelNovelty, KernelRegressor
from ..streams.files.fixed_width import TableRows
from .base import FleetBase
from .chunk import Chunk
from .key_means import KeyMeans
from .key_store import KeyStore, Limits
from .keys import KeyedEvents, KeyKind, Keys, Start, read_keys, shown_keys
from .prior import UndoablePrior
from .saved_keys import count_of, read_into, written
from .spill_file import TemporarySpill

Found = TypeVar("Found")


class KeyedFleet(FleetBase):
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
        An SQLite file for keys beyond `max_keys`, or a folder, in which the file gets a name of its own; keys are read back
        unchanged at their next event. The file belongs to one fleet and is removed with it: `save` writes all keys. A file
        that another living fleet uses is refused, and so is a database of another program. A fleet that is loaded,
        unpickled or copied gets a file of its own in the system's temporary folder, whatever path the model file names;
        `set_params(spill=path)` moves it.
    prior : learner, optional
        One learner trained on the events of all keys. In regression a key learns the residual of the prior, y - p(x);
        in classification the score of the prior is added to that of the key. Not for novelty detection.
    center : bool, default=False
        Take a mean per key off the targets; for regression. Houses, engines and shops each have a level of their own, and
        they react alike. The level of a key is the running mean of its targets, shrunk to that of all keys as far as keys
        are alike and its events are few (empirical Bayes); the `prior`, and then the key's own learner, learn what is left.
        The first event of a key settles its level and is not learned otherwise; before it the level is the mean of all
        targets. The prior must take `sample_weight`, and one that settles, such as `Prepared(KernelRegressor(rule=
        SGD(Squared(), 1.0, schedule="inv_sqrt"), average=True))`, is better than one that follows the newest events.
        Without `spill`, the level of a key without events is kept for 16 * max_keys events; with it, levels stay in memory,
        some 280 bytes each.

    Notes
    -----
    `max_keys`, `ttl` and the path of `spill` may be changed at any time. What has been learned with one `prototype`,
    `prior` or `center` does not go on with another one: a change is refused at the next call.

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004.
    H. Robbins, An Empirical Bayes Approach to Statistics, Proc. Third Berkeley Symposium, 1956: `center`.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, KeyedFleet, norma_novelty
    >>> rng = np.random.default_rng(0)
    >>> devices, X = rng.integers(0, 50, size=5000), rng.normal(size=(5000, 2))
    >>> fleet = KeyedFleet(norma_novelty(Gaussian(0.5), nu=0.05, rate=0.05, schedule="inv_sqrt", size=20))
    >>> scores = fleet.prequential(devices, X)
    >>> len(fleet), fleet[7].n_seen_ == int((devices == 7).sum())
    (50, True)

    >>> from gristmill import DropSmallest, KernelRegressor
    >>> shops, X = rng.integers(0, 40, size=4000), rng.normal(size=(4000, 1))
    >>> y = 1000 * shops + X[:, 0]
    >>> fleet = KeyedFleet(KernelRegressor(Gaussian(0.5), budget=DropSmallest(20)), center=True)
    >>> predictions = fleet.prequential(shops, X, y)
    >>> round(float(np.abs(predictions - y)[2000:].mean()), 2)
    0.15
    """

    _cores = (_core.KeyedDouble, _core.KeyedSingle)
    _store: KeyStore | None = None
    _prior: UndoablePrior | None = None
    _means: KeyMeans | None = None
    _turns: SeqLock | None = None  #: guards what changes together: spill file, prior and means
    _runs_with: FrozenParams | None = None

    def __init__(
        self,
        prototype: Any,
        max_keys: int | None = None,
        ttl: Any = None,
        spill: Any = None,
        prior: object = None,
        center: bool = False,
    ) -> None:
        self.prototype = prototype
        self.max_keys = max_keys
        self.ttl = ttl
        self.spill = spill
        self.prior = prior
        self.center = center

    # ---- parts and parameters ---------------------------------------------------------------------------------------

    def checked_parts(self) -> Any:
        Limits.of(self.max_keys, self.ttl, self.spill)
        parts = super().checked_parts()
        if not isinstance(self.center, bool):
            raise ValueError(f"center must be True or False, got {self.center!r}")
        if self.center and not isinstance(self.member_model, KernelRegressor):
            raise ValueError(
                f"center=True takes means off numbers: the prototype must be a KernelRegressor, got {self.member_model!r}"
            )
        if self.prior is not None:
            self._check_prior()
        return parts

    def _check_prior(self) -> None:
        if isinstance(self.member_model, KernelNovelty):
            raise ValueError("novelty has no labels for a prior to explain; use prior=None")
        fits = is_classifier if isinstance(self.member_model, KernelClassifier) else is_regressor
        if not hasattr(self.prior, "prequential") or not fits(self.prior):
            raise ValueError(
                f"prior must be a learner for the task of the prototype, with prequential, such as a "
                f"{type(self.member_model).__name__}, got {self.prior!r}"
            )
        if self.center and "sample_weight" not in inspect.signature(self.prior.prequential).parameters:
            raise ValueError(
                "prior must take sample_weight in prequential, because with center=True the first event of a key has no "
                f"weight; got {self.prior!r}"
            )

    def check_parameters(self) -> None:
        if self._runs_with is not None:
            self._runs_with.refuse_changed(self)
        super().check_parameters()

    @property
    def _core_(self) -> Any:
        return None if self._store is None else self._store.core

    @property
    def store(self) -> KeyStore | None:
        """The learners of the keys; None before the first sample."""
        return self._store

    def new_store(self, parts: object, start: Start) -> KeyStore:
        """An empty store; `_adopt` makes it the store of the fleet."""
        core = self._made(
            self._cores[start.dtype == "float32"],
            parts,
            start.width,
            **Limits.of(self.max_keys, self.ttl, self.spill)._asdict(),
            texts=start.kind != "int",
            seed=start.seed,
            one_seed=self._one_seed,
        )
        return KeyStore(core, start, self.max_keys, self.ttl, self.spill)

    def _adopt(self, store: KeyStore) -> None:
        """Use this store and the present parameters from now on."""
        self.n_features_in_ = store.start.width
        self._runs_with = FrozenParams(self, ("prototype", "prior", "center"))
        self._guard()
        self._store = store

    def begun_store(self, start: Start) -> KeyStore:
        """The store, which is made if nothing has been learned; for fleets that learn by batches of a log."""
        if self._store is None:
            self._adopt(self.new_store(self.checked_parts(), start))
        return self._settled_store()

    def _guard(self) -> None:
        if self._turns is None and not (self.spill is None and self.prior is None and not self.center):
            self._turns = SeqLock()

    def _settled_store(self) -> KeyStore:
        """The store with the present parameters; raises if a fixed parameter was changed in mid-stream."""
        store = self._store
        if store is None:
            self._started()
        assert store is not None
        if self._runs_with is not None:
            self._runs_with.refuse_changed(self)
        if not store.has(self.max_keys, self.ttl, self.spill):
            self._guard()
            with self._writing():
                store.configure(self.max_keys, self.ttl, self.spill)
        return store

    def _writing(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self._turns is None else self._turns.write()

    def _looking(self, find: Callable[[], Found]) -> Found:
        """Result of `find` over memory and disk at one consistent state."""
        return find() if self._turns is None else self._turns.read(find)

    # ---- learning ---------------------------------------------------------------------------------------------------

    def partial_fit(
        self, keys: Any, X: Any, y: Any = None, sample_weight: Any = None, time: Labels = None, classes: object = None
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
        classes : labels known in advance, optional
        """
        self._learn(keys, X, y, sample_weight, time, classes, False)
        return self

    def prequential(
        self, keys: Any, X: Any, y: Any = None, sample_weight: Any = None, time: Any = None, classes: Any = None
    ) -> Any:
        """Learn as `partial_fit` does, and return what was predicted for each event before."""
        return self._learn(keys, X, y, sample_weight, time, classes, True)

    def learn_one(self, key: Any, x: Any, y: Any = None, sample_weight: Any = None, time: Labels = None) -> None:
        """Learn one event of one key."""
        row = self._row(x)
        label, weight, when = (None if given is None else [given] for given in (y, sample_weight, time))
        self._learn([key], row, label, weight, when, None, False)

    def _learn(self, keys: Any, X: Any, y: Any, weights: Any, time: Any, classes: Any, want: bool) -> Any:
        store = self._store
        parts = self.checked_parts() if store is None else None
        if store is not None:
            store = self._settled_store()
        events = self.checked_events(keys, X, y, weights, time, classes)
        if store is None:
            dtype = events.X.dtype.name
            start = Start(events.kind, events.X.shape[1], dtype, self.drawn_seed(), events.times is not None)
            store = self.new_store(parts, start)
            self._guard()
        with self._writing():
            return self._take_in(store, events, classes, want)

    def _take_in(self, store: KeyStore, events: KeyedEvents, classes: object, want: bool) -> Any:
        """Let means, prior and store learn a chunk, or none of them.

        The core of the store commits last and in one step, so its count of changes decides after an error or an interrupt:
        where it has the chunk, the others keep it too; where it has not, they are rolled back.
        """
        table, changes = self._table, store.core.changes
        fresh = self.prior is not None and self._prior is None
        prior = UndoablePrior(copy.deepcopy(self.prior)) if fresh else self._prior
        means = KeyMeans() if self.center and self._means is None else self._means
        chunk = Chunk(prior, means, events)
        try:
            if chunk.means is not None:
                chunk.means.configure(*self._lifetime_of_means())
                chunk.center()
            if chunk.prior is not None:
                store.core.check(events.rows, events.X)  # before the prior learns
                chunk.explain(classes, self._offsets if isinstance(self.member_model, KernelClassifier) else None)
            self._table = events.table  # first: a concurrent reader uses only as many names as it has scores
            scores = store.learn(chunk.events, chunk.offsets, want)
            if self._store is None or self._turns is not None:  # else nothing is kept beside the core
                self._keep(store, chunk)
        except BaseException:
            if store.core.changes == changes or self._store is None:
                self._roll_back(store, chunk, table)
            else:  # an interrupt came after the core had learned the chunk
                self._keep(store, chunk)
            raise
        return chunk.whole(self.shown_scores(scores, store.core.classes)) if want else None

    def _keep(self, store: KeyStore, chunk: Chunk) -> None:
        chunk.keep()
        self._prior, self._means = chunk.prior, chunk.means
        if self._store is None:
            self._adopt(store)

    def _roll_back(self, store: KeyStore, chunk: Chunk, table: LabelTable) -> None:
        """The store has rolled back already, or is dropped because it was new."""
        self._table = table
        if self._store is None:
            self._prior = self._means = self._runs_with = None
            store.close()  # the next try may be with another path
        else:
            chunk.roll_back()

    def _lifetime_of_means(self) -> tuple[float, int | None]:
        """Age and number of keys after which a mean expires."""
        return read_ttl(self.ttl), self.max_keys if self.spill is None else None

    def _one_each(self, y: Any, count: int) -> Any:
        """Labels or targets, one an event."""
        shape = tuple(y.shape) if hasattr(y, "shape") else np.asarray(y, dtype=object).shape
        if shape == (count, 1):
            y = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
            return column_or_1d(y, warn=True)
        if shape != (count,):
            raise ValueError(f"y must have the shape ({count},), one value an event, got {shape}")
        return y

    def checked_events(self, keys: Any, X: Any, y: Any, weights: Any, time: Any, classes: object) -> KeyedEvents:
        """Events as the core takes them; nothing is changed."""
        kind, rows = read_keys(keys, self.key_kind)
        X = self.checked_rows(X, len(rows))
        times = self.checked_times(time, len(X))
        y = None if y is None else self._one_each(y, len(X))
        table, labels, known = self._codes(y, None, classes)
        given = self._weights(weights, (len(X),))
        return KeyedEvents(kind, rows, X, labels, self._weighed(table, labels, given), times, known, table, y, given)

    @property
    def key_kind(self) -> KeyKind | None:
        return None if self._store is None else self._store.start.kind

    @property
    def reads_times(self) -> bool | None:
        """Whether events come with times; None before the first."""
        return None if self._store is None else self._store.start.timed

    def _row(self, x: object) -> Any:
        x = np.asarray(x)
        if x.ndim != 1:
            raise ValueError(f"x must be one event, a vector of numbers, got {x.ndim} dimensions")
        return x[None]

    def checked_rows(self, X: Any, count: int) -> Numbers:
        X = self._numbers(X if not hasattr(X, "to_numpy") else X.to_numpy())
        width = self.n_features_in_ if self._core_ is not None else X.shape[-1] if X.ndim == 2 else 0
        if X.ndim != 2 or X.shape[1] != width or width == 0 or len(X) != count:
            raise ValueError(f"X must have the shape ({count}, {width or 'features'}), a row a key, got {X.shape}")
        if count == 0:
            raise ValueError("X holds 0 events")
        return X

    def checked_times(self, time: object, count: int) -> Any:
        if time is None and is_span(self.ttl):
            raise ValueError(f"ttl={self.ttl!r} is a span of time: give time= with every event")
        if self.ttl is not None and self.reads_times is not None and self.reads_times != (time is not None):
            raise ValueError("time= is given with every event or with none, so that ttl has one clock")
        return None if time is None else read_times(time, count)

    def _offsets(self, prior: Any, scores: Any, table: LabelTable) -> npt.NDArray[np.float64]:
        """The prior's scores in the order of the core's classes."""
        shown = prior.classes_.tolist()
        if scores.ndim == 1:
            second = table.names[1] if len(table) > 1 else None
            return np.ascontiguousarray((scores if shown[-1] == second or len(shown) == 1 else -scores)[:, None])
        order = [shown.index(name) for name in table.names if name in shown]
        return np.ascontiguousarray(scores[:, order])

    # ---- answers ----------------------------------------------------------------------------------------------------

    def decision_function(self, keys: Any, X: Any, time: Labels = None) -> Any:
        """Scores by the learner of each key; an unknown key is scored by an empty learner. Nothing is learned."""
        return self._scores(keys, X, time)[0]

    def predict(self, keys: Any, X: Any, time: Labels = None) -> Any:
        """Predict each sample by the learner of its key: a class, a number, or -1 for an outlier and 1 for an inlier."""
        return self.predictions_of(*self._scores(keys, X, time))

    def predict_proba(self, keys: Any, X: Any, time: Labels = None) -> Any:
        """The probability of each class, in the order of `classes_`, by what each key has learned of its scores."""
        return self._scores(keys, X, time, shares=True)[0]

    def score_one(self, key: Any, x: object, time: Labels = None) -> Any:
        """`decision_function` of one event."""
        return self.decision_function([key], self._row(x), None if time is None else [time])[0]

    def predict_one(self, key: Any, x: object, time: Labels = None) -> Any:
        """`predict` of one event."""
        return self.predict([key], self._row(x), None if time is None else [time])[0]

    def _scores(self, keys: Any, X: Any, time: Labels, shares: bool = False) -> tuple[Any, int]:
        store = self._settled_store()
        rows = read_keys(keys, self.key_kind)[1]
        X = self.checked_rows(X, len(rows))
        times = None if time is None else self.checked_times(time, len(X))
        return self._looking(lambda: self._scored(store, rows, X, times, shares))

    def _scored(self, store: KeyStore, rows: Keys, X: Any, times: Any, shares: bool) -> tuple[object, int]:
        added: list[Any] = []
        offsets, prior = None, self.prior_
        if prior is not None and isinstance(self.member_model, KernelClassifier):
            offsets = self._offsets(prior, prior.decision_function(X), self._table)
        elif prior is not None:
            added.append(prior.predict(X))
        scores, classes = store.score(rows, X, offsets, times)
        shown = self.shown_scores(scores, classes)
        if shares:
            self._refuse_shares()
            return self._shares(store.score(rows, X, offsets, times, True)[0], shown, classes), classes
        if self._means is not None:
            added.append(self._means.of(rows, times))
        for part in added:
            shown = shown + part
        return shown, classes

    def level(self, keys: Any) -> Any:
        """The mean that `center=True` subtracts from the targets of each key; of an unknown key, the mean of all."""
        if not self.center:
            raise AttributeError("a KeyedFleet has a level for each key with center=True only")
        self._settled_store()
        means, rows = self._means, read_keys(keys, self.key_kind)[1]
        assert means is not None
        return self._looking(lambda: means.of(rows, None))

    @property
    def prior_(self) -> Any:
        """The learner of all keys, or None."""
        return None if self._prior is None else self._prior.learner

    # ---- keys -------------------------------------------------------------------------------------------------------

    @property
    def keys_(self) -> Any:
        """Every key that is known, in memory or spilled: an array of whole numbers, or a list of strings or bytes.

        A key past its time is not known any more.
        """
        return shown_keys(self._looking(self._settled_store().keys), self.key_kind)

    def __len__(self) -> int:
        return 0 if self._store is None else len(self.keys_)

    def __iter__(self) -> Iterator[object]:
        """The keys."""
        if self._store is None:
            return iter(())
        return iter(self.keys_ if self.key_kind != "int" else self.keys_.tolist())

    def __contains__(self, key: Any) -> bool:
        if self._store is None:
            return False
        store = self._settled_store()
        try:
            rows = read_keys([key], self.key_kind)[1]
        except (TypeError, ValueError):  # it can be no key of this fleet
            return False
        return bool(self._looking(lambda: store.known(rows)[0]))

    def __getitem__(self, key: Any) -> Any:
        """A key's learner as a plain estimator; with a prior, what the key has learned beyond it."""
        store = self._settled_store()
        rows = read_keys([key], self.key_kind)[1]
        try:
            pack = self._looking(lambda: store.members(rows))
        except KeyError:
            raise KeyError(key) from None
        return self._learner(pack, store.start.seed)

    def __setitem__(self, key: Any, model: Any) -> None:
        """Put a learner of the same parts in the place of a key's."""
        store = self._settled_store()
        rows = read_keys([key], self.key_kind)[1]
        pack = self._packed(model)
        with self._writing():
            store.set_members(rows, pack, np.array([store.core.now]))

    def forget(self, keys: Any) -> int:
        """Remove these keys; returns how many of them were known."""
        store = self._settled_store()
        rows = read_keys(keys, self.key_kind)[1]
        rows = np.unique(rows) if isinstance(rows, np.ndarray) else list(dict.fromkeys(rows))
        with self._writing():
            changes = store.core.changes
            try:
                return store.forget(rows)
            finally:
                if self._means is not None and store.core.changes != changes:
                    self._means.forget(rows)

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
        store = self._settled_store()
        return self._looking(lambda: store.expired)

    @property
    def memory_bytes_(self) -> int:
        """Bytes that all keys together keep."""
        return super().memory_bytes_ + (0 if self._means is None else self._means.nbytes)

    # ---- files ------------------------------------------------------------------------------------------------------

    def saved_fields(self) -> FileFields:
        store = self._settled_store()
        return self._looking(lambda: self._written(store))

    def _written(self, store: KeyStore) -> FileFields:
        arrays, fitted = written(store, self.max_keys is not None)
        fitted |= persist.encode_features(self)
        names = self._table.names[: fitted["classes"]]  # another thread may bring more
        if names:
            fitted["labels"] = persist.encode_labels(names)
        columns = getattr(self, "columns_", None)
        if columns is not None:
            fitted |= {"columns": columns.to_json(), "key_column": self.key_column_}
        if self.prior_ is not None:
            numbers, fitted["prior"] = self.prior_.saved_fields()
            arrays |= {f"prior.{name}": array for name, array in numbers.items()}
        if self._means is not None:
            arrays |= self._means.to_file(store.start.kind)
        return arrays, fitted

    def restore_fields(self, arrays: Fields, fitted: Fitted) -> None:
        table = self._labels_from_file(fitted)
        if int(fitted["classes"]) != len(table):
            raise persist.ModelFileError("its classes do not fit its labels")
        arrays = dict(arrays)
        count = count_of(arrays, fitted)
        if self.spill is not None:  # a path that stands in a file is not opened
            self.spill = TemporarySpill()
        persist.decode_features(self, fitted)
        persist.justify(max(1, count) * self._least_bytes(), arrays, "keys", 2**28)
        prior = {name[6:]: arrays.pop(name) for name in list(arrays) if name.startswith("prior.")}
        means = KeyMeans() if self.center else None
        if means is not None:
            means.from_file(arrays, fitted["kind"])
            means.configure(*self._lifetime_of_means())
        dtype = arrays["points"].dtype.name
        start = Start(fitted["kind"], self.n_features_in_, dtype, int(fitted["seed"]), bool(fitted["timed"]))
        store = self.new_store(self.checked_parts(), start)
        store.core.add_classes(len(table))
        read_into(store, arrays, fitted)
        if "prior" in fitted:
            self._prior = UndoablePrior(copy.deepcopy(self.prior))
            self.prior_.restore_fields(prior, fitted["prior"])
        if "columns" in fitted:
            self.columns_, self.key_column_ = TableRows.from_json(fitted["columns"]), str(fitted["key_column"])
            if len(self.columns_.out_names) != self.n_features_in_:
                raise persist.ModelFileError("its columns do not fit its points")
        self._means, self._table = means, table
        self._adopt(store)

    def __getstate__(self) -> dict[str, object]:
        own = ("_store", "_prior", "_means", "_turns", "_runs_with", "columns_", "key_column_")
        return {key: value for key, value in super().__getstate__().items() if key not in own}
