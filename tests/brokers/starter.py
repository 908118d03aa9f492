"""A process that has imported everything and forks a command for each line that it reads: so a test can kill many."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback

import gristmill.cli.learn
import gristmill.cli.predict
import gristmill.evaluate.live
import gristmill.prepared  # noqa: F401
from gristmill.cli.app import main


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
