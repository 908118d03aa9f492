"""The command `gristmill`: one file per sub-command, imported only when it is called.

Nothing imports this folder. Begin with `app.py` (the list of commands) and `options.py` (options that commands share).
"""

from .app import main

__all__ = ["main"]
