"""Limits of the service, in one place."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Settings:
    """Limits of the service.

    Parameters
    ----------
    label_wait : float, default=604800
        Seconds for which the features of an event wait for its label.
    label_space : int, default=10**9
        Bytes that all waiting features of a model may take; the oldest leave first.
    journal_space : int, default=10**9
        Bytes that the journal of a model may take.
    snapshot_events : int, default=100_000
        Events between two snapshots.
    snapshot_bytes : int, default=64_000_000
        Bytes of journal between two snapshots.
    keep_snapshots : int >= 2, default=8
        Snapshots of each learner that are kept. A rollback reaches as far back as the oldest.
    key_wait : float, default=86400
        Seconds for which the answer to a request with an idempotency key is kept.
    key_space : int, default=64_000_000
        Bytes that these answers may take.
    queue_requests, queue_bytes : int, default=1024 and 256_000_000
        Requests that wait for the writer of a model; more are answered with 429.
    body_bytes : int, default=32_000_000
        Largest body of a request.
    rows : int, default=100_000
        Most rows of a request.
    columns : int, default=10_000
        Most columns of a model.
    classes : int, default=1000
        Most classes of a model.
    timeout : float, default=60
        Seconds within which a body must arrive, and within which a request is answered.
    models : int, default=100
        Most models of a store.
    """

    label_wait: float = 7 * 86400.0
    label_space: int = 10**9
    journal_space: int = 10**9
    snapshot_events: int = 100_000
    snapshot_bytes: int = 64_000_000
    keep_snapshots: int = 8
    key_wait: float = 86400.0
    key_space: int = 64_000_000
    queue_requests: int = 1024
    queue_bytes: int = 256_000_000
    body_bytes: int = 32_000_000
    rows: int = 100_000
    columns: int = 10_000
    classes: int = 1000
    timeout: float = 60.0
    models: int = 100

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ValueError(f"{field.name} must be a number above 0, got {value!r}")
        if self.keep_snapshots < 2:
            raise ValueError(f"keep_snapshots must be at least 2, got {self.keep_snapshots!r}: one may be damaged")
