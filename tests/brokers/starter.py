"""A process that has imported everything and forks a command for each line that it reads: so a test can kill many."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from importlib import import_module

from gristmill.cli.app import main
from gristmill.serve.store.learners import Spec, build
from gristmill.streams.brokers import register

_NEEDED = (
    "gristmill.cli.learn", "gristmill.cli.predict", "gristmill.cli.serve", "gristmill.evaluate.live", "gristmill.prepared",
    "gristmill.serve.run", "gristmill.serve.sources", "prometheus_client", "uvicorn.lifespan.on", "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
)  # fmt: skip


def child(arguments: list[str], log: str) -> int:
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    try:
        main(arguments, prog_name="gristmill")
    except SystemExit as ended:
        return int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


register("lines", "tests.brokers.lines_broker", "LinesReader", "LinesWriter")
for name in _NEEDED:
    import_module(name)
build(Spec(learner="passive_aggressive(Gaussian(0.5), size=40)"))  # imports every learner
for line in sys.stdin:
    arguments, log, seconds = json.loads(line)
    process = os.fork()
    if process == 0:
        signal.alarm(seconds)  # ends this process, whatever it waits for and whatever became of the test
        code = child(arguments, log)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    print(process, flush=True)
    _, status = os.waitpid(process, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
