"""`--key` of `gristmill learn` and `gristmill predict`: a model a key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ..._common.types import Options
from .. import messages, options
from . import cluster as spread
from . import defaults as keyed_fleet
from . import report as keyed_report

_TABLE = "--key names a column: it takes a table (CSV, JSON lines, Parquet, Arrow)"


def learn(given: Options, resumed: Any) -> None:
    """A model a key along one stream; the total, the worst keys and their curves."""
    from ...evaluate.keyed import KeyedRun
    from ...evaluate.run import Run, followers_of

    if given["delay"]:
        raise click.UsageError("--delay cannot be used with --key")
    if given["spill"] and not given["max_keys"]:
        raise click.UsageError("--spill stores the keys beyond --max-keys; give --max-keys too")
    if given["time"] and not (given["ttl"] or resumed is not None):
        raise click.UsageError("--time is the clock of --ttl; give --ttl too")
    opened = options.OpenedSource(given, resumed, key=_key_of(given, resumed, "--resume"))
    if opened.table is None:
        raise click.UsageError(_TABLE)
    chosen = _resumed(given, resumed, opened) if resumed is not None else keyed_fleet.chosen(opened, given)
    opened.stream = spread.chained(opened, given)
    with spread.over(chosen.fleet, given) as held:
        run = KeyedRun(held)
        rest = spread.Rest(opened.stream, held)
        followers = followers_of(
            {chosen.name: run}, rest.stream, given["metrics"] or None, given["window"], given["warmup"],
            details=bool(given["report"]),
        )  # fmt: skip
        pass_ = Run(followers, rest.stream, after_chunk=messages.TellLater(), baselines=True)
        try:
            comparison = pass_.go()
        except ValueError:
            if pass_.error is not None or not rest.is_empty:
                raise
            _nothing_new(given, opened, held)
            return
        _finish(given, opened, comparison, run, chosen.about, pass_.error)
        if pass_.error is None:  # a bad row is one line
            messages.print_outcome(comparison)
    opened.print_bad_rows()
    options.end(pass_.error, comparison[0].stopped, comparison[0].n_events)


def _nothing_new(given: Options, opened: Any, fleet: Any) -> None:
    """An earlier run has learned everything: the model is still saved."""
    fleet.columns_, fleet.key_column_ = opened.settled(), opened.key
    click.echo("nothing is new: every event was learned before", err=True)
    if given["model_path"]:
        options.save(fleet, given["model_path"], fleet.n_seen_)
    if given["report"]:
        click.echo("no report is written, because there is nothing to report", err=True)
    opened.print_bad_rows()


def _key_of(given: Mapping[str, object], model: Any, where: str) -> str:
    """The key column: as given, or as the model was trained; the two must not differ."""
    from ...fleets.keyed import KeyedFleet

    if model is not None and not isinstance(model, KeyedFleet):
        raise click.UsageError("--key needs a model that was learned with --key; this one is a single learner")
    known = getattr(model, "key_column_", None)
    if given["key"] and known and given["key"] != known:
        raise click.UsageError(
            f"--key {given['key']}: the model of {where} was learned with the keys of column {known!r}; "
            f"omit --key, or name the column {known!r}"
        )
    key = given["key"] or known
    if key is None:
        raise click.UsageError("the model holds one learner per key; give --key COLUMN")
    return str(key)


def _resumed(given: Options, fleet: Any, opened: Any) -> keyed_fleet.Chosen:
    """A saved model, continued with its own clock."""
    if fleet.ttl is not None and fleet.reads_times is not None and fleet.reads_times != bool(given["time"]):
        raise click.UsageError(
            "the model of --resume was learned with --time; give the same column again"
            if fleet.reads_times
            else "--time: the model of --resume was learned without it, and the clock of --ttl cannot change; omit it"
        )
    name = f"{type(fleet).__name__} of {given['resume']}"
    about = {"stream": opened.stream.name, "key": str(opened.key), "continued from": str(given["resume"])}
    return keyed_fleet.Chosen(fleet, name, {**about, "learner of each key": repr(fleet.prototype)})


def _finish(given: Any, opened: Any, comparison: Any, run: Any, about: dict[str, str], error: Exception | None) -> None:
    fleet, result = run.fleet, comparison[0]
    if error is None:
        messages.tell_guesses()
    fleet.columns_, fleet.key_column_ = opened.settled(), opened.key
    if given["model_path"] and (error is None or given["keep"]):
        options.save(fleet, given["model_path"], result.n_events)
    options.log_drifts(comparison)
    worst = run.worst(given["worst"], keyed_report.LEAST)
    if given["as_json"]:
        click.echo(keyed_report.as_json(result, run, worst))
    else:
        options.show(comparison, False)
        click.echo(keyed_report.table(run, worst, given))
    if given["report"]:
        title = f"gristmill learn {opened.stream.name} --key {opened.key}"
        keyed_report.write(given["report"], comparison, title, about, run, worst, given)


class Members:
    """A fleet as one model of `KeyedRows`; counts unknown keys."""

    def __init__(self, fleet: Any) -> None:
        self.fleet = fleet
        self._known = {str(key) for key in fleet.keys_}
        self.rows, self.unknown = 0, dict[str, None]()

    @property
    def classes_(self) -> Any:
        return self.fleet.classes_

    def predict(self, X: Any) -> Any:
        return self.fleet.predict(X.keys, X.rows)

    def decision_function(self, X: Any) -> Any:
        return self.fleet.decision_function(X.keys, X.rows)

    def predict_proba(self, X: Any) -> Any:
        return self.fleet.predict_proba(X.keys, X.rows)

    def known(self, keys: list[str]) -> list[bool]:
        """Whether each key has its own model; the unknown ones are counted."""
        known = [key in self._known for key in keys]
        self.rows += len(known) - sum(known)
        self.unknown |= dict.fromkeys(key for key, was in zip(keys, known, strict=True) if not was)
        return known

    def report(self) -> None:
        """Print the number of unknown keys to standard error."""
        if not self.rows:
            return
        by = "the model of all keys" if self.fleet.prior_ is not None else "an untrained model"
        first = next(iter(self.unknown))
        count = keyed_report.counted(self.rows, "row") + f" of {keyed_report.counted(len(self.unknown), 'key')}"
        click.echo(f"{count} that the model has not learned, such as {first!r}: predicted by {by}", err=True)


def predict(fleet: Any, given: Options, as_json: bool, proba: bool, answers: Any, show: Any) -> None:
    """Predict each row by the model of its key; an unknown key has an empty model."""
    opened = options.OpenedSource(given, fleet, learn=False, key=_key_of(given, fleet, "predict"))
    if opened.table is None:
        raise click.UsageError(_TABLE)
    members = Members(fleet)
    for chunk in opened.stream:
        known = members.known(chunk.X.keys)
        found = answers(members, chunk.X, as_json, proba, None)
        show({"key": chunk.X.keys, "known": known, **found} if as_json else found)
    members.report()
    opened.print_bad_rows()
