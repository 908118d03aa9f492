"""From a fitted model to its description: the only module of the export that knows how models keep what they learned."""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.estimator import core_of, run_of
from .._common.labels import halves
from ..learners.rule_learner import RuleLearner
from ..streams.rank import RankScaler
from ._checks import with_check
from ._maps import products_of
from ._plain import (
    COVERAGES,
    AdditiveExpansion,
    Body,
    Calibration,
    CategoryColumn,
    Component,
    Constant,
    Description,
    Detector,
    Expansion,
    Expert,
    ExportError,
    Floats,
    FourierFeatures,
    LinearFunction,
    Mixture,
    Neighbours,
    NoveltyMixture,
    NumberColumn,
    RankMaps,
    Rows,
    Scaling,
)

if TYPE_CHECKING:
    from ..race.expert import ExpertView

#: numbers of stored points as a dense array: sparse points of very many columns would not fit into any file
LARGEST = 1 << 26

#: of all weight in a race goes round evenly after each event
_SHARES = {"classification": 0.001, "regression": 0.004}

#: (module of the package, what would work) of learners that have no exported form
_INSTEAD = {
    "pairwise": "its ranking is a sum over pairs; export a KernelClassifier on the same rows",
    "similarity": "its similarity may be any function; train a KernelClassifier or KernelRegressor with a kernel",
    "structured": "its outputs are found by a search",
    "fleets": "it is many learners: export one of them, fleet[i] or fleet[key]",
    "fleet": "it is many learners: export one of them, fleet[i]",
    "keyed": "it is many learners: export one of them, fleet[key]",
    "unsupervised": "clusters and components are not exported; save it, and load it with gristmill",
    "features": "it is a map of rows; export the FeatureLearner that was trained with it",
    "streams": "it prepares rows; export the Prepared learner that was trained with it",
    "river": "it adapts a learner to River; train that learner by itself and export it",
    "video": "it is a learner a pixel; export a learner of one of them",
    "cluster": "it is spread over processes; export the model that it merges",
}


def snapshot(model: object) -> Any:
    """A copy of one moment, whatever other threads learn; what cannot be exported is refused by name."""
    import gristmill as g

    if isinstance(model, g.Prepared):
        if not model.__sklearn_is_fitted__():
            raise ExportError("Prepared has learned nothing yet: call fit, partial_fit or learn_one before the export")
        _refuse_others(model.pipeline.model)
    else:
        _refuse_others(model)
    return copy.deepcopy(model)


def describe(model: object) -> Description:
    """A fitted model as plain numbers. requires: nothing else changes it, as a snapshot."""
    import gristmill as g

    whole = isinstance(model, g.Prepared)
    found = _prepared(model) if whole else _learner(model, _plain_rows(model), _names_of(model))
    return with_check(found, model)


def _refuse_others(model: Any) -> None:
    name = type(model).__name__
    if isinstance(model, type):
        raise ExportError(f"{model.__name__} is a class: export a fitted model, such as {model.__name__}().fit(X, y)")
    if not isinstance(model, RuleLearner) and not hasattr(model, "experts"):
        homes = type(model).__module__.split(".")
        instead = next((_INSTEAD[home] for home in homes if home in _INSTEAD), "it is no learner that can be exported")
        raise ExportError(f"{name} cannot be exported: {instead}")
    if not model.__sklearn_is_fitted__():
        raise ExportError(f"{name} has learned nothing yet: call fit, partial_fit or learn_one before the export")
    if model.takes_objects():
        raise ExportError(
            f"the kernel {model.kernel!r} is a Python function, which no exported file can call; use a built-in kernel"
        )


# ---- rows ---------------------------------------------------------------------------------------------------------


def _names_of(model: Any) -> tuple[str, ...]:
    if hasattr(model, "feature_names_in_"):
        return tuple(str(name) for name in model.feature_names_in_)
    return tuple(f"x{at}" for at in range(int(model.n_features_in_)))


def _plain_rows(model: Any) -> Rows:
    return Rows(int(model.n_features_in_))


def _prepared(model: Any) -> Description:
    pipeline = model.pipeline
    inner = pipeline.model
    if pipeline.table is None:
        raise ExportError(
            f"Prepared({type(inner).__name__}): its events are objects of any kind, which only Python reads"
        )
    rows, names = _rows_of(pipeline)
    found = _learner(inner, rows, names)
    target = None
    if pipeline.targets is not None and pipeline.targets.scales:
        scales = pipeline.targets.scales
        centre = np.array([one.centre if one.is_known else one.mean for one in scales])
        target = centre, np.array([one.spread for one in scales])
    return _replace(
        found, kind=f"Prepared({found.kind})", target=target, half_widths=_half_widths_in(found.half_widths, target)
    )


def _half_widths_in(half_widths: Floats | None, target: tuple[Floats, Floats] | None) -> Floats | None:
    if half_widths is None or target is None:
        return half_widths
    spread = target[1][:, None]
    with np.errstate(invalid="ignore"):
        return np.where(spread == 0, np.inf, spread * half_widths)


def _replace(found: Description, **changes: Any) -> Description:
    return dataclasses.replace(found, **changes)


def _rows_of(pipeline: Any) -> tuple[Rows, tuple[str, ...]]:
    table, standard = pipeline.table, pipeline.standard
    width = int(pipeline.fixed_width or pipeline.model.n_features_in_)
    if table.is_sparse:
        scaling = None if standard is None else _scaling_of(standard, np.arange(width), width)
        return Rows(width, scaling=_weighed(scaling, pipeline, width)), tuple(table.names)
    scaling = None if standard is None else _scaling_of(standard, table.scaled_places, width)
    scaling = _weighed(scaling, pipeline, width)
    fills = _fills(table)
    if table.is_plain:
        gaps = fills if table.missing == "fill" else None
        return Rows(width, fills=gaps, scaling=scaling), tuple(map(str, table.names))
    columns = tuple(_column(column, table, fills) for column in table.layout.columns if column.kind is not None)
    unknown = tuple(column.name for column in table.layout.columns if column.kind is None)
    if not columns:
        raise ExportError(
            f"Prepared has seen no value of its columns {', '.join(map(repr, unknown))} yet: learn some first"
        )
    return Rows(width, columns, scaling=scaling, unknown=unknown), tuple(column.name for column in columns)


def _fills(table: Any) -> Floats:
    """What stands for a missing value of each column of numbers."""
    first, total, count = (np.asarray(line) for line in table.means.core.state())
    with np.errstate(invalid="ignore", over="ignore"):
        found = first + total / np.maximum(count, 1.0)
    return np.where(np.isfinite(found), found, first)


def _column(column: Any, table: Any, fills: Floats) -> NumberColumn | CategoryColumn:
    if column.kind == "text":
        raise ExportError(
            f"the column {column.name!r} is a text, whose words are hashed in Python; drop it (columns="
            f"{{{column.name!r}: 'drop'}}) or make it a category"
        )
    if column.kind == "category":
        return CategoryColumn(column.name, dict(column.values), int(column.other), int(column.missing))
    first = float(table.means.first[column.slot])
    return NumberColumn(
        column.name, column.kind, int(column.place), float(fills[column.slot]), first, int(column.missing)
    )


def _scaling_of(scaler: Any, places: Any, width: int) -> Scaling | RankMaps | None:
    """A scaling of some columns of the rows; the others stay as they are."""
    if not getattr(scaler, "n_seen_", 0) or not len(places):
        return None
    if isinstance(scaler, RankScaler):
        return _rank_maps(scaler.maps(), places, width)
    centre, spread = np.zeros(width), np.ones(width)
    found, _ = scaler.affine_map()
    _, low, high = (np.asarray(line) for line in scaler.core.state())
    if not scaler.is_centred:
        wide = high - low if scaler.method == "minmax" else np.sqrt(high / max(scaler.known_events(), 1))
    elif scaler.method == "minmax":
        wide = high - low
    else:
        count = max(scaler.known_events(), 1)
        mean = low / count
        wide = np.sqrt(np.maximum(high / count - mean * mean, 0.0))
    centre[places], spread[places] = found, np.where(wide > 0, wide, 1.0)
    return Scaling(centre, spread, scaler.method == "standard")


def _rank_maps(maps: list[tuple[Floats, Floats]], places: Any, width: int) -> RankMaps:
    most = max(2, *(len(knots) for knots, _ in maps))
    found = RankMaps(
        np.zeros(width), np.zeros((width, most)), np.zeros((width, most)), np.zeros(width), np.zeros(width)
    )
    for place, (knots, scores) in zip(places, maps, strict=True):
        found.scaled[place] = 1.0
        if len(knots) < 2:
            continue
        found.knots[place], found.scores[place] = knots[-1], scores[-1]
        found.knots[place, : len(knots)], found.scores[place, : len(scores)] = knots, scores
        few = max(1, len(knots) // 16)
        found.low_unit[place] = (knots[few] - knots[0]) / (scores[few] - scores[0])
        found.high_unit[place] = (knots[-1] - knots[-1 - few]) / (scores[-1] - scores[-1 - few])
    return found


def _weighed(scaling: Scaling | RankMaps | None, pipeline: Any, width: int) -> Scaling | RankMaps | None:
    if pipeline.relevance is None:
        return scaling
    weights = np.asarray(pipeline.relevance.weights, dtype=np.float64)
    base = scaling if scaling is not None else Scaling(np.zeros(width), np.ones(width), False)
    return dataclasses.replace(base, weights=weights)


# ---- learners -----------------------------------------------------------------------------------------------------


def _learner(model: Any, rows: Rows, names: tuple[str, ...]) -> Description:
    """A learner on rows: a kernel or feature learner, or a race of them."""
    from ..race.core import RaceCore

    task = str(model.learning_task.name)
    run = run_of(model)
    core = run.core
    if isinstance(core, _core.Detector):
        detector = _detector(core, float(model.alarm_rate))
        margin = float(core.margin)
        return Description(
            type(model).__name__, task, names, rows, (), 1, mixture=detector, offset=margin, seen=int(core.seen)
        )
    if isinstance(core, RaceCore):
        if core.is_wide:
            raise ExportError(
                f"{type(model).__name__} has learned sparse rows of {core.width:,} columns, whose scaled and hashed weights "
                "no format has; export KernelClassifier(Linear()) or KernelRegressor(Linear()) over fewer columns"
            )
        views = core.experts()
        core = views[0].race
        found = _race(model, views, rows, names)
    else:
        expert = _expert(model, core)
        offset = float(core.margin) if task == "novelty" else 0.0
        found = Description(type(model).__name__, task, names, rows, (expert,), len(expert.intercept), offset=offset)
        if task == "classification":
            found = _replace(found, calibration=_calibration(core, model))
    if task == "classification":
        found = _replace(found, labels=tuple(run.labels.names[: core.classes]))
    if task == "regression":
        half_widths = np.array([core.intervals().halves(level) for level in COVERAGES]).T
        found = _replace(found, half_widths=np.asarray(half_widths, dtype=np.float64).reshape(-1, len(COVERAGES)))
    return _replace(found, seen=int(core.seen))


def _expert(
    model: Any, core: Any, scaling: Scaling | RankMaps | None = None, target: tuple[float, float] | None = None
) -> Expert:
    intercept = np.asarray(core.intercept(), dtype=np.float64)
    return Expert(_body(model, core), intercept, scaling, bool(core.is_single), target)


def _body(model: Any, core: Any) -> Body:
    if hasattr(model, "map_"):
        return _mapped_body(model, core)
    kernel = run_of(model).parts.kernel
    points, coefs = _stored(model, core)
    if hasattr(kernel, "coordinate_parts"):
        width = points.shape[1]
        return AdditiveExpansion(
            tuple(kernel.coordinate_parts(width)), points, coefs, bool(kernel.skips_missing_values())
        )
    if not kernel.is_native:
        raise ExportError(
            f"the kernel {kernel!r} is a Python function, which no exported file can call; use a built-in kernel"
        )
    program = tuple(tuple(node) for node in kernel.kernel_program())
    neighbours = float(getattr(run_of(model).parts.rule, "neighbours", 0.0) or 0.0)
    if neighbours > 0:
        count = min(len(points), max(2, int(neighbours * len(points) + 0.5)))
        return Neighbours(program, points, core.labels()[0][:, 0].copy(), count)
    return Expansion(program, points, coefs)


def _stored(model: object, core: Any) -> tuple[Floats, Floats]:
    """Points and coefficients by slot, which is the order in which the library adds them up."""
    found, _ = core.points()
    coefs, _ = core.dual_coef()
    if isinstance(found, list):
        raise ExportError(f"{type(model).__name__} stores objects of any kind; export a model over rows of numbers")
    if isinstance(found, tuple):
        from scipy.sparse import csr_array

        indptr, indices, data, width = found
        shape = (len(indptr) - 1, int(width))
        if shape[0] * shape[1] > LARGEST:
            raise ExportError(
                f"{type(model).__name__} stores {shape[0]} sparse points of {shape[1]:,} columns: {shape[0] * shape[1]:,} "
                f"numbers as a dense table, of {LARGEST:,} at most; compress(model, size) keeps fewer points"
            )
        found = csr_array((data, indices, indptr), shape=shape).toarray()
    return np.asarray(found, dtype=np.float64), np.asarray(coefs, dtype=np.float64)


def _mapped_body(model: Any, core: Any) -> Body:
    map_, coefs = model.map_, np.asarray(core.coef(), dtype=np.float64).T
    name = type(map_).__name__
    if name == "RandomMaclaurin":
        if not map_.runs_in_core():
            raise ExportError(f"the map {map_!r} has an inner map; export a RandomMaclaurin over a dot-product kernel")
        return products_of(map_, coefs)
    if name == "RBFSampler":
        frequencies, phases = (
            np.asarray(part, dtype=np.float64) for part in (map_.random_weights_, map_.random_offset_)
        )
        return FourierFeatures(frequencies, phases, math.sqrt(2.0 / len(phases)), coefs)
    raise ExportError(f"the map {name} is a transformer of another library; export RandomMaclaurin or RBFSampler")


def _calibration(core: Any, model: Any) -> Calibration:
    return _calibration_of(core.state(), "calibration")


def _calibration_of(state: Any, name: str) -> Calibration:
    numbers, offsets = state[name], state[f"{name}_offsets"]
    square, slope = float(numbers[1]), float(numbers[2])
    unit = 1.0 / math.sqrt(square) if square > 1e-290 else 1.0
    return Calibration(slope, unit, np.asarray(offsets, dtype=np.float64))


# ---- races --------------------------------------------------------------------------------------------------------


def _race(model: Any, views: list[ExpertView], rows: Rows, names: tuple[str, ...]) -> Description:
    task, race = str(model.learning_task.name), views[0].race
    running = [view for view in views if view.runs]
    places, mixture = [view.place for view in running], race.mixture
    experts = tuple(_expert_of(view) for view in running)
    found = Description(type(model).__name__, task, names, rows, experts, int(race.outputs))
    if task == "novelty":
        mixed = _novelty_mixture(mixture, places, float(model.alarm_rate))
        return _replace(found, mixture=mixed, offset=float(mixture.margin))
    if len(race.state().get("target.held_labels", ())):  # the median until targets are measured
        return _replace(found, experts=(Expert(Constant(), np.array([float(race.target.first)])),))
    share = _SHARES[task] if getattr(model, "share", None) is None else float(model.share)
    mean, shift = _mixture(mixture, len(views), places, task, share, getattr(model, "quantile", None))
    return _replace(found, mixture=mean, experts=tuple(_shifted(expert, shift) for expert in experts))


def _shifted(expert: Expert, by: float) -> Expert:
    """An expert whose scores are larger by a constant."""
    if by == 0.0:
        return expert
    if expert.target is not None:
        return dataclasses.replace(expert, target=(expert.target[0] + by, expert.target[1]))
    return dataclasses.replace(expert, intercept=expert.intercept + by)


def _expert_of(view: ExpertView) -> Expert:
    from ..race.expert import target_of

    if view.is_trivial:
        return _simple_expert(view)
    width, scaling, scaler = view.race.width, None, view.scaler
    if scaler is not None:
        scaling = _scaling_of(getattr(scaler, "standard", scaler), np.arange(width), width)
    if view.spec.weighs and scaling is not None:
        weights = np.asarray(scaler.weights, dtype=np.float64)  # type: ignore[union-attr]
        scaling = dataclasses.replace(scaling, weights=weights)
    target, scale = None, target_of(view.race)
    if scale is not None and view.scales_target:
        target = (float(scale.centre), float(scale.spread)) if scale.is_known else (float(scale.mean), 0.0)
    model = view.model
    expert = _expert(model, core_of(model), scaling, target)
    if len(expert.intercept) < view.race.outputs:  # after a rest it knows fewer classes
        expert = _widened(expert, view.race.outputs)
    return expert


def _widened(expert: Expert, outputs: int) -> Expert:
    """Scores of fewer classes as those of more: two are -f/2 and f/2, and the others have 0."""

    def wide(table: Floats) -> Floats:
        table = halves(table) if table.shape[1] == 1 else table
        return np.pad(table, ((0, 0), (0, outputs - table.shape[1])))

    body: Any = expert.body
    body = dataclasses.replace(body, coefs=wide(body.coefs))
    return dataclasses.replace(expert, body=body, intercept=wide(expert.intercept[None])[0])


def _simple_expert(view: ExpertView) -> Expert:
    """One without a kernel: a class or a number, or a linear model of the standardised columns."""
    from ..race.baselines import ClassMeans, Line, LineOfChanges
    from ..race.expert import scaler_of

    if isinstance(view.spec.asked, ClassMeans):
        raise ExportError(
            f"a race of {view.race.classes} classes has an expert of class means, which no format has; export one of its "
            "experts: leader_, or a KernelClassifier alone"
        )

    race, width = view.race, view.race.width
    if not isinstance(view.spec.asked, Line | LineOfChanges):
        return Expert(Constant(), np.asarray(race.baseline_scores(view.place), dtype=np.float64))
    line, first, last, row = race.line(view.place)
    if line is None:
        return Expert(Constant(), np.zeros(1))
    scaling = _scaling_of(scaler_of(race, ("standard", None)), np.arange(width), width)
    weights = np.asarray(line.state()["weights"], dtype=np.float64)
    if isinstance(view.spec.asked, LineOfChanges):
        return Expert(LinearFunction(weights, np.asarray(row, dtype=np.float64)), np.array([last]), scaling)
    return Expert(LinearFunction(weights[1:], np.zeros(width)), np.array([first + weights[0]]), scaling)


def _mixture(
    mixture: Any, count: int, places: list[int], task: str, share: float, quantile: float | None
) -> tuple[Mixture, float]:
    """The weighted mean of the experts, and what is added to it where a quantile is predicted."""
    state = mixture.state()
    weights = np.asarray(state["hedge_weights"], dtype=np.float64)
    alive = float((weights > 0).sum())
    redistributed = share / alive if alive else 0.0
    components: list[Component] = []
    shifts: list[float] = []
    for expert, place in enumerate(places):
        for component in range(place, len(weights), count):
            weight = float(weights[component]) - redistributed
            if weight > 0:
                calibration = _calibration_of(state, f"{component}.calibration") if task == "classification" else None
                components.append(Component(expert, weight, calibration))
                if quantile is not None and component < count:
                    residuals = np.sort(np.asarray(state[f"residuals{place}"], dtype=np.float64))
                    shifts.append(weight * _quantile(residuals, quantile) if len(residuals) else 0.0)
    total = math.fsum(component.weight for component in components)
    mixed = Mixture(tuple(Component(v.expert, v.weight / total, v.calibration) for v in components))
    if quantile is None:
        return mixed, 0.0
    return mixed, math.fsum(shifts) / total + float(np.asarray(state["correction"]).reshape(1)[0])


def _quantile(values: Floats, share: float) -> float:
    """Weibull's plotting position, as the core has it; values: sorted."""
    n = len(values)
    place = min(max((n + 1) * share, 1.0), float(n))
    below = int(place)
    low = float(values[below - 1])
    return low if below == n else low + (place - below) * (float(values[below]) - low)


def _detector(core: Any, rate: float) -> Detector:
    state, plan = core.state(), core.plan
    if not int(state["begun"][0]):
        raise ExportError(f"AutoNovelty scores no event before the first {plan['first']}: learn more of them first")
    size, width = int(state["size"][0]), int(core.width)
    if plan["as_bytes"]:
        stored = np.asarray(state["bytes"]).reshape(plan["events"], -1)[:size, :width].astype(np.float64) - 128.0
    else:
        stored = np.asarray(state["codes"]).reshape(width, -1)[:, :size].T.astype(np.float64)
    shape = plan["trees"], -1
    columns, splits, paths = (
        np.asarray(state[f"tree_{name}"]).reshape(shape).astype(np.float64) for name in ("columns", "splits", "paths")
    )
    level = math.log(rate)
    return Detector(
        np.asarray(state["centre"]),
        np.asarray(state["unit"]),
        2.0**-4 if plan["as_bytes"] else 2.0**-16,
        127.0 if plan["as_bytes"] else 2.0**21 - 1,
        np.ascontiguousarray(stored),
        np.asarray(state["usual"])[:size],
        columns,
        splits,
        paths / int(4096 * (2 * (1 / np.arange(1, 128)).sum() - 2 * 127 / 128)),
        np.asarray(state["middle"]),
        np.asarray(state["spread"]),
        np.sort(np.asarray(state["alarm.scores"])),
        level,
        min(-level, 3.0),
        -0.2 * float(state["alarm.surplus"][0]),
    )


def _novelty_mixture(mixture: Any, places: list[int], rate: float) -> NoveltyMixture:
    state = mixture.state()
    middles, spreads = [], []
    for place in places:
        logs = np.sort(np.asarray(state[f"logs{place}"], dtype=np.float64))
        if len(logs) < 2 or not mixture.is_active(place):
            middles.append(0.0)
            spreads.append(math.nan)
            continue
        middle = _quantile(logs, 0.5)
        middles.append(middle)
        spreads.append(max(middle - _quantile(logs, 0.1), 1e-9))
    level = math.log(rate)
    reach = min(-level, 3.0)
    begins = -0.35 * float(state["surplus"][0])
    scores = np.sort(np.asarray(state["scores"], dtype=np.float64))
    return NoveltyMixture(np.array(middles), np.array(spreads), scores, level, reach, begins)
