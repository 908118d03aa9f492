"""Interface between driver and shards, independent of Ray."""

from __future__ import annotations

from typing import Any, Protocol

from .shard import Plan


class Lost(Exception):
    """A shard has died, and its pending questions are lost."""

    def __init__(self, shard: int, why: str = "") -> None:
        super().__init__(f"shard {shard} is gone{': ' if why else ''}{why}")
        self.shard = shard


class Workers(Protocol):
    """Runs shards, in processes or elsewhere. A ticket stands for a pending answer."""

    def start(self, plan: Plan) -> None:
        """Restart a shard; a running one with the same number is stopped first."""

    def submit(self, shard: int, method: str, *arguments: object) -> Any:
        """Ask a shard for `method(*arguments)`; returns a ticket. Questions to one shard are answered in order."""

    def ready(self, shard: int, ticket: object) -> bool:
        """Whether `result` would return, or raise, at once."""

    def result(self, shard: int, ticket: object) -> Any:
        """Wait for the answer; raises Lost where the shard is gone."""

    def stop(self, shard: int) -> None:
        """Kill a shard."""
