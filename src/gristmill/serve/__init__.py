"""A durable learning service over HTTP: `gristmill serve`, and `app(store)` for any ASGI server.

Only the command line imports it. Begin with `application.py` for the paths, and with `store/journal.py` for what is kept
when the process dies; `page/` is the live page.
"""

try:
    from .application import app
    from .store.settings import Settings
    from .store.store import Store
except ModuleNotFoundError as error:
    if (error.name or "gristmill").partition(".")[0] == "gristmill":
        raise
    raise ImportError(
        f"gristmill.serve needs the package {error.name}: pip install 'gristmill[serve]'", name=error.name
    ) from error

__all__ = ["Settings", "Store", "app"]
