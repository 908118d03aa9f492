"""`gristmill predict`: what a saved model says of new events."""

from __future__ import annotations

from typing import Any

import click

from . import options


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@options.reading
@click.option("--json", "as_json", is_flag=True, help="One JSON object an event, with its score.")
@click.option("--key", help="Column of the keys, of a model that was learned with --key; by default the same as then.")
def predict(model: str, as_json: bool, **given: Any) -> None:
    """Print what a saved model predicts, one line an event; the model does not change."""
    import json

    from .. import persist

    loaded = persist.load(model)
    if given["key"] or hasattr(loaded, "key_column_"):
        from . import keyed

        keyed.predict(loaded, given, _columns(loaded), as_json)
        return
    opened = options.Opened(given, _columns(loaded), labels=False)
    opened.as_rows(learn=False)
    for chunk in opened.stream:
        predicted = loaded.predict(chunk.X).tolist()
        if not as_json:
            click.echo("\n".join(map(str, predicted)))
            continue
        scores = loaded.decision_function(chunk.X).tolist()
        for label, score in zip(predicted, scores, strict=True):
            click.echo(json.dumps({"prediction": label, "score": score}))
    opened.say_bad()


def _columns(model: Any) -> Any:
    """The columns that the model was trained on; labels may be there or not."""
    from dataclasses import replace

    from ..streams import Columns

    columns = getattr(model, "columns_", None)
    return replace(columns, require_target=False) if isinstance(columns, Columns) else columns
