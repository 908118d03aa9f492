"""Options that several commands share, and how a name on the command line becomes a stream or a learner."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from functools import cached_property
from typing import Any

import click

from .._common.types import Options
from . import messages, process

_GENERATORS = (
    "drifting_digits", "drifting_mixture", "switching_mixture", "silk_sequence", "two_gaussians", "sea",
    "rotating_hyperplane",
)  # fmt: skip
FALLBACK = "passive_aggressive(size=300)"  # with --kernel, and for rows too wide for a race
WIDEST = 2000  # columns that a race is run over
_PEEK = 1000  # events that are looked at before the first is learned


def together(*decorators: Callable[..., Any]) -> Callable[..., Any]:
    def apply(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return apply


def _data(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """DATA; without it on a terminal, where a person would wait for input to appear, the help."""
    default = context.get_parameter_source(str(parameter.name)) == click.core.ParameterSource.DEFAULT
    if default and sys.stdin is not None and sys.stdin.isatty():
        click.echo(context.get_help())
        context.exit()
    return value


reading = together(
    click.argument("data", default="-", callback=_data),
    click.option("--format", "format_", type=click.Choice(["csv", "libsvm", "jsonl", "parquet", "arrow"]),
                 help="File format. Default: by the name of the file; CSV for standard input."),
    click.option("--target", default="last", show_default=True, help="Column to predict, or 'none'."),
    click.option("--column", "kinds", multiple=True, metavar="NAME=KIND",
                 help="Type of a column: number, boolean, category, time or text. Default: by its first values."),
    click.option("--drop", multiple=True, metavar="NAME", help="Leave a column out. May be repeated."),
    click.option("--missing", type=click.Choice(["fill", "raise"]), default="fill", show_default=True,
                 help="Missing values: 'fill' puts the mean so far and marks it, 'raise' makes the row a bad row."),
    click.option("--features", type=click.IntRange(1, 2**31 - 2), help="Number of features of LIBSVM data."),
    click.option("--skip-bad", is_flag=True, help="Skip and count rows that cannot be read. Default: stop at the first."),
    click.option("--quarantine", type=click.Path(dir_okay=False), help="With --skip-bad: file for the skipped rows."),
    click.option("--limit", type=click.IntRange(min=1), help="Stop after this many events."),
)  # fmt: skip
guessing = together(
    click.option("--task", type=click.Choice(["auto", "classification", "regression", "novelty"]), default="auto",
                 show_default=True, help="What to predict: classes, numbers or anomalies. auto: by the first targets."),
    click.option("--memory", default="1 MB", show_default=True, help="Memory limit of the learner 'auto'."),
)  # fmt: skip
scoring = together(
    click.option("--warmup", default=0, show_default=True, type=click.IntRange(min=0),
                 help="Number of first events that are learned and not scored."),
    click.option("--delay", type=click.IntRange(min=0), help="Each label arrives this many events after its row."),
)  # fmt: skip
running = together(
    click.option("--kernel", default="auto", show_default=True,
                 help="Kernel of learners written without one. auto: a Gaussian with the median distance as its width."),
    click.option("--scale", type=click.Choice(["auto", "standard", "minmax", "rank", "none"]), default="auto",
                 show_default=True, help="Scaling of the columns. auto: standard for tables, none for LIBSVM."),
    click.option("--metric", "metrics", multiple=True, help="Metric to report: error, roc_auc, mae, ... May be repeated."),
    click.option("--window", default=1000, show_default=True, type=click.IntRange(min=1),
                 help="Number of events in a rolling metric."),
    click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Random seed."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead of a table."),
    click.option("--report", type=click.Path(dir_okay=False), help="Write an HTML report to this file."),
)  # fmt: skip


def is_given(name: str) -> bool:
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


def check_places(options: Options) -> None:
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
            raise click.UsageError(f"{name} {given}: it is not writable")
    for place, (name, given) in enumerate(written.items()):
        for other, path in list(written.items())[:place]:
            if _same_file(given, path):
                raise click.UsageError(f"{name} {given}: {other} is the same file; give each its own file")
        for other, path in _files_read(options):
            if _same_file(given, path) and (name, other) != ("--model", "--resume"):
                raise click.UsageError(f"{name} {given}: this would overwrite the file of {other}; give another")


def _is_file(place: Any) -> bool:
    """Whether an option names a file; --to and --dead-letters take URLs, too."""
    return bool(place) and place != "-" and ("://" not in place or place.startswith("file://"))


def _files_read(options: Options) -> list[tuple[str, Any]]:
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
        A fitted model, whose table is continued.
    learn : bool
        False: the labels may be missing, and nothing new is taken in.
    key : str, optional
        The column that holds the key of a row.
    bad : BadRows, optional
        Of a file before this one.
    """

    def __init__(
        self, options: Options, model: Any = None, learn: bool = True, key: str | None = None, bad: Any = None
    ) -> None:
        from ..streams import BadRows

        check_places(options)
        if options["quarantine"] and not options["skip_bad"]:
            raise click.UsageError("--quarantine needs --skip-bad")
        self.bad = bad if bad is not None or not options["skip_bad"] else BadRows(options["quarantine"])
        self._learn, self.key = learn, key
        self.table: Any = None  # with keys: the rows that all of their learners see
        self._labels: Any = None
        self.stream = self._open(options, model)
        if options["limit"]:
            self.stream = self.stream.take(options["limit"])
        self._first: list[Any] = []  # chunks that were read ahead
        self._ended: Exception | None = None  # what reading ahead ended with

    def _open(self, options: Options, model: Any) -> Any:
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

    def _read(self, options: Options, model: Any) -> Any:
        """A file: sparse rows as they are, a table as one; by what a model has settled, if there is one."""
        from ..streams import Columns
        from ..streams.files.labels import Labels
        from ..streams.read import Source

        target = None if options["target"] == "none" else options["target"]
        if self.key is not None:
            return self._read_keyed(options, model, target)
        known = getattr(model, "table_", None)
        if known is not None:
            target = model.target_name_ if options["target"] == "last" else target
        kinds = kinds_of(options) if known is None else known.columns
        source = Source(
            options["data"], options["format_"], self.bad, keep=texts_of(kinds), n_features=options["features"]
        )
        if source.format == "libsvm":
            return source.rows(Columns(target=target))
        self._labels = Labels(target, self._learn)
        return self._named(source.tables(self._labels), source, options if known is None else {})

    def _read_keyed(self, options: Options, model: Any, target: Any) -> Any:
        """Rows of one width for all keys, each of which has a scaling of its own in front of its learner."""
        from ..streams import Table
        from ..streams.files.columns import Columns
        from ..streams.files.fixed_width import TableRows
        from ..streams.files.keyed_rows import KeyColumns, keyed_rows
        from ..streams.files.labels import Labels
        from ..streams.read import Source

        key = str(self.key)
        table = getattr(model, "columns_", None) or TableRows(
            Table({**kinds_of(options), key: "drop"}, missing=options["missing"]), target
        )
        keep = [key, *texts_of(table.table.columns)]
        source = Source(options["data"], options["format_"], self.bad, keep=keep)
        if source.format == "libsvm":
            return source.rows(Columns(target=target))
        self.table, self._labels = table, Labels(table.target, self._learn)
        named = KeyColumns(key, options.get("time"), self._labels)
        tables = self._named(source.tables(self._labels), source, options)
        return keyed_rows(tables, self.table, named, self.bad, self._learn)

    def _named(self, stream: Any, source: Any, options: Options) -> Any:
        """The stream, which refuses --drop and --column of a column that it has not; later JSON lines may bring one."""
        from dataclasses import replace

        from ..streams.errors import StreamError, listed

        asked = {name: "--drop" for name in options.get("drop", ())}
        asked |= {text.rpartition("=")[0]: "--column" for text in options.get("kinds", ())}
        if not asked or source.format == "jsonl" or not self._learn:
            return stream

        def checked() -> Any:
            for place, chunk in enumerate(stream):
                names = list(chunk.X.names)
                for name, option in asked.items() if not place else ():
                    if name not in names and name != self._labels.name:
                        why = f"there is no column {name!r} for {option}; there are {listed(names)}"
                        raise StreamError(f"{source.name}: {why}")
                yield chunk

        return replace(stream, chunks=checked)

    def settle(self, model: Any) -> None:
        """Record the label column in the model: the last column of the next file may be another one."""
        if self._labels is not None:
            model.target_name_ = self._labels.name

    def settled(self) -> Any:
        """With keys: what is to be saved with their models."""
        self.table.target = self._labels.name
        return self.table

    def peek(self, events: int = 1) -> list[Any]:
        """The first chunks, of at least so many events where there are as many; the stream still begins with them."""
        from dataclasses import replace

        if not self._first:
            chunks = self._rest = iter(self.stream)

            def whole() -> Any:
                yield from self._first
                if self._ended is not None:
                    raise self._ended
                yield from chunks

            self.stream = replace(self.stream, chunks=whole)
        count = sum(chunk.X.shape[0] for chunk in self._first)
        while count < events and self._ended is None:
            try:
                chunk = next(self._rest, None)
            except (ValueError, OSError) as error:
                if not self._first:
                    raise
                self._ended = error
            else:
                if chunk is None:
                    break
                self._first.append(chunk)
                count += chunk.X.shape[0]
        return self._first

    def print_bad_rows(self) -> None:
        """Report skipped rows on standard error."""
        if self.bad is not None:
            self.bad.close()
            if self.bad.count:
                click.echo(f"{self.bad.count} bad rows were skipped; the first: {self.bad.first}", err=True)


def kinds_of(options: Options) -> dict[str, str]:
    """The column kinds of --column and --drop."""
    from ..streams.tables.cells import KINDS

    found: dict[str, str] = dict.fromkeys(options["drop"], "drop")
    for text in options["kinds"]:
        name, equals, kind = text.rpartition("=")
        if not equals or not name or kind not in KINDS:
            raise click.UsageError(f"--column {text!r}: write NAME=KIND, where KIND is one of {', '.join(KINDS)}")
        found[name] = kind
    return found


def texts_of(kinds: dict[str, str]) -> list[str]:
    """Columns whose cells are wanted as they are written."""
    return [name for name, kind in kinds.items() if kind in ("category", "text")]


def _mixed(first: list[Any]) -> dict[str, str]:
    """Columns of the first chunks that begin with numbers and hold words, as categories; with a note on each."""
    from ..streams.files.bad_cells import place
    from ..streams.files.columns import words_among_numbers
    from ..streams.tables.frame import Frame

    found: dict[str, str] = {}
    for frame in (chunk.X for chunk in first):
        for name, word in words_among_numbers(frame).items() if isinstance(frame, Frame) else ():
            if name not in found:
                found[name] = "category"
                what = (
                    f"column {name!r} is read as a category: {word.value!r} ({place(frame, word.row)}) is not a number"
                )
                messages.note(f"{what} (--column '{name}=number' takes such rows for bad ones)")
    return found


def _refuse_decimal_commas(first: list[Any], kinds: dict[str, str]) -> None:
    """Raise an error if a column of unknown kind holds numbers with a decimal comma only."""
    from ..streams.files.bad_cells import place
    from ..streams.files.columns import decimal_commas
    from ..streams.tables.frame import Frame

    for frame in (chunk.X for chunk in first if isinstance(chunk.X, Frame)):
        for name, cell in decimal_commas(frame).items():
            if name not in kinds:
                raise ValueError(
                    f"{place(frame, 0)}, column {name!r}: {cell!r} has a decimal comma; write numbers with a decimal "
                    f"point, or read the column as a category with --column '{name}=category'"
                )


class LearnerFactory:
    """Builds learners for a stream, behind a scaler."""

    def __init__(self, opened: OpenedSource, options: Options) -> None:
        import numpy as np

        self.opened, self.seed = opened, options["seed"]
        self._given_task, self._memory = options.get("task", "auto"), options.get("memory", "1 MB")
        self._given_kernel = None if options["kernel"] == "auto" else options["kernel"]
        first = opened.peek(_PEEK if self._given_task == "auto" else 1)
        labels = [chunk.y for chunk in first]
        self.labels = None if not labels or labels[0] is None else np.concatenate(labels)
        sparse = bool(first) and hasattr(first[0].X, "tocsr")  # rows of a table with texts are made sparse later
        self.width = first[0].X.shape[1] if first else 0
        named = kinds_of(options)
        _refuse_decimal_commas(first[:1], named)
        kinds = {**_mixed(first), **named}
        self._settings = {"columns": kinds or None, "missing": options["missing"]}
        given_scale = self._given_scale = options["scale"]
        self.scale = ("none" if sparse else "standard") if given_scale == "auto" else given_scale
        self._scaled = False  # whether a learner has a scaler in front
        if self._given_kernel is not None:
            _ = self.kernel  # a wrong one is an error now

    @cached_property
    def kernel(self) -> Any:
        """For a learner that names none: that of --kernel, or a Gaussian as wide as the median distance."""
        from ..kernels import Gaussian
        from ..notation import parse
        from ..streams import WidthFinder

        if self._given_kernel is not None:
            return parse(self._given_kernel)
        finder, empty = WidthFinder(random_state=self.seed), True
        left = _PEEK  # so many and no more, whatever the size of the first blocks: a pipe and a file give one width
        for rows in self._first_rows():
            part = rows[:left]
            left -= part.shape[0]
            if part.shape[0]:
                finder.update(part)
                empty = False
        return Gaussian(1.0) if empty else Gaussian(float(f"{finder.gamma:.3g}"))

    def _first_rows(self) -> list[Any]:
        """The first events as rows, scaled as they will be; bad rows are left out."""
        from ..streams import BadRows, StreamScaler, Table
        from ..streams.files.bad_cells import good_parts
        from ..streams.tables.frame import frame_of
        from ..streams.tables.table import padded

        first = [getattr(chunk.X, "rows", chunk.X) for chunk in self.opened.peek(_PEEK)]
        if not first or hasattr(first[0], "tocsr"):
            return first
        table = Table(**self._settings)
        scaler = None if self.scale == "none" else StreamScaler("standard" if self.scale == "rank" else self.scale)
        rows = [
            part
            for X in first
            for _, part, _ in good_parts(
                frame_of(X), None, lambda frame: table.learn_transform(frame, scaler), BadRows()
            )
        ]
        return [padded(part, table.width_) for part in rows]

    def is_auto(self, text: str) -> bool:
        """Whether the learner is a race; not with --kernel, or if rows are too wide for dense storage."""
        return text == "auto" and self._given_kernel is None and self.width <= WIDEST

    def build(self, text: str) -> Any:
        """A learner from its text, behind the scaler; a race scales its own inputs unless --scale is given."""
        from ..prepared.prepared import Prepared

        alone = self.scale == "none" or (self._given_scale == "auto" and self.is_auto(text))
        self._scaled = self._scaled or not alone
        return Prepared(self.model(text), None if alone else self.scale, **self._settings)

    @property
    def task(self) -> str:
        """As given, or guessed from the first targets."""
        return messages.found_out(self.labels, self._given_task)

    def _auto(self) -> Any:
        """The learner without settings for the task."""
        from ..race import auto, auto_novelty

        task, memory = self.task, self._memory
        if task == "novelty":
            return auto_novelty.AutoNovelty(memory=memory)
        return auto.AutoRegressor(memory) if task == "regression" else auto.AutoClassifier(memory)

    def model(self, text: str) -> Any:
        """A learner from its text."""
        from .._base.estimator import task_of
        from ..notation import NotationError, parse

        if self.is_auto(text):
            return self._auto()
        model = parse(FALLBACK if text == "auto" else text, seed=self.seed, find_kernel=lambda: self.kernel)
        if not hasattr(model, "prequential"):
            raise NotationError(f"{text!r} is not a learner; see `gristmill learners`")
        labels = self.labels
        if labels is None and task_of(model) in ("classification", "regression"):
            raise NotationError(
                f"{text!r} needs a target, and the data have none; name its column with --target, or learn without one "
                "with --task novelty"
            )
        if task_of(model) == "classification" and labels is not None and labels.dtype.kind == "f":
            raise NotationError(
                f"{text!r} is a classifier, and the target holds numbers such as {labels[0]:g}; for a regression "
                "use --learner 'passive_aggressive_regressor(epsilon=0.1, size=300)'"
            )
        return model

    def about(self) -> dict[str, str]:
        """For reports."""
        known = {"stream": self.opened.stream.name}
        if self._scaled:  # a race scales for itself
            known["scaling"] = self.scale
        if "kernel" in self.__dict__:  # a learner asked for it
            known["kernel unless named"] = repr(self.kernel)
        return known


def finish_report(path: Any, comparison: Any, title: str, about: dict[str, str], bayes: float | None = None) -> None:
    """Write the HTML report of a run if one was asked for."""
    if path:
        from ..evaluate.run_report import run_report

        run_report(comparison, title, {"command": command(), **about}, bayes).write(path)
        click.echo(f"report: {path}", err=True)


def command() -> str:
    """The command line, as it can be called again."""
    return str(click.get_current_context().meta.get(process.COMMAND, ""))


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
        raise _with_advice(error)
    if stopped:
        click.echo(f"stopped after {n_events:,} events: {stopped}", err=True)
        raise SystemExit(process.CODES.get(stopped, 130))


def _with_advice(error: Exception) -> Exception:
    """A word in a column of numbers: the message says which option would read it."""
    from ..streams.errors import StreamError
    from ..streams.tables.cells import CellError, is_missing, kind_of

    cause = error.__cause__
    if not isinstance(cause, CellError) or not isinstance(cause.value, str) or is_missing(cause.value):
        return error
    if kind_of(cause.value) not in ("category", "time"):
        return error
    return StreamError(f"{error}; --column '{cause.column}=category' reads words, --skip-bad skips such rows")
