"""`gristmill predict`: predictions of a saved model for new samples."""

from __future__ import annotations

from typing import Any

import click

from .._common.types import Json
from . import live, options


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@options.reading
@click.option("--json", "as_json", is_flag=True, help="One JSON object per event, with its score.")
@click.option(
    "--key",
    help="Column that names the key, for a model that was learned with --key. Default: the same column as then.",
)
@click.option(
    "--proba", is_flag=True, help="Also print the probability of each class: CSV with a header, or in the JSON."
)
@click.option(
    "--interval",
    type=click.FloatRange(0.5, 0.99),
    metavar="COVERAGE",
    help="Also print an interval that contains this share of the targets, such as 0.9.",
)
@live.sending
@click.option(
    "--position", type=click.Path(dir_okay=False), help="With a broker: file that keeps the position in the stream."
)
def predict(model: str, as_json: bool, proba: bool, interval: float | None, **given: Any) -> None:
    """Print the predictions of a saved model, one line per event; the model does not change."""
    from .. import persist
    from ..streams.files.bad_cells import good_parts
    from ..streams.tables.frame import Frame

    given["model"] = model
    loaded = persist.load(model)
    for asked, verb, option in ((proba, "predict_proba", "--proba"), (interval, "predict_interval", "--interval")):
        if asked and (not hasattr(loaded, verb) or (proba and not hasattr(loaded, "classes_"))):
            raise click.UsageError(f"{option}: {model} holds {' '.join(repr(loaded).split())}, which has no {verb}")
    show = _Shown(as_json)
    from ..streams.brokers import is_broker

    if is_broker(given["data"]):
        live.predict(loaded, given, lambda on, X, scores: _answers(on, X, scores, proba, interval), show, as_json)
        return
    live.refuse_without_broker(given)
    if given["key"] or hasattr(loaded, "keys_"):
        from .keyed import commands as keyed

        keyed.predict(loaded, given, as_json, proba, _answers, show)
        return
    opened = options.OpenedSource(given, loaded, learn=False)
    for chunk in opened.stream:
        if not isinstance(chunk.X, Frame):
            show(_answers(loaded, chunk.X, as_json, proba, interval))
            continue
        for _, answers, _ in good_parts(
            chunk.X, None, lambda part: _answers(loaded, part, as_json, proba, interval), opened.bad
        ):
            show(answers)
    opened.print_bad_rows()


class _Shown:
    """Prints answers as they come; the first ones under a header."""

    def __init__(self, as_json: bool) -> None:
        self._as_json, self._head = as_json, True

    def __call__(self, answers: Json) -> None:
        if self._as_json:
            _as_json(answers)
        else:
            _as_text(answers, self._head and len(answers) > 1)
        self._head = False


def _answers(model: Any, X: Any, scores: bool, proba: bool, interval: float | None) -> Json:
    """Columns of answers by name; those of probabilities by class."""
    found: Json = {"prediction": model.predict(X).tolist()}
    if scores:
        found["score"] = model.decision_function(X).tolist()
    if proba:
        names = [str(name) for name in model.classes_.tolist()]
        found["proba"] = dict(zip(names, model.predict_proba(X).T.tolist(), strict=True))
    if interval is not None:
        found["low"], found["high"] = model.predict_interval(X, interval).T.tolist()
    return found


def _as_json(answers: Json) -> None:
    import json

    shares = answers.pop("proba", None)
    for place in range(len(answers["prediction"])):
        line = {name: values[place] for name, values in answers.items()}
        if shares is not None:
            line["proba"] = {name: values[place] for name, values in shares.items()}
        click.echo(json.dumps(line))


def _as_text(answers: Json, head: bool) -> None:
    """Predictions alone, one per line; with further columns CSV with a header."""
    import csv
    import io

    columns = {"prediction": answers["prediction"], **answers.get("proba", {})}
    columns |= {name: answers[name] for name in ("low", "high") if name in answers}
    if len(columns) == 1:
        click.echo("\n".join(map(str, answers["prediction"])))
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if head:
        writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    click.echo(text.getvalue(), nl=False)
