"""Results of runs: final numbers, curves over time, and tables of them."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from .._common.tables import html_table, text_table
from .._common.types import Json


@dataclass
class Result:
    """The outcome of one prequential run.

    Examples
    --------
    >>> from gristmill import Gaussian, passive_aggressive
    >>> from gristmill.evaluate import prequential
    >>> from gristmill.streams import drifting_digits
    >>> model = passive_aggressive(Gaussian(0.001), size=200)
    >>> result = prequential(model, drifting_digits(n_events=2000))
    >>> result.stored
    200
    """

    name: str  #: of the model
    stream: str = "stream"
    task: str = "classification"
    n_events: int = 0  #: learned
    n_scored: int = 0  #: scored: all but the warm-up and labels still to come
    metrics: dict[str, float] = field(default_factory=dict)  #: over the whole run
    rolling: dict[str, float] = field(default_factory=dict)  #: over the last window
    stored: int = 0  #: points
    bytes: int = 0
    seconds: float = 0.0  #: spent inside the model
    #: one entry a window: event, every metric so far and `rolling_` over the window; stored and bytes then
    curve: list[dict[str, float]] = field(default_factory=list)
    #: where the error changed: `event`, `since`, `before`, `after` (see `gristmill.evaluate.drift`)
    drifts: list[dict[str, float]] = field(default_factory=list)
    stopped: str = ""  #: why the run ended before its stream did
    model: Any = None
    details: Any = None  #: `Details` for a report, where they were collected; not a part of files

    @property
    def events_per_second(self) -> float:
        return self.n_events / self.seconds if self.seconds else math.nan

    def to_dict(self) -> dict[str, object]:
        """Everything but the model, as plain values."""
        plain = {key: value for key, value in asdict_without_model(self).items()}
        return {**plain, "events_per_second": self.events_per_second}

    def to_json(self) -> str:
        """The same as JSON; NaN, which JSON does not have, is null."""
        return json.dumps(_plain(self.to_dict()))

    def to_frame(self) -> Any:
        """The curve as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.curve)

    def table(self) -> str:
        """The summary as text."""
        return Comparison([self]).table()

    __str__ = __repr__ = table

    def _repr_html_(self) -> str:
        return Comparison([self])._repr_html_()


def asdict_without_model(result: Result) -> dict[str, object]:
    """Plain values; `dataclasses.asdict` of the result itself would copy the model, which can be large."""
    plain = asdict(replace(result, model=None, details=None))
    del plain["model"], plain["details"]
    return plain


@dataclass
class Comparison:
    """The outcomes of several models on one stream, in the order they were given."""

    results: list[Result]
    #: error of trivial predictions on the same events, by name, where it was measured
    baselines: dict[str, float] = field(default_factory=dict)

    def __iter__(self) -> Any:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, key: int | str) -> Result:
        if isinstance(key, str):
            return next(result for result in self.results if result.name == key)
        return self.results[key]

    def rows(self) -> list[Json]:
        """One flat summary a model."""
        return [
            {
                "model": result.name,
                **result.metrics,
                **{f"last_{name}": value for name, value in result.rolling.items()},
                "stored": result.stored,
                "bytes": result.bytes,
                "events_per_second": result.events_per_second,
            }
            for result in self.results
        ]

    def to_frame(self) -> Any:
        """The summaries as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def to_json(self) -> str:
        return json.dumps([_plain(result.to_dict()) for result in self.results])

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Headings and cells, as people read them."""
        names = list(self.results[0].metrics) if self.results else []
        heads = ["learner"]
        for name in names:
            heads += [name.replace("_", " "), "last window"]
        heads += ["stored points", "memory", "events/s"]
        body = []
        for result in self.results:
            row = [result.name]
            for name in names:
                row += [number(result.metrics[name]), number(result.rolling.get(name, math.nan))]
            rate = result.events_per_second
            row += [
                f"{result.stored:,}",
                size_text(result.bytes),
                "-" if math.isnan(rate) else f"{rate:,.0f}",
            ]
            body.append(row)
        return heads, body

    def table(self) -> str:
        """The summaries as aligned text."""
        return text_table(*self.cells())

    __str__ = __repr__ = table

    def _repr_html_(self) -> str:
        stream = f"{self.results[0].n_events:,} events of {self.results[0].stream}" if self.results else ""
        return html_table(*self.cells(), stream)


def number(value: float) -> str:
    """Four figures after the point for shares, four significant ones for the rest."""
    if math.isnan(value):
        return "-"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.4g}"


def size_text(count: int) -> str:
    """Bytes as people read them."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


def _plain(value: object) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
