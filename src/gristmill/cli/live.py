"""`gristmill learn` and `gristmill predict` on the URL of a broker: an endless stream, continued after a crash."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import click

from .._common.types import Json, Options
from . import messages, options
from .keyed import defaults, report

sending = options.together(
    click.option("--to", metavar="URL|FILE",
                 help="With a broker: destination of the predictions, each with the position of its event."),
    click.option("--until-end", is_flag=True, help="With a broker: stop after the message that is the newest one now."),
    click.option("--follow", is_flag=True, help="With a broker: wait for further messages (the default)."),
    click.option("--max-wait", default="50ms", show_default=True,
                 help="With a broker: longest time that an event waits for others before it is learned."),
    click.option("--dead-letters", metavar="URL|FILE",
                 help="With a broker: destination of messages that cannot be learned, with the reason."),
)  # fmt: skip
answering = options.together(
    click.option("--proba", is_flag=True,
                 help="With --to: send the probability of each class; events are learned one by one."),
    click.option("--interval", type=click.FloatRange(0.5, 0.99), metavar="COVERAGE",
                 help="With --to: send an interval with this share of the targets; events are learned one by one."),
    click.option("--reasons", type=click.IntRange(min=1), metavar="N",
                 help="With --to: send the N largest contributions to each score; events are learned one by one."),
)  # fmt: skip
saving = options.together(
    sending,
    click.option("--labels", metavar="URL", help="With a broker: labels come on this topic, after their events."),
    click.option("--join", metavar="COLUMN", help="With --labels: column with the id of an event, in both topics."),
    click.option("--wait", default="1h", show_default=True,
                 help="With --labels: how long an event waits for its label (on disk, in MODEL.waiting)."),
    click.option("--wait-space", default="1 GB", show_default=True,
                 help="With --labels: disk space for waiting events; the oldest are dropped first."),
    click.option("--save-every", default="1s", show_default=True,
                 help="With a broker: time between two saves of the model."),
    click.option("--replay", type=click.Path(exists=True, dir_okay=False), metavar="MODEL.order",
                 help="With a broker: learn in the order that another run has recorded."),
    answering,
)  # fmt: skip
_ONLY = ("to", "until_end", "follow", "max_wait", "dead_letters", "save_every", "replay", "reasons", "position",
         "labels", "join", "wait", "wait_space")  # fmt: skip
_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def refuse_without_broker(given: Mapping[str, object]) -> None:
    """Options that mean something for brokers only."""
    for name in _ONLY:
        if name in given and options.is_given(name):
            raise click.UsageError(f"--{name.replace('_', '-')} needs the URL of a broker, such as kafka://...")


def seconds(text: str, option: str) -> float:
    """A time such as 50ms, 2s or 1h."""
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text[len(number) :].strip() or "s"
    try:
        found = float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        found = -1.0
    if not found >= 0:
        raise click.UsageError(f"{option} {text!r}: write a time such as 50ms, 2s, 5min or 1h")
    return found


class LiveSource(options.OpenedSource):
    """A broker's stream; its first messages can be inspected before anything is learned."""

    def _open(self, given: Options, model: Any) -> Any:
        from ..streams import Stream, Table, connect
        from ..streams.brokers import Feed
        from ..streams.brokers.decode import Decoder
        from ..streams.brokers.letters import DeadLetters
        from ..streams.brokers.order import Replay
        from ..streams.brokers.url import parse
        from ..streams.files.fixed_width import TableRows
        from ..streams.files.labels import Labels

        self.url = url = parse(given["data"])
        target = url.options.get("target", "last") if given["target"] == "last" else given["target"]
        target = None if target == "none" else target
        known = getattr(model, "table_", None)
        if self.key is not None:
            fresh = TableRows(Table({**options.kinds_of(given), self.key: "drop"}, missing=given["missing"]), target)
            self.table = getattr(model, "columns_", None) or fresh
            target, kinds = self.table.target, self.table.table.columns
        else:
            if known is not None and given["target"] == "last":
                target = model.target_name_
            chosen = options.kinds_of(given) | ({given["join"]: "drop"} if given.get("join") else {})
            kinds = chosen if known is None else known.columns
        self._given, self._target = given, target
        self._labels = Labels(target, self._learn)
        keep = {*options.texts_of(kinds), *([] if self.key is None else [self.key])}
        self._decoder = Decoder(url, given["format_"], keep)
        if given.get("labels"):  # what is read are objects, whatever the events are
            self._decoder = Decoder(replace(url, options={"name": url.name}), "json", keep)
        place = given["dead_letters"]
        self.letters = self.bad = DeadLetters(url.name, None if place is None else connect(place, "out"))
        if given.get("labels"):
            reader: Any = _joined(given, url, target)
        else:
            reader = Replay(url, given["replay"]) if given.get("replay") else connect(given["data"])
        self.feed = Feed(
            reader, wait=seconds(given["max_wait"], "--max-wait"), until_end=given["until_end"], limit=given["limit"],
            say=lambda line: click.echo(line, err=True),
        )  # fmt: skip
        given["limit"] = None  # the feed counts
        return Stream(lambda: iter(()), name=url.name)

    def ahead(self) -> Any:
        """What makes rows of events whose labels come later; None if the labels are in the events."""
        from ..streams.brokers.stream import Rows
        from ..streams.files.labels import Labels

        if not self._given.get("labels"):
            return None
        return Rows(self._decoder, Labels(self._target, False), self.letters)

    def rows(self, labels: Any = None, letters: Any = None) -> Any:
        """What makes rows of messages; changes the table of keys."""
        from ..streams.brokers.stream import Rows
        from ..streams.errors import StreamError
        from ..streams.files.keyed_rows import KeyColumns
        from ..streams.tables.cells import CellError

        labels, letters = labels or self._labels, letters or self.letters
        if self.key is None:
            return Rows(self._decoder, labels, letters)
        table, key = self.table, self.key
        named = KeyColumns(key, self._given.get("time"), labels)

        def keyed(frame: Any) -> Any:
            if not self._learn:
                return named.of(frame, table.rows(frame), self.url.name)
            try:
                found = table.learn(frame)
            except StreamError as error:  # a column that the first events did not have
                if frame.count == 1:
                    raise CellError(0, key, None, str(error)) from error
                for row in range(1, frame.count):
                    keyed_mark = table.table.snapshot()
                    try:
                        table.learn(frame[:row])
                    except StreamError:
                        raise CellError(row - 1, key, None, str(error)) from error
                    table.table.rollback(keyed_mark)
                raise CellError(frame.count - 1, key, None, str(error)) from error
            return named.of(frame, found, self.url.name)

        def lacking(frame: Any) -> dict[int, str]:
            if key not in frame.names:
                return dict.fromkeys(range(frame.count), f"column {key!r}: the key is missing")
            return named.bad(frame, self.url.name)

        return Rows(self._decoder, labels, letters, keyed, lacking)

    _inspected: list[object] | None = None

    def peek(self, events: int = 1000) -> list[Any]:
        """The first events: up to `events` of those that are there now, at least one; the feed begins with them again."""
        from ..streams import Chunk
        from ..streams.brokers.letters import DeadLetters
        from ..streams.files.labels import Labels

        if self._inspected is not None:
            return self._inspected
        fresh = deepcopy(self.table)
        feed, found = self.feed, list[Any]()
        feed.open(None)
        start = feed.position
        rows = self.rows(Labels(self._target, self._learn), DeadLetters(self.url.name))
        ends = feed.patiently(feed.reader.ends)
        for batch in feed.batches():
            messages = [message for message in batch.messages if message.role == "learn"]
            found += [Chunk(part.X, part.y) for part in rows(messages)] if messages else []
            there = ends is not None and feed.patiently(lambda at=batch.position: feed.reader.reached(at, ends))  # type: ignore[misc]
            if sum(chunk.X.shape[0] for chunk in found) >= events or (found and (there or not batch.messages)):
                break
        feed.counts.messages = 0
        feed.open(start)
        self._inspected, self._fresh = found, fresh
        return found

    def begin(self) -> None:
        """Discard what the inspection added to the table of keys."""
        if self._inspected is not None and self.key is not None:
            self.table = self._fresh


def _joined(given: Options, url: Any, target: Any) -> Any:
    """The reader of events and of the labels that come on another topic."""
    from .._common.ranges import bytes_in
    from ..streams import connect
    from ..streams.brokers.join import Joined, Pair
    from ..streams.brokers.order import Replay
    from ..streams.brokers.url import parse
    from ..streams.brokers.waiting import Waiting

    labels = parse(given["labels"])
    for needed in ("join", "model_path"):
        if not given[needed]:
            raise click.UsageError(f"--labels needs --{needed.removesuffix('_path')}")
    if target in ("last", None):
        raise click.UsageError("--labels needs --target, the column of the label in the messages of that topic")
    if given["key"] or "key" in url.options:
        raise click.UsageError("--labels and --key do not go together")
    for address in (url, labels):
        if address.scheme.startswith("mqtt"):
            raise click.UsageError(f"{address}: --labels needs brokers that keep positions: Kafka or Redis")
        if "group" in address.options and "partitions" not in address.options:
            raise click.UsageError(f"{address}: events wait in one process, so with --labels give partitions, no group")
    inner = (
        Replay(url, given["replay"], labels)
        if given["replay"]
        else Pair(connect(given["data"]), connect(given["labels"]))
    )
    waiting = Waiting(f"{options.through_links(given['model_path'])}.waiting", bytes_in(given["wait_space"]))
    return Joined(inner, labels, given["join"], target, seconds(given["wait"], "--wait"), waiting, given["format_"])


def learn(given: Options) -> None:
    """A model, or one a key, along a broker's stream."""
    from ..evaluate import drift
    from ..evaluate.follower import Follower
    from ..evaluate.keyed import KeyedRun
    from ..evaluate.live import LiveRun, position_of
    from ..evaluate.result import Comparison
    from ..streams import connect
    from ..streams.brokers.url import parse

    for name in ("more", "cluster", "delay"):
        if given[name]:
            raise click.UsageError(f"{'several files' if name == 'more' else f'--{name}'} cannot be used with a broker")
    if given["follow"] and given["until_end"]:
        raise click.UsageError("--follow and --until-end: give one of them")
    if given["join"] and not given["labels"]:
        raise click.UsageError("--join needs --labels")
    url = parse(given["data"])
    model = _loaded(given, url.name)
    _check_labels(given, model, url.name)
    key = given["key"] or url.options.get("key") or getattr(model, "key_column_", None)
    opened = LiveSource(given, model, key=key)
    every = seconds(given["save_every"], "--save-every")
    if model is None:
        made = defaults.chosen(opened, given) if key else None
        model = made.fleet if made is not None else options.LearnerFactory(opened, given).build(given["learner"])
        opened.begin()
        name = made.name if made is not None else given["learner"]
    else:
        name = type(getattr(model, "model", model)).__name__
        known = position_of(model, url.name)
        click.echo(f"continuing after {known['events'] if known else 0:,} events of {url.name}", err=True)
    run = KeyedRun(model) if key else model
    more = further(given, run)
    follower = Follower(
        run, name, given["metrics"] or None, given["window"], given["warmup"], None, url.name, drift.wanted(None)
    )
    path = given["model_path"]
    live = LiveRun(
        follower, opened.feed, opened.rows(), _saver(opened, path, key) if path else None, model,
        connect(given["to"], "out") if given["to"] else None, None if more is None else partial(more, run),
        f"{path}.order" if path else None, every, opened.ahead(),
    )  # fmt: skip
    try:
        live.run()
    finally:
        opened.feed.reader.close()
        for out in (live.writer, opened.letters):
            if out is not None:
                out.close()
    result = follower.finish()
    result.stopped = live.stopped
    if path and result.n_events:
        click.echo(f"model: {path} after {result.n_events:,} events", err=True)
    comparison = Comparison([result])
    options.log_drifts(comparison)
    if key and result.n_events:
        worst = run.worst(given["worst"], report.LEAST)
        if given["as_json"]:
            click.echo(report.as_json(result, run, worst))
        else:
            options.show(comparison, False)
            click.echo(report.table(run, worst, given))
    else:
        options.show(comparison, given["as_json"])
    if result.n_events:
        messages.print_outcome(comparison)
        options.finish_report(given["report"], comparison, f"gristmill learn {url.name}", {"learner": name})
    click.echo(opened.feed.counts.line(), err=True)
    opened.print_bad_rows()
    options.end(None, live.stopped, result.n_events)


def _loaded(given: Options, source: str) -> Any:
    """The model to go on with: of --resume, or of --model if it has read this stream before."""
    from .. import persist
    from ..evaluate.live import position_of

    if given["resume"]:
        return persist.load(given["resume"])
    path = given["model_path"]
    if not path or not os.path.exists(path):
        return None
    model = persist.load(path)
    if position_of(model, source) is None:
        raise click.UsageError(
            f"--model {path}: its model has not read {source}; --resume {path} continues with it, "
            "another file name starts a new model"
        )
    return model


def _check_labels(given: Options, model: Any, source: str) -> None:
    """A model that began with --labels continues with it, and with the samples that wait for labels."""
    from ..evaluate.live import position_of

    known = None if model is None else position_of(model, source)
    if known is None:
        return
    began = "" in known["position"] and "count" in known["position"][""] and "clock" in known["position"][""]
    if began != bool(given["labels"]):
        raise click.UsageError(
            f"the model has read {source} {'with' if began else 'without'} --labels; continue in the same way"
        )
    place = f"{options.through_links(given['model_path'])}.waiting" if given["model_path"] else ""
    if began and not os.path.exists(place):
        raise click.UsageError(f"{place or 'MODEL.waiting'}: the events that wait for a label are missing")


def _saver(opened: LiveSource, path: str, key: str | None) -> Any:
    def save(model: Any) -> None:
        if key:
            model.columns_, model.key_column_ = opened.settled(), key
        else:
            opened.settle(model)
        model.save(options.through_links(path))

    return save


_VERBS = {"proba": "predict_proba", "interval": "predict_interval", "reasons": "explain"}


def further(given: Options, model: Any) -> Callable[[Any, Any], Json] | None:
    """The answers that --proba, --interval and --reasons ask for: a function of a model and one event; None without them.

    Parameters
    ----------
    given : dict
        The options of the command.
    model : learner
        Refused here if it has none of the answers that are asked for.
    """
    wanted = [name for name in _VERBS if given[name]]
    if not wanted:
        return None
    if not given["to"]:
        raise click.UsageError("--proba, --interval and --reasons go with --to")
    for name in wanted:
        if not hasattr(model, _VERBS[name]):
            what = type(getattr(model, "fleet", getattr(model, "model", model))).__name__
            raise click.UsageError(
                f"--{name}: {what} has no {_VERBS[name]}; choose another learner, or leave the option out"
            )

    def more(model: Any, X: Any) -> Json:
        found: Json = {}
        if given["proba"]:
            names = [str(name) for name in model.classes_.tolist()]
            found["proba"] = [dict(zip(names, model.predict_proba(X)[0].tolist(), strict=True))]
        if given["interval"]:
            (low, high) = model.predict_interval(X, given["interval"])[0].tolist()
            found |= {"low": [low], "high": [high]}
        if given["reasons"]:
            found["reasons"] = [str(model.explain(X[0] if isinstance(X, list) else X, given["reasons"]))]
        return found

    return more


def predict(model: Any, given: Options, answers: Any, show: Any, scores: bool) -> None:
    """What a model predicts of a broker's events, to --to or to standard output."""
    import json
    from pathlib import Path

    from .. import persist
    from ..evaluate.live import records
    from ..streams import connect
    from ..streams.brokers.decode import Places
    from ..streams.files.bad_cells import good_parts
    from .keyed.commands import Members

    place = Path(given["position"]) if given["position"] else None
    key = given["key"] or getattr(model, "key_column_", None)
    opened = LiveSource(given, model, learn=False, key=key)
    feed, rows = opened.feed, opened.rows()
    asked = Members(model) if key else model
    known = json.loads(place.read_text()) if place is not None and place.exists() else {}
    feed.open(known.get(opened.url.name))
    writer = connect(given["to"], "out") if given["to"] else None

    def answered(events: Any) -> Iterator[tuple[Any, Json]]:
        """Frames of good rows, each with what is predicted of them."""
        wanted = scores or writer is not None
        if key is not None:  # its cells are parsed already
            yield events.frame, answers(asked, events.X, wanted)
            return
        for frame, found, _ in good_parts(events.X, None, lambda part: answers(asked, part, wanted), opened.letters):
            yield frame, found

    try:
        for batch in feed.batches():
            for events in rows(batch.messages):
                for frame, found in answered(events):
                    if writer is None:
                        show(found)
                        continue
                    made = records(opened.url.name, Places.of(frame), _as_columns(found))
                    feed.patiently(lambda made=made: writer.send(made))  # type: ignore[misc]
            opened.letters.send()
            if batch.messages:
                for out in (writer, opened.letters):
                    if out is not None:
                        feed.patiently(out.flush)
                if place is not None:
                    known[opened.url.name] = batch.position
                    persist.write(place, json.dumps(known).encode())
                feed.reader.acknowledge(batch.position)
    finally:
        feed.reader.close()
        for out in (writer, opened.letters):
            if out is not None:
                out.close()
    opened.print_bad_rows()


def _as_columns(found: Json) -> dict[str, list[Any]]:
    """Answers with the probabilities of an event as one value."""
    columns = {name: values for name, values in found.items() if name != "proba"}
    if "proba" in found:
        shares = found["proba"]
        columns["proba"] = [dict(zip(shares, row, strict=True)) for row in zip(*shares.values(), strict=True)]
    return columns
