"""What the service measures about itself: requests, latencies and rows, by the second and for Prometheus."""

from __future__ import annotations

import bisect
import collections
import itertools
import time
from collections.abc import Iterator
from typing import Any

#: seconds of the curves over time
_KEPT = 900


class Meter:
    """Rows and latencies of one model, by the second."""

    def __init__(self) -> None:
        self.learned = self.predicted = 0
        self._now: dict[str, list[float]] = {"learn": [], "predict": []}
        self._last = (time.time(), 0, 0)
        self.points: collections.deque[dict[str, float | None]] = collections.deque(maxlen=_KEPT)

    def add(self, what: str, rows: int, seconds: float) -> None:
        if what == "learn":
            self.learned += rows
        else:
            self.predicted += rows
        if len(self._now[what]) < 5000:
            self._now[what].append(seconds)

    def tick(self, size: tuple[int, int] | None = None) -> dict[str, float | None]:
        """The point of the second that ends now; `size` is bytes and stored points of the model."""
        now = time.time()
        moment, learned, predicted = self._last
        span = max(now - moment, 1e-3)
        point: dict[str, float | None] = {
            "time": now,
            "learned_per_second": (self.learned - learned) / span,
            "predicted_per_second": (self.predicted - predicted) / span,
        }
        point["memory_bytes"], point["n_support"] = (None, None) if size is None else size
        for what, values in self._now.items():
            ordered = sorted(values)
            for share in (50, 99):
                place = min(len(ordered) - 1, len(ordered) * share // 100)
                point[f"{what}_p{share}_ms"] = 1000 * ordered[place] if ordered else None
            self._now[what] = []
        self._last = (now, self.learned, self.predicted)
        self.points.append(point)
        return point


class Latencies:
    """Seconds of requests, counted in bins."""

    bounds = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)

    def __init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect.bisect_left(self.bounds, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """As Prometheus has them: requests of at most so many seconds."""
        names = [*map(str, self.bounds), "+Inf"]
        return list(zip(names, map(float, itertools.accumulate(self.counts)), strict=True))


class Collector:
    """The numbers of all models, read when Prometheus asks."""

    def __init__(self, service: Any) -> None:
        self._service = service

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        requests = CounterMetricFamily("gristmill_requests", "Requests by status", labels=["status"])
        for status, count in sorted(self._service.statuses.items()):
            requests.add_metric([str(status)], count)
        yield requests
        spans = HistogramMetricFamily("gristmill_request_seconds", "Seconds of requests", labels=["what"])
        for what, latencies in self._service.latencies.items():
            spans.add_metric([what], latencies.buckets(), latencies.total)
        yield spans
        counters = {
            "gristmill_learned_rows": ("Rows learned since the service started", lambda w, m: m.learned),
            "gristmill_predicted_rows": ("Rows predicted since the service started", lambda w, m: m.predicted),
            "gristmill_expired_labels": ("Events whose label never came", lambda w, m: w.served.journal.expired),
            "gristmill_drifts": (
                "Changes of the error that were marked",
                lambda w, m: len(w.served.champion.record.drifts),
            ),
        }
        gauges = {
            "gristmill_position": ("Events that the model has learned", lambda w, m: w.served.position),
            "gristmill_error_recent": (
                "Mean loss of the last 1,000 events",
                lambda w, m: w.served.champion.record.rolling,
            ),
            "gristmill_error": ("Mean loss of all events", lambda w, m: w.served.champion.record.overall),
            "gristmill_challenger_error_recent": (
                "Mean loss of the challenger over the last 1,000 events",
                lambda w, m: _challenger(w),
            ),
            "gristmill_memory_bytes": ("Bytes of the model", lambda w, m: _size(w, 0)),
            "gristmill_support_vectors": ("Stored points of the model", lambda w, m: _size(w, 1)),
            "gristmill_queue_requests": ("Requests that wait for the writer", lambda w, m: w.depth),
            "gristmill_waiting_labels": ("Events that wait for a label", lambda w, m: w.served.journal.waiting),
            "gristmill_journal_bytes": ("Bytes of the events in the journal", lambda w, m: w.served.journal.size),
            "gristmill_available": ("1 if the model can be asked", lambda w, m: int(w.failed is None)),
        }
        kinds: Any = ((CounterMetricFamily, counters), (GaugeMetricFamily, gauges))
        for family, table in kinds:
            for name, (text, find) in table.items():
                found = family(name, text, labels=["model"])
                for model, writer in sorted(self._service.store.writers.items()):
                    value = find(writer, self._service.meters[model])
                    if value is not None:
                        found.add_metric([model], float(value))
                yield found


def _size(writer: Any, place: int) -> int | None:
    size = writer.served.champion.size()
    return None if size is None else size[place]


def _challenger(writer: Any) -> float | None:
    challenger = writer.served.challenger
    return None if challenger is None else challenger.record.rolling
