"""Options that several commands share, and how a name on the command line becomes a stream or a learner."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from . import telling

_GENERATORS = (
    "drifting_digits", "drifting_mixture", "switching_mixture", "silk_sequence", "two_gaussians", "sea",
    "rotating_hyperplane",
)  # fmt: skip
FALLBACK = "passive_aggressive(size=300)"  # where a kernel is said, and for rows too wide for a race
WIDEST = 2000  # columns of sparse rows that a race is run over
_PEEK = 1000  # events from which the width of the kernel is found


def _all(*decorators: Callable[..., Any]) -> Callable[..., Any]:
    def apply(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return apply


reading = _all(
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
running = _all(
    click.option("--kernel", default="auto", show_default=True,
                 help="For learners that name none; auto: a Gaussian as wide as the median distance."),
    click.option("--scale", type=click.Choice(["auto", "standard", "minmax", "none"]), default="auto",
                 show_default=True, help="Online scaling; auto: standard for tables, none for LIBSVM."),
    click.option("--metric", "metrics", multiple=True, help="error, roc_auc, mae, ...; may be repeated."),
    click.option("--window", default=1000, show_default=True, type=click.IntRange(min=1),
                 help="Of rolling metrics."),
    click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0),
                 help="Of everything random."),
    click.option("--json", "as_json", is_flag=True, help="JSON lines instead of a table."),
    click.option("--report", type=click.Path(dir_okay=False), help="Write a self-contained HTML report."),
)  # fmt: skip


def check_places(options: dict[str, Any]) -> None:
    """What will be written can be written: said now, not after the whole stream."""
    for option, name in (("model_path", "--model"), ("report", "--report"), ("quarantine", "--quarantine")):
        if not options.get(option):
            continue
        path = through_links(options[option])
        folder = os.path.dirname(path) or "."
        if not os.path.isdir(folder):
            raise click.UsageError(f"{name} {options[option]}: there is no folder {folder}")
        if os.path.islink(path) or (os.path.exists(path) and not os.path.isfile(path)):
            raise click.UsageError(f"{name} {options[option]}: it is not a file")
        if not os.access(path if os.path.exists(path) else folder, os.W_OK):
            raise click.UsageError(f"{name} {options[option]}: it may not be written to")


def through_links(path: str) -> str:
    """The file that a path leads to: a model replaces its file at a stroke, and a link to it is to stay a link."""
    return os.path.realpath(path) if os.path.islink(path) else path


def save(model: Any, path: str, n_events: int) -> None:
    """Keep a model where --model says, and say so."""
    model.save(through_links(path))
    click.echo(f"model: {path} after {n_events:,} events", err=True)


class Opened:
    """A stream with what is known about where it came from."""

    def __init__(
        self, options: dict[str, Any], columns: Any = None, labels: bool = True, key: str | None = None
    ) -> None:
        from ..streams import BadRows

        check_places(options)
        if options["quarantine"] and not options["skip_bad"]:
            raise click.UsageError("--quarantine goes with --skip-bad")
        self.bad = BadRows(options["quarantine"]) if options["skip_bad"] else None
        self.table: Any = None  # of a file that is a table: a TableColumns
        self.columns = columns  # by a model
        self.key = key  # the column that says whose a row is
        self._require = labels
        self._labels: Any = None
        self.stream = self._open(options)
        if options["limit"]:
            self.stream = self.stream.take(options["limit"])

    def _open(self, options: dict[str, Any]) -> Any:
        from .. import datasets, streams

        data = options["data"]
        if data == "-" or os.path.exists(data) or options["format_"]:
            return self._read(options)
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

    def _read(self, options: dict[str, Any]) -> Any:
        """A file: sparse rows as they are, a table as one; by what a model has settled, if there is one."""
        from ..streams import Columns, Table, read
        from ..streams.raw import Labels
        from ..streams.read import format_of
        from ..streams.tabled import TableColumns

        data, shape, columns = options["data"], options["format_"], self.columns
        target = None if options["target"] == "none" else options["target"]
        if data != "-" and os.path.isdir(data):
            return read(data, shape)  # which says what is wrong with that
        if (shape or format_of(data)) == "libsvm" or isinstance(columns, Columns):
            settled = columns or Columns(target=target, require_target=self._require)
            return read(data, shape, settled, n_features=options["features"], bad=self.bad)
        if columns is None:
            said = options.get("scale", "auto")
            drop = options["drop"] if self.key is None else (*options["drop"], self.key)
            table = Table(_kinds(options["kinds"]), drop, options["missing"])
            # With keys each has a scaling of its own, in front of its learner.
            scale = None if self.key is not None else {"auto": "standard", "none": None}.get(said, said)
            columns = TableColumns(table, target, scale)
        self.table, self._labels = columns, Labels(columns.target, self._require)
        keep = [name for name, kind in columns.table.columns.items() if kind in ("category", "text")]
        keep += [] if self.key is None else [self.key]
        return read(data, shape, raw=True, target=self._labels, keep=keep, bad=self.bad)

    def settled(self) -> Any:
        """What is to be saved with a model of this stream."""
        if self.table is None:
            return self.columns
        self.table.target = self._labels.name  # the last column may be another one in the next file
        return self.table

    def as_rows(self, learn: bool = True) -> None:
        """From now on the stream is one of rows."""
        if self.table is not None and self.key is not None:
            from ..streams.keyed_rows import keyed_rows

            self.stream = keyed_rows(self.stream, self.table, self.key, self.bad, learn)
        elif self.table is not None:
            self.stream = self.table.over(self.stream, self.bad, learn)

    def first_rows(self) -> list[Any]:
        """The first chunks as rows, of a table by a copy of it: what is peeked at is not learned."""
        from copy import deepcopy
        from dataclasses import replace

        from ..streams import BadRows

        first = self.peek()
        if self.table is None:
            return first
        head = replace(self.stream, chunks=lambda: iter(first))
        return list(deepcopy(self.table).over(head, BadRows(), learn=True))

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


def _kinds(texts: Any) -> dict[str, str]:
    from ..streams.cells import KINDS

    found: dict[str, str] = {}
    for text in texts:
        name, equals, kind = text.rpartition("=")
        if not equals or not name or kind not in KINDS:
            raise click.UsageError(f"--column {text!r}: write NAME=KIND, where KIND is one of {', '.join(KINDS)}")
        found[name] = kind
    return found


class Guarded:
    """Reads on until something is amiss, and remembers what, so that what was learned before is not lost."""

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


class Workshop:
    """Builds learners for a stream: kernel found where none was said, scaling put in front."""

    def __init__(self, opened: Opened, options: dict[str, Any]) -> None:
        from ..kernels import Gaussian
        from ..notation import parse
        from ..streams import StreamScaler, WidthFinder

        self.opened, self.seed = opened, options["seed"]
        self._said_task, self._memory = options.get("task", "auto"), options.get("memory", "1 MB")
        self._named = options["kernel"] != "auto"
        first = opened.first_rows()
        opened.as_rows()
        self.labels = first[0].y if first else None
        sparse = bool(first) and hasattr(first[0].X, "tocsr") and opened.table is None
        self.width = first[0].X.shape[1] if sparse else 0
        said = options["scale"]
        self.scale = ("none" if sparse else "standard") if said == "auto" else said
        if sparse and self.scale != "none":
            raise click.UsageError(f"--scale {self.scale}: sparse rows cannot be centred without losing their zeros")
        if options["kernel"] != "auto":
            self.kernel = parse(options["kernel"])
            return
        # A table scales its own numbers, and nothing but them.
        plain = opened.table is not None and opened.key is None
        scaler = None if self.scale == "none" or plain else StreamScaler(self.scale)
        finder = WidthFinder(random_state=self.seed)
        left = _PEEK  # so many and no more, whatever the size of the first blocks: a pipe and a file give one width
        for chunk in first:
            part = chunk.X[:left]
            left -= part.shape[0]
            if part.shape[0]:
                finder.update(part if scaler is None else scaler.learn_transform(part))
        self.kernel = Gaussian(float(f"{finder.gamma:.3g}")) if first else Gaussian(1.0)

    def is_auto(self, text: str) -> bool:
        """Whether it is a race; not where a kernel is said, or rows are too wide to be written out."""
        return text == "auto" and not self._named and self.width <= WIDEST

    def build(self, text: str) -> Any:
        """A learner from its text, behind the scaling."""
        from ..prepared import Prepared

        model = self.model(text)
        return Prepared(model, None if self.scale == "none" or self.opened.table is not None else self.scale)

    def _auto(self) -> Any:
        """The learner without settings for what the target is."""
        from .. import auto

        task = telling.found_out(self.labels, self._said_task)
        memory = self._memory
        if task == "novelty":
            return auto.AutoNovelty(memory=memory)
        return auto.AutoRegressor(memory) if task == "regression" else auto.AutoClassifier(memory)

    def model(self, text: str) -> Any:
        """A learner from its text."""
        from .._stream import task_of
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
    from ..evaluate.drift import told

    for result in comparison:
        for mark in result.drifts:
            click.echo(f"drift: {told(mark, result.task)}", err=True)


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
    """Leave with the code of a bad row (2, with its message) or of an interrupt (130), after all has been shown."""
    if error is not None:
        raise error
    if stopped:
        click.echo(f"stopped after {n_events:,} events: {stopped}", err=True)
        raise SystemExit(130)
