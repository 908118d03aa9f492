"""What every test leaves behind is cleared away."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def no_figures_left():
    """matplotlib warns of more than twenty open figures, in whichever test opens the next."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
