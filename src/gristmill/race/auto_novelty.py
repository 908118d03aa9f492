"""A detector of anomalies without settings: three views of one sample in the core, or a race of one's own detectors."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base.estimator import Run
from .._base.predictors import Detector
from .._common import inputs
from .._common.ranges import Range, is_real
from .._common.seeds import seed_of
from .._common.tables import html_table
from .._common.types import Fields
from .auto import Auto
from .core import RaceCore
from .report import ExpertReport, RaceReport

Floats = npt.NDArray[np.float64]

_rate = Range("a number above 0 and below 1", lambda value: is_real(value) and 0 < value < 1)


class View:
    """One way to compare an event with the sample of `AutoNovelty`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


VIEWS = (View("distance to the nearest"), View("local density ratio"), View("isolation trees"))
_WEIGHTS = np.array([1.0, 1.0, 0.35]) / 2.35


@dataclasses.dataclass(frozen=True)
class AnomalyExplanation:
    """Why an event is an alarm or not; see `AutoNovelty.explain`.

    Attributes
    ----------
    score : float
        As `decision_function` gives it: below 0 is an alarm.
    views : dict of str to float
        The value of each view, in units of its spread: 0 is usual, lower is more unusual. The score follows the lowest.
    columns : array, one number per column
        The part of each column in the mean distance to the ten nearest events, in spreads of the column; the sum is that
        distance.
    usual : array, one number per column
        The mean value that these ten have.
    order : array of int
        The columns, the one with the largest part first; at most `top` of them.
    """

    score: float
    views: dict[str, float]
    columns: Floats
    usual: Floats
    order: npt.NDArray[np.int64]

    def __str__(self) -> str:
        verdict = "an alarm" if self.score < 0 else "no alarm"
        lines = [f"score {self.score:.4g}: {verdict}"]
        lines += [f"  {name}: {value:+.3g} spreads" for name, value in self.views.items()]
        total = float(self.columns.sum()) or 1.0
        lines += [
            f"  column {c}: {self.columns[c] / total:.0%} of the distance, usual {self.usual[c]:.4g}"
            for c in self.order
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        total = float(self.columns.sum()) or 1.0
        rows = [[str(c), f"{self.columns[c] / total:.0%}", f"{self.usual[c]:.4g}"] for c in self.order]
        views = ", ".join(f"{name} {value:+.3g} spreads" for name, value in self.views.items())
        verdict = "an alarm" if self.score < 0 else "no alarm"
        return html_table(["column", "of the distance", "usual"], rows, f"Score {self.score:.4g}: {verdict} ({views}).")


class AutoNovelty(Auto, Detector):
    """A novelty detector whose only setting is the share of alarms: one pass, bounded memory.

    Each event is compared with a sample of earlier ones in three ways: by the distance to the nearest events, by that
    distance relative to what is usual among these events (a local density ratio), and by isolation trees. Each of the
    three is standardised by its values for the last thousand events, and a soft minimum of them is the score, so that one
    low value suffices. Events with a lower score than nine tenths of the last thousand are not stored, so that anomalies
    are not learned as usual; if a quarter of all events is like that for a while, the stream has drifted and all are
    stored. An alarm is a score whose share among the last thousand is below `alarm_rate`; below the lowest twentieth
    the share is extrapolated, so that scores do not saturate. If there were too many or too few alarms, the threshold
    is corrected. There is no alarm in the first 50 events.

    Parameters
    ----------
    alarm_rate : float in (0, 1), default=0.01
        The share of events that are alarms where nothing changes.
    memory : int or str, default="1 MB"
        Memory limit of the whole model, in words or as a number of bytes. The sample holds at most 1,000 events; with
        many columns values are stored in one byte each.
    random_state : int, Generator, RandomState or None
        Seeds the sample and the trees; None is 0.
    experts : list of novelty detectors, optional
        A race of these detectors instead. Their budgets must have a size, which is then set according to the memory.
    n_jobs : int or None, default=1
        Threads, as scikit-learn counts them, of answers to many rows. The result is the same, bit for bit.

    Attributes
    ----------
    offset_ : float
        `decision_function` is `score_samples` less this.
    n_support_ : int
        Number of stored events.
    experts_, weights_ : list and array
        The three views, or the detectors of `experts`, and the weight of each.
    leader_ : learner
        A copy of the detector itself, or of the first of `experts`.

    References
    ----------
    F. T. Liu, K. M. Ting, Z.-H. Zhou, Isolation Forest, ICDM 2008.
    M. Breunig, H.-P. Kriegel, R. Ng, J. Sander, LOF: Identifying Density-Based Local Outliers, SIGMOD 2000.
    I. Gibbs, E. Candes, Adaptive Conformal Inference Under Distribution Shift, NeurIPS 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import AutoNovelty
    >>> X = np.random.default_rng(0).normal(size=(3000, 4)) * [1.0, 1000.0, 0.001, 1.0]
    >>> model = AutoNovelty(alarm_rate=0.02)
    >>> print(f"{(model.prequential(X) < 0).mean():.3f} of the events were alarms")
    0.019 of the events were alarms
    >>> model.predict([[0.0, 0.0, 0.02, 0.0]])
    array([-1])
    >>> int(model.explain([0.0, 0.0, 0.02, 0.0]).order[0])
    2
    """

    def __init__(
        self,
        alarm_rate: float = 0.01,
        memory: Any = "1 MB",
        random_state: Any = None,
        experts: Any = None,
        n_jobs: int | None = 1,
    ) -> None:
        self.alarm_rate = alarm_rate
        self.memory = memory
        self.random_state = random_state
        self.experts = experts
        self.n_jobs = n_jobs

    def checked_parts(self) -> Any:
        _rate.check(type(self).__name__, "alarm_rate", self.alarm_rate)
        return super().checked_parts()

    # ---- the core: a detector, or a race of `experts` --------------------------------------------------------------

    @property
    def _races(self) -> bool:
        return not isinstance(self._engine, _core.Detector)

    def _made(self, width: int) -> list[Any]:
        return list(self.experts)

    def new_race(self, width: int, parts: Any = None, outside: int = 0) -> RaceCore:
        name, rate, memory = self.learning_task.name, float(self.alarm_rate), self.memory_limit()
        return RaceCore(self._made(width), name, rate, memory, width, parts, outside)

    def _detector(self, width: int, outside: int = 0) -> Any:
        seed = 0 if self.random_state is None else seed_of(self.random_state)
        try:
            return _core.Detector(width, self.memory_limit(), float(self.alarm_rate), seed, outside)
        except ValueError as error:
            raise ValueError(f"{type(self).__name__}: {error}") from error

    def begin_core(self, run: Run, X: Any) -> Any:
        return self._detector(X.shape[1], self.outside_bytes) if self.experts is None else super().begin_core(run, X)

    def restored_core(self, parts: Any, state: Fields) -> Any:
        if self.experts is not None:
            return super().restored_core(parts, state)
        width = int(np.asarray(state["width"]).reshape(1)[0])
        if width < 1 or ("centre" in state and len(state["centre"]) != width):
            raise ValueError(f"it states {width} features, which do not fit the others")
        core = self._detector(width)
        core.restore(state)
        return core

    def widen(self, width: int) -> None:
        """More columns from now on: every stored event has 0 in them."""
        if self._races:
            super().widen(width)
            return
        core = self._engine
        if width < core.width:
            raise ValueError(f"a detector of {core.width} columns cannot be widened to {width}")
        core.widen(width, self.outside_bytes)
        self.n_features_in_ = width
        self.__dict__.pop("feature_names_in_", None)

    # ---- what is known ---------------------------------------------------------------------------------------------

    @property
    def offset_(self) -> float:
        """The logarithm of `alarm_rate`, once there are 50 events: `decision_function` is `score_samples` less this."""
        core = self._engine
        return float(core.mixture.margin if self._races else core.margin)

    @property
    def experts_(self) -> list[Any]:
        """The three views; with `experts` these, as they run now, without what they have learned."""
        return super().experts_ if self._races else list(VIEWS)

    @property
    def weights_(self) -> Floats:
        """The weight of each view or expert."""
        return super().weights_ if self._races else _WEIGHTS.copy()

    @property
    def n_support_(self) -> int:
        """How many events are stored."""
        return super().n_support_ if self._races else int(self._engine.size)

    @property
    def leader_(self) -> Any:
        """A copy of the detector itself, or of the first of `experts`."""
        return super().leader_ if self._races else copy.copy(self)

    def report(self) -> RaceReport:
        """The share of alarms and the views or experts; printed, it is a table."""
        if self._races:
            return super().report()
        core = self._engine
        seen, points = int(core.seen), int(core.size)
        rows = tuple(
            ExpertReport(view, float(weight), float("nan"), seen, points, "runs")
            for view, weight in zip(VIEWS, _WEIGHTS, strict=True)
        )
        return RaceReport(self.learning_task.name, seen, float(core.alarms) / max(seen, 1), rows, np.empty((0, 8)))

    def explain(self, x: Any, top: int | None = 10) -> AnomalyExplanation:
        """Which columns, and which of the three views, make one event unusual.

        Parameters
        ----------
        x : one event
        top : int or None, default=10
            How many columns `order` lists; None lists all.

        Examples
        --------
        >>> import numpy as np
        >>> from gristmill import AutoNovelty
        >>> model = AutoNovelty().fit(np.random.default_rng(0).normal(size=(1000, 3)))
        >>> why = model.explain([0.0, 9.0, 0.0])
        >>> int(why.order[0]), bool(why.columns[1] > 0.8 * why.columns.sum())
        (1, True)
        """
        if top is not None and (not isinstance(top, int | np.integer) or isinstance(top, bool) or top < 1):
            raise ValueError(f"explain: top must be a whole number >= 1 or None, got {top!r}")
        if self._races:
            raise TypeError("explain: a race of detectors has no columns of its own; explain leader_ instead")
        score = float(self.score_one(x))
        rows = self._rows(self._engine, self._read(inputs.single(x), first=False))
        columns, usual, views = (np.asarray(part)[0] for part in self._engine.explain(rows))
        order = np.argsort(-columns, kind="stable")[:top]
        named = {view.name: float(value) for view, value in zip(VIEWS, views, strict=True)}
        return AnomalyExplanation(score, named, columns, usual, order)
