"""How many threads the core may use in one call: `n_jobs`, within what joblib and OMP_NUM_THREADS leave."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from .. import _core
from .ranges import Range, is_whole, optional

#: what `n_jobs` may be
jobs = optional(Range("a whole number other than 0", lambda value: is_whole(value) and value != 0))


def resolved(n_jobs: object) -> int:
    """`n_jobs` as a number of threads, as scikit-learn reads it.

    None is 1, or what a surrounding `joblib.parallel_config` says; -1 is all cores that the process may use, -2 all but
    one. No more than OMP_NUM_THREADS, which joblib sets in its worker processes so that they share the cores.
    """
    if n_jobs == 1:
        return 1
    from joblib import effective_n_jobs

    count = int(effective_n_jobs(n_jobs))
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return min(count, int(limit)) if limit.isdigit() and int(limit) > 0 else count


@contextlib.contextmanager
def allowed(n_jobs: object) -> Iterator[None]:
    """Context in which calls of the core by this thread may use this many threads."""
    before = _core.threads_allowed()
    _core.allow_threads(resolved(n_jobs))
    try:
        yield
    finally:
        _core.allow_threads(before)
