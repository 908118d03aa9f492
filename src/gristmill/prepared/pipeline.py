"""Table encoder, scaler, relevance weights, target scales and learner, updated as one: the fitted state of `Prepared`."""

from __future__ import annotations

import copy
import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from .. import _core
from .._base.estimator import Run, core_of, refuse_no_weight
from .._common import inputs
from .._common.labels import LARGEST
from .._common.positions import part_of
from .._common.seqlock import SeqLock
from .._common.types import Fields, Options
from ..learners.single_events import connect
from ..streams.rank import RankScaler
from ..streams.relevance import RelevanceScaler
from ..streams.scaling import StreamScaler
from ..streams.tables.table import Table, padded
from .chunk_scores import in_core_order, joined
from .target_scalers import Targets

Found = TypeVar("Found")


class Pipeline:
    """Table, scaling, targets and learner: they change together, or not at all.

    Parameters
    ----------
    model : learner
    table : Table, or None where events are objects that only the learner understands
    scaler : StreamScaler, RelevanceScaler or None
    fixed_width : int, optional
        Columns of every row, for a learner that does not widen.
    targets : Targets, or None if labels or targets go to the learner as they are
    """

    def __init__(
        self,
        model: Any,
        table: Table | None,
        scaler: Any,
        fixed_width: int | None = None,
        targets: Targets | None = None,
    ) -> None:
        self.model, self.table, self.scaler, self.fixed_width, self.targets = model, table, scaler, fixed_width, targets
        self._seqlock = SeqLock()
        self.events: _core.EventPipeline | None = None  #: the path of single events; None until needed
        self._numbers: Any = None  # targets of the chunk that is being learned
        self._direct = False  # whether events go on to the learner's core without Python in between
        self._waits = False  # whether the learner still looks at its first events in Python
        self._model_before: Any = None  # the learner before a chunk that changes it more than once
        if not self._started:
            model.expect_columns(0)  # as many as there are, and none comes as it is

    @property
    def relevance(self) -> RelevanceScaler | None:
        return self.scaler if isinstance(self.scaler, RelevanceScaler) else None

    @property
    def standard(self) -> StreamScaler | None:
        """The scaler of the columns that have a unit."""
        found: StreamScaler | None = self.scaler.standard if isinstance(self.scaler, RelevanceScaler) else self.scaler
        return found

    def replace(
        self, model: Any = None, scaler: Any = None, table: Table | None = None, targets: Targets | None = None
    ) -> None:
        """Replace the parts that are given."""
        with self._seqlock.lock:
            self.model, self.scaler, self.table = model or self.model, scaler or self.scaler, table or self.table
            self.targets = targets or self.targets
            self._close_events()

    def is_alike(self, other: Pipeline) -> bool:
        """Whether rows of both mean the same, column by column."""
        if self.table is None or other.table is None:
            return self.table is other.table
        return self.table.is_alike(other.table)

    # ---- reading -----------------------------------------------------------------------------------------------

    def read(self, find: Callable[[], Found]) -> Found:
        """The result of `find`, all of it from one state."""
        return self._seqlock.read(find)

    def rows(self, X: Any) -> Any:
        """Samples as rows of the learner, without learning."""
        if self.table is None:
            return X
        rows = self.table.transform(X, self.standard)
        if self.relevance is not None:
            rows = self.relevance.weighed_rows(rows)
        return rows if self.fixed_width is None else padded(rows, self.fixed_width)

    def slopes(self) -> Any:
        """How fast each column of the rows moves with the column that it is made of."""
        if self.table is None:
            return 1.0
        found = np.ones(self.fixed_width or self.table.width_)
        if self.standard is not None and self.table.is_sparse:
            found = found * self.standard.column_slopes()
        elif self.standard is not None and self.table.n_scaled:
            found[self.table.scaled_places] = self.standard.column_slopes()
        return found if self.relevance is None else found * self.relevance.weights

    def unscaled(self, verb: str, answer: Any) -> Any:
        """An answer of the learner in the units of the targets."""
        if self.targets is None:
            return answer
        if verb == "explain":
            return answer.retold(self.targets)
        if verb == "predict_interval":
            return self.targets.interval(answer)
        return self.targets.interval_one(*answer) if verb == "predict_interval_one" else self.targets.outside(answer)

    def unscaled_gradient(self, gradients: object) -> Any:
        """Gradients of the learner in the units of the targets."""
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

    def learn(self, verb: str, X: Any, y: Any, known: Options) -> Any:
        """A chunk through table, scaling and learner; on any error, an interrupt at any moment included, all are as they
        were, or all have learned it.

        The core learns a chunk in one call, so its count of samples decides: where it has learned the chunk, the few counts
        behind it follow; where it has not, or where a copy from before the chunk was kept, everything is rolled back.
        """
        seqlock = self._seqlock
        with seqlock.lock:
            seqlock.moment += 1
            try:
                self._close_events()
                self._model_before = None
                mark, model, seen = self._snapshot(), self.model, self._seen()
                before = dict(model.__dict__)
                try:
                    return self._learn(verb, X, y, known)
                except BaseException:
                    if self._model_before is None and seen is not None and self._seen() != seen:
                        self._finish(mark[2])
                        raise
                    self._rollback(mark)
                    if self._model_before is not None:
                        self.model = self._model_before
                    else:
                        for name in model.__dict__.keys() - before.keys():
                            model.__dict__.pop(name, None)
                        model.__dict__.update(before)
                    raise
            finally:
                self._model_before = self._numbers = None
                seqlock.moment += 1

    def _seen(self) -> Any:
        """How many samples the core has learned; None before the first."""
        run = self.model.fitted_run
        return None if run is None or run.core is None else getattr(run.core, "seen", None)

    def _finish(self, targets: Targets | None) -> None:
        """Finish what the core has learned: the counts of the scales, which were `targets` before, and of relevance."""
        if targets is not None:
            targets.begin(self._numbers)
            targets.learn(self._numbers)
            self.targets = targets
        if self.relevance is not None:
            self.relevance.position = self._seen()

    def learn_one(self, x: Any, y: Any) -> bool:
        """Learn one event in the core; False, and nothing is done, if it needs the path of chunks."""
        with self._seqlock.lock:
            events = self.single_events()
            if events is None:
                return False
            return events.learn_one(x, y) if self._direct else self._learn_row(events, x, y)

    def single_events(self) -> _core.EventPipeline | None:
        """The core's path of single events through table, scaling and learner as they are now; None if there is none."""
        with self._seqlock.lock:
            if self.events is None and self._started:
                self.events = self._events_as_of_now()
            return self.events

    def _close_events(self) -> None:
        """Before table, scaling, targets or learner change in another way."""
        if self.events is not None:
            self.events.close()
        self.events = None

    def _events_as_of_now(self) -> _core.EventPipeline | None:
        table, scaler, relevance, targets, run = (
            self.table,
            self.standard,
            self.relevance,
            self.targets,
            self.model.fitted_run,
        )
        if self._seen() is None:  # a rollback needs the count of the core
            return None
        if table is None or not table.core.is_readable or not (scaler is None or type(scaler) is StreamScaler):
            return None
        scaling = None if scaler is None or not table.n_scaled else scaler.core
        width, fits = self.fixed_width or table.width_, scaling is None or scaling.width == table.n_scaled
        weights = [] if relevance is None else relevance.weights.tolist()
        if len(weights) not in (0, width) or (targets is not None and len(targets.scales) != 1):
            return None
        if table.is_sparse or not fits or run.core.width != width:
            return None
        quiet = sys.maxsize if targets is None else targets.due() - 1 if targets.is_known else 0
        quiet = quiet if relevance is None else min(quiet, relevance.due() - 1)
        events = _core.EventPipeline(
            table.core, scaling, weights, width, table.index, table.left_out, self._seqlock, quiet
        )
        if relevance is not None:
            events.count_for(relevance)
        self._waits = getattr(run, "early", None) is not None
        self._direct = connect(events, self.model, LARGEST, None if targets is None else targets.scales[0])
        return events

    def _learn_row(self, events: _core.EventPipeline, x: object, y: Any) -> bool:
        """One event whose row is made by the core for a learner that is not all of it."""
        model, seqlock, targets = self.model, self._seqlock, self.targets
        number, label = None, y
        if targets is not None:
            if type(y) not in (float, int, np.float64) or not abs(y) <= LARGEST:
                return False
            number = np.array([float(y)])
            label = float(targets.inside(number)[0])
        core = core_of(model)
        seen, scales = core.seen, None if targets is None else targets.copy()
        rows = self.table.n_seen_ if self.table is not None else 0
        self._numbers = number
        seqlock.moment += 1
        try:
            row = events.learn(x)
            if row is None:
                return False
            model.learn_one(row, label)
            self._finish(None if scales is None else scales.copy())
        except BaseException:
            if core.seen != seen:  # the learner has it
                self._finish(scales)
            elif self.table is not None and self.table.n_seen_ != rows:
                events.rollback()
            raise
        finally:
            seqlock.moment += 1
        if self._waits and getattr(model.fitted_run, "early", None) is None:
            self._close_events()  # the core may go on by itself
        return True

    def _learn(self, verb: str, X: Any, y: Any, known: Options) -> Any:
        if self.table is None and self.targets is None:
            return getattr(self.model, verb)(X, y, **known)
        rows = self._encoded(X)
        count = len(rows) if isinstance(rows, list) else rows.shape[0]
        if self.targets is not None:
            y = self.targets.read(type(self.model).__name__, y, count)
            self._numbers = y
            self.targets.begin(y)
            if "sample_weight" in known:  # not every part of a chunk comes to look at them
                known = {**known, "sample_weight": inputs.weights(known["sample_weight"], count)}
        if verb == "fit" and max(self.model.n_passes(), known.get("passes", 1)) > 1:
            return self._fit_batch(X, y, known)
        edges = self._cuts(count)
        if self._started and (len(edges) > 2 or self._changes_twice(rows, count)):
            self._model_before = self.model.copied()
        if len(edges) > 2:
            return self._in_parts(edges, verb, rows, y, known)
        self._follow(0)
        return self._step(verb, rows, y, known)

    def _changes_twice(self, rows: Any, count: int) -> bool:
        """Whether a chunk of one part changes the learner beside learning: it widens, or a map or a scale is renewed."""
        if self.table is not None and self.fixed_width is None and rows.shape[1] > core_of(self.model).width:
            return True
        if isinstance(self.standard, RankScaler) and self.standard.passages:
            return True
        if self.targets is not None and count >= self.targets.due():
            return True
        return self.relevance is not None and count >= self.relevance.due()

    def _encoded(self, X: Any) -> Any:
        """A chunk as rows, by columns and scaling that have seen it."""
        if self.table is None:
            return inputs.objects(X)
        texts = "text" in self.table.columns.values()  # rows are wide from the beginning
        if self.fixed_width is None and not self._started and (texts or not self.model.widens):
            self.fixed_width = self._bound(X)
        rows = self.table.learn_transform(X, self.standard)
        if not self._started:
            self.model.expect_columns(self.table.n_first)
        return rows

    def _fit_batch(self, X: Any, y: Any, known: Options) -> Any:
        """Several passes: all of it is looked at before any of it is learned."""
        if self.relevance is not None:
            raise ValueError(
                'Prepared: scale="relevance" renews its weights at positions of a stream, which comes once; use passes=1, '
                'or scale="standard"'
            )
        if self.targets is not None:
            self.targets.learn_batch(y)
            y = self.targets.inside(y)
        rows = self.rows(X)
        self._reserve(rows)
        return self.model.fit(rows, y, **known)

    def _cuts(self, count: int) -> list[int]:
        """Where a chunk is cut: rows become wider, weights are renewed, or the scale of targets is measured again."""
        edges = {0, count}
        if self.table is not None and self.fixed_width is None:
            edges |= {row for row, _ in self.table.growth}
        if self.targets is not None:
            edges |= self.targets.cuts(count)
        if self.relevance is not None:
            edges |= self.relevance.renewals(count)
        if isinstance(self.standard, RankScaler) and self.table is not None and self.table.n_scaled:
            edges |= self.standard.passages.keys()
        return sorted(edges)

    def _follow(self, row: int) -> None:
        """Stored points become what they are by the maps that were renewed before this row of the chunk."""
        if not isinstance(self.standard, RankScaler) or not self._started or not self.standard.passages:
            return
        passage, core = self.standard.passages.get(row), core_of(self.model)
        if passage is None or not hasattr(core, "follow_ranks"):  # random features are of no point
            return
        assert self.table is not None
        places = np.asarray(self.table.scaled_places, dtype=np.int64)
        weights = np.ones(core.width) if self.relevance is None else np.ascontiguousarray(self.relevance.weights)
        core.follow_ranks(passage, places[places < core.width], weights)

    def _in_parts(self, edges: Sequence[int], verb: str, rows: Any, y: Any, known: Options) -> Any:
        model, count = self.model, edges[-1]
        run = model.fitted_run
        # Labels are looked at before any of them is learned.
        _, numbers, met = model._targets(
            Run(model.checked_parts()) if run is None else run, y, count, known.get("classes")
        )
        if verb == "fit":
            refuse_no_weight(known.get("sample_weight"))
            verb = "partial_fit"  # of a learner that has learned nothing
            known = {name: value for name, value in known.items() if name != "passes"}
        scores: list[Any] = []
        for start, stop in itertools.pairwise(edges):
            part = slice(start, stop)
            self._follow(start)
            some = {name: part_of(value, part) if np.ndim(value) and name != "classes" else value
                    for name, value in known.items()}  # fmt: skip
            some_rows = rows[part] if isinstance(rows, list) else rows[part, : self._width_at(start, rows.shape[1])]
            scores.append(self._step(verb, some_rows, part_of(y, part), some))
            if verb == "prequential":
                scores[-1] = in_core_order(model, scores[-1])
        if verb == "prequential_interval":
            return np.concatenate(scores)
        return joined(model, scores, numbers, met) if verb == "prequential" else model

    def _width_at(self, row: int, whole: int) -> int:
        """How many columns a row of the last chunk has, where all of its rows together have `whole`."""
        assert self.table is not None
        if self.fixed_width is not None or not self.table.growth:
            return whole
        before = core_of(self.model).width if self._started else 1
        return next((wide for start, wide in reversed(self.table.growth) if start <= row), before)

    def _step(self, verb: str, rows: Any, y: Any, known: Options) -> Any:
        """Rows that are equally wide, without a renewal between them."""
        if self.fixed_width is not None:
            rows = self._padded(rows)
        if not self._started:
            self._reserve(rows)
        elif self.fixed_width is None and self.table is not None and rows.shape[1] > core_of(self.model).width:
            self._reserve(rows)
            try:
                self.model.widen(rows.shape[1])
            except ValueError as error:
                raise ValueError(self._too_wide(rows.shape[1], error)) from error
        relevance = self.relevance
        if relevance is None:
            return self._learn_scaled(verb, rows, y, known)
        assert self.table is not None
        owners = self.table.owners
        relevance.widen(rows.shape[1], owners)
        due = rows.shape[0] == relevance.due()
        found = self._learn_scaled(verb, relevance.weighed_rows(rows), y, known)
        relevance.position = relevance.n_seen_ + rows.shape[0]
        if due:
            relevance.renew(self.model, owners)
        return found

    def _reserve(self, rows: Any) -> None:
        """Take the memory of table and scaling from that of a learner which shares out its memory.

        The bytes depend on the width of the rows alone, and not on what comes later in the chunk.
        """
        if self.table is None or self.table.is_sparse or not hasattr(type(self.model), "outside_bytes"):
            return
        width, scaler = rows.shape[1], self.standard
        scaling = 0 if scaler is None else scaler.bytes_for(self.table.scaled_at(width))
        self.model.outside_bytes = self.table.bytes_at(width) + scaling

    def _too_wide(self, width: int, error: ValueError) -> str:
        """What an error of a learner that cannot widen means for the table."""
        assert self.table is not None
        owners = np.asarray(self.table.owners)[:width]
        most = int(np.bincount(owners).argmax())
        name, of_it = list(self.table.kinds_)[most], int((owners == most).sum())
        new = self.table.get_feature_names_out()[width - 1]
        return (
            f"Prepared: {new!r} would be column {width} of the rows, {of_it} of which are made of column {name!r}, and "
            f"{type(self.model).__name__} cannot learn so many: {error}. Give it more memory, or leave the column out (drop)"
        )

    def _learn_scaled(self, verb: str, rows: Any, y: Any, known: Options) -> Any:
        """Let the learner learn rows with scaled targets; its answer is in the units of the targets."""
        targets = self.targets
        if targets is None:
            return getattr(self.model, verb)(rows, y, **known)
        if targets.is_known:
            found = getattr(self.model, verb)(rows, targets.inside(y), **known)
            if verb == "prequential":
                found = targets.outside(found)
            elif verb == "prequential_interval":
                found = targets.interval(found)
        else:
            found = self._skip(verb, rows, y, known)
        moved = targets.learn(y)
        if moved is not None:
            core_of(self.model).rescale_targets(*moved)
        return found

    def _skip(self, verb: str, rows: Any, y: Any, known: Options) -> Any:
        """Count samples that come before the scale of targets is known, without learning them."""
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

    def _padded(self, rows: Any) -> Any:
        assert self.table is not None
        assert self.fixed_width is not None
        if rows.shape[1] > self.fixed_width:
            raise ValueError(
                f"{type(self.model).__name__} cannot take a column that the first event did not have: "
                f"{self.table.get_feature_names_out()[self.fixed_width]!r}; give the kinds (columns=), or drop it (drop)"
            )
        return padded(rows, self.fixed_width)

    # ---- undo and copies --------------------------------------------------------------------------------------------

    def _snapshot(self) -> Any:
        table = None if self.table is None else self.table.snapshot()
        targets = None if self.targets is None else self.targets.copy()
        return table, None if self.scaler is None else self.scaler.snapshot(), targets

    def _rollback(self, mark: Any) -> None:
        if self.table is not None:
            self.table.rollback(mark[0])
        if self.scaler is not None:
            self.scaler.rollback(mark[1])
        self.targets = mark[2]

    def __getstate__(self) -> dict[str, object]:
        kept = ("model", "table", "scaler", "fixed_width", "targets")
        return self.read(lambda: copy.deepcopy({name: self.__dict__[name] for name in kept}))

    def __setstate__(self, state: Fields) -> None:
        Pipeline.__init__(self, **state)
