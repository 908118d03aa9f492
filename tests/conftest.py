"""What every test leaves behind is cleared away."""

from __future__ import annotations

import signal
import sys

import pytest


@pytest.fixture(autouse=True, scope="session")
def interrupts_raise():
    """A shell that runs the tests in the background makes its children ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_figures_left():
    """matplotlib warns of more than twenty open figures, in whichever test opens the next."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
