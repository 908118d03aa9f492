"""Shards as actors of Ray: a few, long-lived, spread over the machines."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from ..._common.types import Options
from .shard import Plan, Shard
from .workers import Lost

#: settings of Ray for a cluster of this machine alone. Ray would put its workers behind everything else on the machine. And
#: it replaces 127.0.0.1 by the machine's own address, unless clusters of several machines are switched off.
_LOCAL = {"RAY_worker_niceness": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


def import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ImportError("gristmill.cluster needs Ray: pip install 'gristmill[ray]'") from None
    return ray


def start_ray(address: str | None, cpus: int) -> bool:
    """Connect to Ray, or start it on this machine; False where this process is connected already."""
    ray = import_ray()
    if ray.is_initialized():
        return False
    quiet: Options = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is not None:
        ray.init(address=address, **quiet)
        return True
    with _local_only(ray):
        ray.init(address="local", num_cpus=cpus, include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
    return True


@contextlib.contextmanager
def _local_only(ray: Any) -> Iterator[None]:
    """Ray starts on the loopback address, unless its own setting in the environment says otherwise."""
    constants, before = ray._private.ray_constants, {name: os.environ.get(name) for name in _LOCAL}
    several = constants.ENABLE_RAY_CLUSTER  # as it was when Ray was imported
    for name, value in _LOCAL.items():
        os.environ.setdefault(name, value)
    constants.ENABLE_RAY_CLUSTER = os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "1"
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = several
        for name in (name for name, value in before.items() if value is None):
            del os.environ[name]


def answers(ray: Any, asked: Any) -> Any:
    """What tasks return; the error of one is raised as it was there, without Ray's words around it."""
    try:
        return ray.get(asked)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        raise cause if isinstance(cause, Exception) else error from None


class RayWorkers:
    """Workers over Ray. Ray itself restarts nothing: a shard that comes back must come from its snapshot."""

    def __init__(self) -> None:
        self._ray = import_ray()
        # Shards ask for no processor of their own, so that any number of them finds a place.
        options = {"num_cpus": 0, "max_restarts": 0, "max_task_retries": 0, "scheduling_strategy": "SPREAD"}
        self._class = self._ray.remote(**options)(Shard)
        self._actors: dict[int, object] = {}

    def start(self, plan: Plan) -> None:
        self.stop(plan.shard)
        self._actors[plan.shard] = self._class.remote(plan)

    def submit(self, shard: int, method: str, *arguments: object) -> Any:
        return getattr(self._actors[shard], method).remote(*arguments)

    def ready(self, shard: int, ticket: object) -> bool:
        return bool(self._ray.wait([ticket], timeout=0)[0])

    def result(self, shard: int, ticket: object) -> Any:
        gone = self._ray.exceptions
        try:
            return self._ray.get(ticket)
        except gone.RayTaskError as error:
            raise error.as_instanceof_cause() from None
        except gone.RayActorError as error:
            if getattr(error, "actor_init_failed", False):  # it would fail again
                raise RuntimeError(f"shard {shard} could not be started: {error}") from None
            raise Lost(shard, str(error).split("\n", 1)[0]) from None
        except (gone.ObjectLostError, gone.WorkerCrashedError, gone.NodeDiedError) as error:
            raise Lost(shard, str(error).split("\n", 1)[0]) from None

    def stop(self, shard: int) -> None:
        actor = self._actors.pop(shard, None)
        if actor is not None and self._ray.is_initialized():
            self._ray.kill(actor)
