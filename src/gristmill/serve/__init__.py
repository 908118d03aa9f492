"""A durable learning service over HTTP: `gristmill serve`, and `app(store)` for any ASGI server.

Only the command line imports it. Begin with `application.py` for the paths, and with `store/journal.py` for what is kept
when the process dies; `page/` is the live page.
"""

from .application import app
from .store.settings import Settings
from .store.store import Store

__all__ = ["Settings", "Store", "app"]
