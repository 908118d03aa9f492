"""`--key` of `gristmill learn` and `gristmill predict`: a model a key."""

from __future__ import annotations

import json
from typing import Any

import click

from . import options, spread

#: events that a key must have had to be among the worst
_LEAST = 10
_DEFAULT = "KernelClassifier(budget=Merge(100))"
_DEFAULT_REGRESSOR = "KernelRegressor(budget=Merge(100))"


def learn(given: dict[str, Any], resumed: Any) -> None:
    """A model a key along one stream; the total, the worst keys and their curves."""
    from ..evaluate.keyed import KeyedRun
    from ..evaluate.run import prequential

    if given["delay"]:
        raise click.UsageError("--delay does not go with --key")
    key = _key_of(given, resumed)
    opened = options.Opened(given, resumed, key=key)
    if opened.table is None:
        raise click.UsageError("--key names a column: it takes a table (CSV, JSON lines, Parquet, Arrow)")
    if resumed is None:
        workshop = options.Workshop(opened, given)
        name = _text(given, workshop.labels)
        fleet = _fleet(workshop.model(name), None if workshop.scale == "none" else workshop.scale, given)
        about = {**workshop.about(), "key": key}
    else:
        fleet, name = resumed, f"KeyedFleet of {given['resume']}"
        about = {"stream": opened.stream.name, "key": key}
    opened.stream = spread.chained(opened, given)
    with spread.over(fleet, given) as held:
        run = KeyedRun(held)
        guarded = options.Guarded(spread.after(opened.stream, held))
        try:
            result = prequential(
                run, guarded.stream, given["metrics"] or None, given["window"], None, warmup=given["warmup"], name=name
            )
        except ValueError as error:
            raise guarded.error or error from None
        _finish(given, opened, result, run, {"learner": repr(fleet.prototype), **about}, guarded.error)


def _key_of(given: dict[str, Any], model: Any) -> str:
    """The column of the keys: as said, or as the model was trained."""
    from ..keyed import KeyedFleet

    if model is not None and not isinstance(model, KeyedFleet):
        raise click.UsageError("--key goes with a model that was learned with --key; this one is a single learner")
    known = getattr(model, "key_column_", None)
    key = given["key"] or known
    if key is None:
        raise click.UsageError("the model holds a learner a key: say --key COLUMN")
    return str(key)


def _text(given: dict[str, Any], labels: Any) -> str:
    source = click.get_current_context().get_parameter_source("learner")
    if source == click.core.ParameterSource.COMMANDLINE:
        return str(given["learner"])
    numbers = labels is not None and labels.dtype.kind == "f"
    return _DEFAULT_REGRESSOR if numbers else _DEFAULT


def _fleet(model: Any, scale: str | None, given: dict[str, Any]) -> Any:
    from sklearn.base import is_regressor

    from ..keyed import KeyedFleet
    from ..learners import KernelRegressor
    from ..prepared import Prepared

    # A model of all keys finds where the targets lie and how far they spread; a model a key learns what is left.
    prior = Prepared(KernelRegressor(), scale) if is_regressor(model) else None
    fleet = KeyedFleet(Prepared(model, scale, target=None), max_keys=given["max_keys"], prior=prior)
    try:
        fleet._check_parameters()
    except TypeError as error:
        raise click.UsageError(f"--key: {error}") from None
    return fleet


def _finish(given: Any, opened: Any, result: Any, run: Any, about: dict[str, str], error: Exception | None) -> None:
    from ..evaluate.result import Comparison

    fleet = run.fleet
    if error is not None:
        result.stopped = str(error)
    fleet.columns_, fleet.key_column_ = opened.settled(), opened.key
    if given["model_path"] and (error is None or given["keep"]):
        options.save(fleet, given["model_path"], result.n_events)
    comparison = Comparison([result])
    worst = run.worst(given["worst"], _LEAST)
    if given["as_json"]:
        plain = json.loads(result.to_json())
        plain |= {"keys": len(fleet), "worst": [record.to_dict(run.measure) for record in worst]}
        click.echo(json.dumps(plain))
    else:
        options.show(comparison, False)
        click.echo(_table(run, worst, len(fleet)))
    if given["report"]:
        _report(given["report"], comparison, opened, about, run, worst)
    opened.say_bad()
    options.end(error, result.stopped, result.n_events)


def _table(run: Any, worst: list[Any], count: int) -> str:
    from ..evaluate.result import number

    if not worst:
        return f"{count:,} keys; none has had {_LEAST} events"
    most = max(max(record.curve) for record in worst)
    heads = ["key", "events", run.measure.replace("_", " ")]
    body = [[record.key, f"{record.events:,}", number(record.loss)] for record in worst]
    widths = [max(len(row[place]) for row in [heads, *body]) for place in range(3)]
    lines = [
        f"{count:,} keys; the worst of those with at least {_LEAST} events, each with its curve from 0 to {number(most)}:"
    ]
    for row, record in zip([heads, *body], [None, *worst], strict=True):
        cells = [row[0].ljust(widths[0]), row[1].rjust(widths[1]), row[2].rjust(widths[2])]
        lines.append("  ".join([*cells, "over time" if record is None else record.sparkline(most)]))
    return "\n".join(lines)


def _report(path: str, comparison: Any, opened: Any, about: dict[str, str], run: Any, worst: list[Any]) -> None:
    from ..evaluate.displays import COLOURS, _legend_above, _tidy, pyplot
    from ..evaluate.report import run_report
    from ..evaluate.result import number

    report = run_report(comparison, f"gristmill learn {opened.stream.name} --key {opened.key}", about)
    report.heading("Worst keys")
    if worst:
        plt = pyplot()
        says = f"{run.measure.replace('_', ' ')} of the worst keys over their own events"
        figure, ax = plt.subplots(figsize=(7.0, 3.4), layout="constrained")
        for place, record in enumerate(worst):
            share = [(point + 1) / len(record.curve) for point in range(len(record.curve))]
            ax.plot(share, record.curve, color=COLOURS[place % len(COLOURS)], label=record.key)
        ax.set(xlabel="share of the key's events", ylabel=run.measure.replace("_", " "))
        ax.set_ylim(bottom=0)
        _legend_above(ax)
        _tidy(ax)
        rows = [[record.key, f"{record.events:,}", number(record.loss)] for record in worst]
        report.table(["key", "events", run.measure.replace("_", " ")], rows).figure(figure, says)
        plt.close(figure)
    else:
        report.text(f"No key has had {_LEAST} events.")
    report.write(path)
    click.echo(f"report: {path}", err=True)


def predict(fleet: Any, given: dict[str, Any], as_json: bool) -> None:
    """What each row's own model says of it; a key that never came has seen nothing."""
    opened = options.Opened(given, fleet, learn=False, key=_key_of(given, fleet))
    if opened.table is None:
        raise click.UsageError("--key names a column: it takes a table (CSV, JSON lines, Parquet, Arrow)")
    for chunk in opened.stream:
        predicted = fleet.predict(chunk.X.keys, chunk.X.rows).tolist()
        if not as_json:
            click.echo("\n".join(map(str, predicted)))
            continue
        scores = fleet.decision_function(chunk.X.keys, chunk.X.rows).tolist()
        for key, label, score in zip(chunk.X.keys, predicted, scores, strict=True):
            click.echo(json.dumps({"key": key, "prediction": label, "score": score}))
    opened.say_bad()
