"""A learner with all that stands between it and a table, at one moment: what `Prepared` holds once it has begun."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from .. import _core
from .._base.estimator import Run, is_event, refuse_no_weight
from .._common import inputs
from .._common.seqlock import SeqLock
from ..streams.rank import RankScaler
from ..streams.relevance import RelevanceScaler
from ..streams.scaling import StreamScaler
from ..streams.tables.table import Table, padded
from .chunk_scores import cut, in_core_order, joined
from .target_scalers import Targets

Found = TypeVar("Found")


class Begun:
    """Table, scaling and learner: they change together, or not at all.

    Parameters
    ----------
    model : learner
    table : Table, or None where events are objects that only the learner understands
    scaler : StreamScaler, RelevanceScaler or None
    room : int, optional
        Columns of every row, for a learner that does not widen.
    targets : Targets, or None where the learner is told labels, or targets as they come
    """

    def __init__(
        self, model: Any, table: Table | None, scaler: Any, room: int | None = None, targets: Targets | None = None
    ) -> None:
        self.model, self.table, self.scaler, self.room, self.targets = model, table, scaler, room, targets
        self._turns = SeqLock()
        self._quick: Any = None
        self._moved: Any = None  # a run whose points have followed the scaling in this chunk, and its core before
        self._find_quick()
        if not self._started:
            model._columns = 0  # as many as there are, and none comes as it is

    @property
    def relevance(self) -> RelevanceScaler | None:
        return self.scaler if isinstance(self.scaler, RelevanceScaler) else None

    @property
    def standard(self) -> StreamScaler | None:
        """What scales the columns that have a unit."""
        found: StreamScaler | None = self.scaler.standard if isinstance(self.scaler, RelevanceScaler) else self.scaler
        return found

    def become(
        self, model: Any = None, scaler: Any = None, table: Table | None = None, targets: Targets | None = None
    ) -> None:
        """Go on with others in place of these."""
        with self._turns.lock:
            self.model, self.scaler, self.table = model or self.model, scaler or self.scaler, table or self.table
            self.targets = targets or self.targets
            self._find_quick()

    def is_alike(self, other: Begun) -> bool:
        """Whether rows of both mean the same, column by column."""
        if self.table is None or other.table is None:
            return self.table is other.table
        return self.table.is_alike(other.table)

    # ---- looking -----------------------------------------------------------------------------------------------

    def look(self, find: Callable[[], Found]) -> Found:
        """What `find` finds, all of one moment."""
        return self._turns.read(find)

    def rows(self, X: Any) -> Any:
        """Events as rows by what is known now; nothing is taken in."""
        if self.table is None:
            return X
        rows = self.table.transform(X, self.standard)
        if self.relevance is not None:
            rows = self.relevance._weighed(rows)
        return rows if self.room is None else padded(rows, self.room)

    def slopes(self) -> Any:
        """How fast each column of the rows moves with the column that it is made of."""
        if self.table is None:
            return 1.0
        found = np.ones(self.room or self.table.width_)
        if self.standard is not None and self.table.is_sparse:
            found = found * self.standard._slope()
        elif self.standard is not None and self.table.n_scaled:
            found[self.table.scaled_places] = self.standard._slope()
        return found if self.relevance is None else found * self.relevance.weights

    def told(self, verb: str, said: Any) -> Any:
        """What the learner says, in the units of the targets."""
        if self.targets is None:
            return said
        if verb == "explain":
            return said.retold(self.targets)
        if verb == "predict_interval":
            return self.targets.interval(said)
        return self.targets.interval_one(*said) if verb == "predict_interval_one" else self.targets.outside(said)

    def steep(self, gradients: Any) -> Any:
        """Gradients of what the learner says, of what is said."""
        if self.targets is None:
            return gradients
        spread = self.targets.spread
        return gradients * (spread if len(self.targets.scales) == 1 else spread[:, None])

    @property
    def memory_bytes(self) -> int:
        """Bytes of everything."""
        scaling = 0 if self.scaler is None else int(self.scaler.memory_bytes)
        scaling += 0 if self.targets is None else self.targets.nbytes
        return int(self.model.memory_bytes_) + scaling + (0 if self.table is None else self.table.nbytes)

    # ---- learning ----------------------------------------------------------------------------------------------

    def learn(self, verb: str, X: Any, y: Any, known: dict[str, Any]) -> Any:
        """A chunk through table, scaling and learner; on any error all of them are as they were."""
        with self._turns.write():
            mark, model = self._mark(), self.model
            before, self._moved = dict(model.__dict__), None
            try:
                return self._learn(verb, X, y, known)
            except BaseException:
                self._back(mark)
                if self._moved is not None:
                    run, run.core = self._moved
                if self.model is model:  # else a copy from before has taken its place
                    for name in model.__dict__.keys() - before.keys():
                        model.__dict__.pop(name, None)
                    model.__dict__.update(before)
                raise
            finally:
                self._find_quick()

    def learn_one(self, x: Any, y: Any) -> bool:
        """The short way of an event of plain numbers; False, and nothing is done, where it must take the long one."""
        turns = self._turns
        with turns.lock:
            if self._quick is None or not is_event(x):
                return False
            table, means, scaling, row, learn_one = self._quick
            x = np.ascontiguousarray(x)  # a row of a table that is kept by columns
            told = y if self.targets is None else self.targets.lone(y)
            if (told is None and self.targets is not None) or not _core.learn_row(means, scaling, x, row):
                return False
            turns.moment += 1
            try:
                learn_one(row, told)
                table.n_seen_ += 1
                if self.targets is not None:
                    self.targets.scales[0].take(float(y))
            except BaseException:
                _core.rollback_row(means, scaling)
                raise
            finally:
                turns.moment += 1
        return True

    def _find_quick(self) -> None:
        """What an event needs for the short way, where it can take it: looked up once a chunk."""
        table, scaler = self.table, self.scaler
        self._quick = None
        if table is not None and table.is_quick and type(scaler) is StreamScaler and self._started:
            row = np.empty(self.room or table.width_)
            self._quick = table, table._means.core, scaler._scaling, row, self.model.learn_one

    def _learn(self, verb: str, X: Any, y: Any, known: dict[str, Any]) -> Any:
        if self.table is None and self.targets is None:
            return getattr(self.model, verb)(X, y, **known)
        rows = self._taken(X)
        count = len(rows) if isinstance(rows, list) else rows.shape[0]
        if self.targets is not None:
            y = self.targets.read(type(self.model).__name__, y, count)
            self.targets.begin(y)
            if "sample_weight" in known:  # not every part of a chunk comes to look at them
                known = {**known, "sample_weight": inputs.weights(known["sample_weight"], count)}
        if verb == "fit" and max(self.model._passes(), known.get("passes", 1)) > 1:
            return self._fit_batch(X, y, known)
        edges = self._edges(count)
        if len(edges) > 2:
            return self._in_parts(edges, verb, rows, y, known)
        self._follow(0)
        return self._step(verb, rows, y, known)

    def _taken(self, X: Any) -> Any:
        """A chunk as rows, by columns and scaling that have seen it."""
        if self.table is None:
            return inputs.objects(X)
        texts = "text" in self.table.columns.values()  # rows are wide from the beginning
        if self.room is None and not self._started and (texts or not self.model.widens):
            self.room = self._bound(X)
        rows = self.table.learn_transform(X, self.standard)
        if not self._started:
            self.model._columns = self.table.n_first
        return rows

    def _fit_batch(self, X: Any, y: Any, known: dict[str, Any]) -> Any:
        """Several passes: all of it is looked at before any of it is learned."""
        if self.relevance is not None:
            raise ValueError(
                'Prepared: scale="relevance" renews its weights at positions of a stream, which comes once; use passes=1, '
                'or scale="standard"'
            )
        if self.targets is not None:
            self.targets.learn_batch(y)
            y = self.targets.inside(y)
        return self.model.fit(self.rows(X), y, **known)

    def _edges(self, count: int) -> list[int]:
        """Where a chunk is cut: rows become wider, weights are renewed, or targets are measured anew."""
        edges = {0, count}
        if self.table is not None and self.room is None:
            edges |= {row for row, _ in self.table.growth}
        if self.targets is not None:
            edges |= self.targets.edges(count)
        if self.relevance is not None:
            edges |= self.relevance.renewals(count)
        if isinstance(self.scaler, RankScaler) and self.table is not None and self.table.n_scaled:
            edges |= self.scaler.passages.keys()
        return sorted(edges)

    def _follow(self, row: int) -> None:
        """Stored points become what they are by the maps that were renewed before this row of the chunk."""
        if not isinstance(self.scaler, RankScaler) or not self._started or not self.scaler.passages:
            return
        passage, run = self.scaler.passages.get(row), self.model._run
        state = None if passage is None else run.core.state()
        if (
            passage is None
            or state is None
            or not isinstance(state.get("points"), np.ndarray)
            or not len(state["points"])
        ):
            return
        assert self.table is not None
        points, places = np.array(state["points"]), np.asarray(self.table.scaled_places)
        places = places[places < points.shape[1]]
        scaled = np.zeros((len(points), passage.width))
        scaled[:, : len(places)] = points[:, places]
        points[:, places] = passage.follow(scaled)[:, : len(places)]
        self._moved = self._moved or (run, run.core)
        run.core = self.model._restored(run.parts, {**state, "points": points})
        run.short = None

    def _in_parts(self, edges: Sequence[int], verb: str, rows: Any, y: Any, known: dict[str, Any]) -> Any:
        model, count = self.model, edges[-1]
        run = model._run
        # Labels are looked at before any of them is learned.
        _, numbers, met = model._targets(Run(model._parts()) if run is None else run, y, count, known.get("classes"))
        if verb == "fit":
            refuse_no_weight(known.get("sample_weight"))
            verb = "partial_fit"  # of a learner that has learned nothing
            known = {name: value for name, value in known.items() if name != "passes"}
        spare = None if run is None else copy.copy(model)
        said: list[Any] = []
        try:
            for start, stop in itertools.pairwise(edges):
                part = slice(start, stop)
                self._follow(start)
                some = {name: cut(value, part) if np.ndim(value) and name != "classes" else value
                        for name, value in known.items()}  # fmt: skip
                some_rows = rows[part] if isinstance(rows, list) else rows[part, : self._width_at(start, rows.shape[1])]
                said.append(self._step(verb, some_rows, cut(y, part), some))
                if verb == "prequential":
                    said[-1] = in_core_order(model, said[-1])
        except BaseException:
            if spare is not None:
                self.model = spare
            raise
        if verb == "prequential_interval":
            return np.concatenate(said)
        return joined(model, said, numbers, met) if verb == "prequential" else model

    def _width_at(self, row: int, whole: int) -> int:
        """How many columns a row of the last chunk has, where all of its rows together have `whole`."""
        assert self.table is not None
        if self.room is not None or not self.table.growth:
            return whole
        before = self.model._run.core.width if self._started else 1
        return next((wide for start, wide in reversed(self.table.growth) if start <= row), before)

    def _step(self, verb: str, rows: Any, y: Any, known: dict[str, Any]) -> Any:
        """Rows that are equally wide, without a renewal between them."""
        if self.room is not None:
            rows = self._into_room(rows)
        elif self.table is not None and self._started and rows.shape[1] > self.model._run.core.width:
            self.model.widen(rows.shape[1])
        relevance = self.relevance
        if relevance is None:
            return self._tell(verb, rows, y, known)
        assert self.table is not None
        owners = self.table.owners
        relevance.widen(rows.shape[1], owners)
        due = rows.shape[0] == relevance.room()
        said = self._tell(verb, relevance._weighed(rows), y, known)
        relevance.position = relevance.n_seen_ + rows.shape[0]
        if due:
            relevance.renew(self.model, owners)
        return said

    def _tell(self, verb: str, rows: Any, y: Any, known: dict[str, Any]) -> Any:
        """Rows to the learner, with targets in its units; what it says in those of the targets."""
        targets = self.targets
        if targets is None:
            return getattr(self.model, verb)(rows, y, **known)
        if targets.is_known:
            said = getattr(self.model, verb)(rows, targets.inside(y), **known)
            if verb == "prequential":
                said = targets.outside(said)
            elif verb == "prequential_interval":
                said = targets.interval(said)
        else:
            said = self._pass_over(verb, rows, y, known)
        moved = targets.learn(y)
        if moved is not None:
            self.model._run.core.rescale_targets(*moved)
        return said

    def _pass_over(self, verb: str, rows: Any, y: Any, known: dict[str, Any]) -> Any:
        """Events of which nobody knows how their targets are measured: they count, and teach nothing."""
        assert self.targets is not None
        if verb == "fit":
            refuse_no_weight(known.get("sample_weight"))
        self.model.partial_fit(rows, self.targets.inside(y), sample_weight=np.zeros(len(y)))
        if verb == "prequential_interval":
            return self.targets.interval(np.zeros((*y.shape, 2)))
        return self.targets.means(y) if verb == "prequential" else self.model

    @property
    def _started(self) -> bool:
        return bool(self.model.__sklearn_is_fitted__())

    # ---- learners that do not widen ----------------------------------------------------------------------------

    def _bound(self, X: Any) -> int:
        """The most columns that rows can come to have, by the first event alone."""
        from ..streams.tables.frame import frame_of

        assert self.table is not None
        if hasattr(X, "tocsr"):
            return int(X.shape[1])
        scout = self.table.fresh()
        scout.learn_transform(frame_of(X)[:1])
        return scout.bound_

    def _into_room(self, rows: Any) -> Any:
        assert self.table is not None
        assert self.room is not None
        if rows.shape[1] > self.room:
            raise ValueError(
                f"{type(self.model).__name__} cannot take a column that the first event did not have: "
                f"{self.table.get_feature_names_out()[self.room]!r}; say the kinds (columns=), or leave it out (drop)"
            )
        return padded(rows, self.room)

    # ---- going back --------------------------------------------------------------------------------------------

    def _mark(self) -> Any:
        table = None if self.table is None else self.table.mark()
        targets = None if self.targets is None else self.targets.copy()
        return table, None if self.scaler is None else self.scaler._mark(), targets

    def _back(self, mark: Any) -> None:
        if self.table is not None:
            self.table.back(mark[0])
        if self.scaler is not None:
            self.scaler._back(mark[1])
        self.targets = mark[2]

    def __getstate__(self) -> dict[str, Any]:
        kept = ("model", "table", "scaler", "room", "targets")
        return self.look(lambda: copy.deepcopy({name: self.__dict__[name] for name in kept}))

    def __setstate__(self, state: dict[str, Any]) -> None:
        Begun.__init__(self, **state)
