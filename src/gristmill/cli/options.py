"""Options that several commands share, and how a name on the command line becomes a stream or a learner."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

import click

from . import messages, process

_GENERATORS = (
    "drifting_digits", "drifting_mixture", "switching_mixture", "silk_sequence", "two_gaussians", "sea",
    "rotating_hyperplane",
)  # fmt: skip
FALLBACK = "passive_aggressive(size=300)"  # with --kernel, and for rows too wide for a race
WIDEST = 2000  # columns that a race is run over
_PEEK = 1000  # events from which the width of the kernel is found


def together(*decorators: Callable[..., Any]) -> Callable[..., Any]:
    def apply(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return apply


reading = together(
    click.argument("data", default="-"),
    click.option("--format", "format_", type=click.Choice(["csv", "libsvm", "jsonl", "parquet", "arrow"]),
                 help="Of the data; by the name of the file otherwise, of standard input CSV."),
    click.option("--target", default="last", show_default=True, help="Column of the labels, or 'none'."),
    click.option("--column", "kinds", multiple=True, metavar="NAME=KIND",
                 help="number, boolean, category, time or text, where the first value tells otherwise; may be repeated."),
    click.option("--drop", multiple=True, metavar="NAME", help="Leave a column out; may be repeated."),
    click.option("--missing", type=click.Choice(["fill", "raise"]), default="fill", show_default=True,
                 help="A gap is filled and flagged, or is a bad row."),
    click.option("--features", type=click.IntRange(1, 2**31 - 2), help="Number of features of LIBSVM text."),
    click.option("--skip-bad", is_flag=True, help="Count rows that cannot be read and go on."),
    click.option("--quarantine", type=click.Path(dir_okay=False), help="File for what --skip-bad skips."),
    click.option("--limit", type=click.IntRange(min=1), help="Read at most so many events."),
)  # fmt: skip
running = together(
    click.option("--kernel", default="auto", show_default=True,
                 help="For learners that name none; auto: a Gaussian as wide as the median distance."),
    click.option("--scale", type=click.Choice(["auto", "standard", "minmax", "rank", "none"]), default="auto",
                 show_default=True, help="Online scaling; auto: standard for tables, none for LIBSVM."),
    click.option("--metric", "metrics", multiple=True, help="error, roc_auc, mae, ...; may be repeated."),
    click.option("--window", default=1000, show_default=True, type=click.IntRange(min=1),
                 help="Of rolling metrics."),
    click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0),
                 help="Of everything random."),
    click.option("--json", "as_json", is_flag=True, help="JSON lines instead of a table."),
    click.option("--report", type=click.Path(dir_okay=False), help="Write a self-contained HTML report."),
)  # fmt: skip


def is_said(name: str) -> bool:
    """Whether an option was given on the command line."""
    return click.get_current_context().get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE


#: options that name a file to be written
_WRITTEN = {
    "model_path": "--model",
    "report": "--report",
    "quarantine": "--quarantine",
    "spill": "--spill",
    "to": "--to",
    "dead_letters": "--dead-letters",
    "position": "--position",
}
#: options that name a file to be read; --resume and --model may be one file
_READ = {"data": "DATA", "more": "MORE", "model": "MODEL", "resume": "--resume", "replay": "--replay"}


def check_places(options: dict[str, Any]) -> None:
    """Check before the run that every output path is writable and distinct from the other files of the run."""
    written = {
        name: options[option].removeprefix("file://")
        for option, name in _WRITTEN.items()
        if _is_file(options.get(option))
    }
    for name, given in written.items():
        path = through_links(given)
        folder = os.path.dirname(path) or "."
        if not os.path.isdir(folder):
            raise click.UsageError(f"{name} {given}: there is no folder {folder}")
        if os.path.islink(path) or (os.path.exists(path) and not os.path.isfile(path)):
            raise click.UsageError(f"{name} {given}: it is not a file")
        if not os.access(path if os.path.exists(path) else folder, os.W_OK):
            raise click.UsageError(f"{name} {given}: it may not be written to")
    for place, (name, given) in enumerate(written.items()):
        for other, path in list(written.items())[:place]:
            if _same_file(given, path):
                raise click.UsageError(f"{name} {given}: it is the file of {other}; give each a file of its own")
        for other, path in _files_read(options):
            if _same_file(given, path) and (name, other) != ("--model", "--resume"):
                raise click.UsageError(f"{name} {given}: it is the file of {other}, which would be lost; give another")


def _is_file(place: Any) -> bool:
    """Whether an option names a file; --to and --dead-letters take URLs, too."""
    return bool(place) and place != "-" and ("://" not in place or place.startswith("file://"))


def _files_read(options: dict[str, Any]) -> list[tuple[str, Any]]:
    """The files that a command reads, each with the name of its option."""
    found: list[tuple[str, Any]] = []
    for option, name in _READ.items():
        given = options.get(option) or ()
        found += [(name, path) for path in ([given] if isinstance(given, str) else given)]
    data = options.get("data")
    if data == "-":
        found.append(("standard input", 0))
    elif data and not os.path.exists(data):
        from .. import datasets

        if data in datasets.names():
            with contextlib.suppress(ValueError, OSError):  # it does not exist: reported later
                found.append(("DATA", str(datasets.path_of(data))))
    return found


def _same_file(one: str, other: Any) -> bool:
    """Whether two paths, or a path and an open file, are one file, under whatever names."""
    if isinstance(other, str):
        other = other.removeprefix("file://")
        if os.path.realpath(one) == os.path.realpath(other):
            return True
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them is not there
        return False


def through_links(path: str) -> str:
    """The file that a path leads to: a model replaces its file at a stroke, and a link to it is to stay a link."""
    return os.path.realpath(path) if os.path.islink(path) else path


def save(model: Any, path: str, n_events: int) -> None:
    """Save the model to --model and print the path."""
    model.save(through_links(path))
    click.echo(f"model: {path} after {n_events:,} events", err=True)


class OpenedSource:
    """A stream with what is known about where it came from.

    Parameters
    ----------
    options : of the command line
    model : Prepared, optional
        One that has learned before: its table is gone on with.
    learn : bool
        False: the labels may be missing, and nothing new is taken in.
    key : str, optional
        The column that holds the key of a row.
    bad : BadRows, optional
        Of a file before this one.
    """

    def __init__(
        self, options: dict[str, Any], model: Any = None, learn: bool = True, key: str | None = None, bad: Any = None
    ) -> None:
        from ..streams import BadRows

        check_places(options)
        if options["quarantine"] and not options["skip_bad"]:
            raise click.UsageError("--quarantine goes with --skip-bad")
        self.bad = bad if bad is not None or not options["skip_bad"] else BadRows(options["quarantine"])
        self._learn, self.key = learn, key
        self.table: Any = None  # with keys: the rows that all of their learners see
        self._labels: Any = None
        self._scout: Any = None  # of a file that is a table: goes along the stream by itself
        self.stream = self._open(options, model)
        if options["limit"]:
            self.stream = self.stream.take(options["limit"])

    def _open(self, options: dict[str, Any], model: Any) -> Any:
        from .. import datasets, streams

        data = options["data"]
        if data == "-" or os.path.exists(data) or options["format_"]:
            return self._read(options, model)
        if data in _GENERATORS:
            return getattr(streams, data)(random_state=options.get("seed", 0))
        if data in datasets.names():
            return datasets.load(data)
        import difflib

        if os.path.splitext(data)[1]:
            raise streams.StreamError(f"{data}: there is no such file")
        known = [*_GENERATORS, *datasets.names()]
        near = difflib.get_close_matches(data, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "give a file, - for standard input, or a known name"
        raise streams.StreamError(f"{data}: there is no such file, data set or generator; {hint}")

    def _read(self, options: dict[str, Any], model: Any) -> Any:
        """A file: sparse rows as they are, a table as one; by what a model has settled, if there is one."""
        from copy import deepcopy

        from ..streams import Table, read
        from ..streams.files.bad_cells import checked
        from ..streams.files.frames import Labels
        from ..streams.read import format_of

        data, shape = options["data"], options["format_"]
        target = None if options["target"] == "none" else options["target"]
        if data != "-" and os.path.isdir(data):
            return read(data, shape)  # which raises the error
        if (shape or format_of(data)) == "libsvm":
            return read(data, shape, target=target, n_features=options["features"], bad=self.bad)
        if self.key is not None:
            return self._read_keyed(options, model, target)
        known = getattr(model, "table_", None)
        if known is not None:
            target = model.target_name_ if options["target"] == "last" else target
        self._scout = deepcopy(known) if known is not None else Table(kinds_of(options), missing=options["missing"])
        self._labels = Labels(target, self._learn)
        keep = [name for name, kind in self._scout.columns.items() if kind in ("category", "text")]
        stream = read(data, shape, raw=True, target=self._labels, keep=keep, bad=self.bad)
        return checked(stream, self._scout, self.bad, self._learn)

    def _read_keyed(self, options: dict[str, Any], model: Any, target: Any) -> Any:
        """Rows of one width for all keys, each of which has a scaling of its own in front of its learner."""
        from ..streams import Table, read
        from ..streams.files.fixed_width import TableRows
        from ..streams.files.frames import Labels
        from ..streams.files.keyed_rows import KeyColumns, keyed_rows

        key = str(self.key)
        self.table = getattr(model, "columns_", None) or TableRows(
            Table({**kinds_of(options), key: "drop"}, missing=options["missing"]), target
        )
        self._labels = Labels(self.table.target, self._learn)
        kinds = self.table.table.columns
        keep = [key, *(name for name, kind in kinds.items() if kind in ("category", "text"))]
        stream = read(options["data"], options["format_"], raw=True, target=self._labels, keep=keep, bad=self.bad)
        named = KeyColumns(key, options.get("time"), self._labels)
        return keyed_rows(stream, self.table, named, self.bad, self._learn)

    def settle(self, model: Any) -> None:
        """Record the label column in the model: the last column of the next file may be another one."""
        if self._labels is not None:
            model.target_name_ = self._labels.name

    def settled(self) -> Any:
        """With keys: what is to be saved with their models."""
        self.table.target = self._labels.name
        return self.table

    def first_rows(self, scale: str | None) -> list[Any]:
        """The first chunks as rows, scaled as they will be: what is peeked at is not learned."""
        from ..streams import Chunk, StreamScaler, Table
        from ..streams.tables.table import padded

        first = [Chunk(getattr(chunk.X, "rows", chunk.X), chunk.y) for chunk in self.peek()]
        if not first or hasattr(first[0].X, "tocsr"):
            return first
        table, scaler = Table() if self._scout is None else self._scout.fresh(), None
        if scale is not None:
            scaler = StreamScaler(scale)
        rows = [table.learn_transform(chunk.X, scaler) for chunk in first]
        return [Chunk(padded(part, table.width_), chunk.y) for part, chunk in zip(rows, first, strict=True)]

    def peek(self, events: int = _PEEK) -> list[Any]:
        """The first chunks; the stream still begins with them."""
        from dataclasses import replace

        chunks = iter(self.stream)
        first: list[Any] = []
        ended: Exception | None = None
        try:
            while sum(chunk.X.shape[0] for chunk in first) < events:
                first.append(next(chunks))
        except StopIteration:
            pass
        except (ValueError, OSError) as error:
            if not first:
                raise
            ended = error

        def whole() -> Any:
            yield from first
            if ended is not None:
                raise ended
            yield from chunks

        self.stream = replace(self.stream, chunks=whole)
        return first

    def say_bad(self) -> None:
        """Report skipped rows on standard error."""
        if self.bad is not None:
            self.bad.close()
            if self.bad.count:
                click.echo(f"{self.bad.count} bad rows were skipped; the first: {self.bad.first}", err=True)


def kinds_of(options: dict[str, Any]) -> dict[str, str]:
    """The column kinds of --column and --drop."""
    from ..streams.tables.cells import KINDS

    found: dict[str, str] = dict.fromkeys(options["drop"], "drop")
    for text in options["kinds"]:
        name, equals, kind = text.rpartition("=")
        if not equals or not name or kind not in KINDS:
            raise click.UsageError(f"--column {text!r}: write NAME=KIND, where KIND is one of {', '.join(KINDS)}")
        found[name] = kind
    return found


class GuardedStream:
    """Ends the stream at the first error and keeps the error, so that the model learned so far can be saved."""

    def __init__(self, source: Any) -> None:
        from dataclasses import replace

        self._source = source
        self.error: Exception | None = None
        self.stream = replace(source, chunks=self._chunks)

    def _chunks(self) -> Any:
        try:
            yield from self._source
        except (ValueError, OSError) as error:
            self.error = error


class LearnerFactory:
    """Builds learners for a stream: chooses the kernel width if no kernel is given, and adds scaling."""

    def __init__(self, opened: OpenedSource, options: dict[str, Any]) -> None:
        from ..kernels import Gaussian
        from ..notation import parse
        from ..streams import WidthFinder

        self.opened, self.seed = opened, options["seed"]
        self._said_task, self._memory = options.get("task", "auto"), options.get("memory", "1 MB")
        self._named = options["kernel"] != "auto"
        self._settings = {"columns": kinds_of(options) or None, "missing": options["missing"]}
        first = opened.peek()
        self.labels = first[0].y if first else None
        sparse = bool(first) and hasattr(first[0].X, "tocsr")  # rows of a table with texts are made sparse later
        self.width = first[0].X.shape[1] if first else 0
        said = self._said_scale = options["scale"]
        self.scale = ("none" if sparse else "standard") if said == "auto" else said
        if options["kernel"] != "auto":
            self.kernel = parse(options["kernel"])
            return
        finder = WidthFinder(random_state=self.seed)
        left = _PEEK  # so many and no more, whatever the size of the first blocks: a pipe and a file give one width
        for chunk in opened.first_rows(None if self.scale == "none" else self.scale):
            part = chunk.X[:left]
            left -= part.shape[0]
            if part.shape[0]:
                finder.update(part)
        self.kernel = Gaussian(float(f"{finder.gamma:.3g}")) if first else Gaussian(1.0)

    def is_auto(self, text: str) -> bool:
        """Whether the learner is a race; not with --kernel, or if rows are too wide for dense storage."""
        return text == "auto" and not self._named and self.width <= WIDEST

    def build(self, text: str) -> Any:
        """A learner from its text, behind the scaler; a race scales its own inputs unless --scale is given."""
        from ..prepared.prepared import Prepared

        alone = self.scale == "none" or (self._said_scale == "auto" and self.is_auto(text))
        return Prepared(self.model(text), None if alone else self.scale, **self._settings)

    def _auto(self) -> Any:
        """The learner without settings for what the target is."""
        from ..race import auto, auto_novelty

        task = messages.found_out(self.labels, self._said_task)
        memory = self._memory
        if task == "novelty":
            return auto_novelty.AutoNovelty(memory=memory)
        return auto.AutoRegressor(memory) if task == "regression" else auto.AutoClassifier(memory)

    def model(self, text: str) -> Any:
        """A learner from its text."""
        from .._base.estimator import task_of
        from ..notation import NotationError, parse

        if self.is_auto(text):
            return self._auto()
        model = parse(FALLBACK if text == "auto" else text, self.kernel, self.seed)
        if not hasattr(model, "prequential"):
            raise NotationError(f"{text!r} is not a learner; see `gristmill learners`")
        labels = self.labels
        if task_of(model) == "classification" and labels is not None and labels.dtype.kind == "f":
            raise NotationError(
                f"{text!r} is a classifier, and the target holds numbers such as {labels[0]:g}; for a regression "
                "say --learner 'passive_aggressive_regressor(epsilon=0.1, size=300)'"
            )
        return model

    def about(self) -> dict[str, str]:
        """For reports."""
        return {
            "stream": self.opened.stream.name,
            "kernel unless named": repr(self.kernel),
            "scaling": self.scale,
        }


def finish_report(path: Any, comparison: Any, title: str, about: dict[str, str], bayes: float | None = None) -> None:
    """Write the HTML report of a run if one was asked for."""
    if path:
        from ..evaluate.report import run_report

        run_report(comparison, title, about, bayes).write(path)
        click.echo(f"report: {path}", err=True)


def log_drifts(comparison: Any) -> None:
    """A line on standard error for each place where the error changed."""
    from ..evaluate.drift import describe

    for result in comparison:
        for mark in result.drifts:
            click.echo(f"drift: {describe(mark, result.task)}", err=True)


def show(comparison: Any, as_json: bool) -> None:
    """The outcome on standard output; rich would fold long names in a pipe, which has no width."""
    if as_json:
        for result in comparison:
            click.echo(result.to_json())
        return
    from rich.console import Console

    from ..evaluate.progress import rich_table

    console = Console()
    if console.is_terminal:
        console.print(rich_table(comparison))
    else:
        click.echo(comparison.table())


def end(error: Exception | None, stopped: str, n_events: int) -> None:
    """Leave with the code of a bad row (2, with its message) or of a signal (130, 143), after all has been shown."""
    if error is not None:
        raise error
    if stopped:
        click.echo(f"stopped after {n_events:,} events: {stopped}", err=True)
        raise SystemExit(process.CODES.get(stopped, 130))
