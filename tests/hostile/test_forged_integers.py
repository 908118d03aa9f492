"""No whole number of a model file causes more work or memory than the size of the file justifies.

Two values of each number here; GRISTMILL_INTEGERS=all tries 0, 1, 2^31, 2^33, 2^56 and 2^63, as `make fuzz` does.
"""

from __future__ import annotations

import os

import forged_integers
import pytest

VALUES = forged_integers.VALUES if os.environ.get("GRISTMILL_INTEGERS") == "all" else (2**33, 2**56)
MODELS = forged_integers.models()


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("name", MODELS)
def test_a_forged_number_is_refused_or_harmless(name):
    cases = list(forged_integers.forgeries(MODELS[name].to_bytes(), VALUES))
    found = forged_integers.tried(cases)
    assert len(found) == len(cases)
    assert {case: said for case, said in found.items() if said not in ("refused", "loaded")} == {}


def test_the_limits_bite():
    """A load that takes long, or much memory, would be found."""
    real = forged_integers.gristmill.from_bytes
    try:
        forged_integers.gristmill.from_bytes = lambda data: bytearray(1 << 33)
        assert forged_integers.tried([("much", b"")])["much"].startswith("raises MemoryError")
        forged_integers.SECONDS, before = 0.2, forged_integers.SECONDS

        def endless(data):
            while True:
                pass

        forged_integers.gristmill.from_bytes = endless
        assert forged_integers.tried([("long", b"")]) == {"long": "takes too long"}
        forged_integers.SECONDS = before
    finally:
        forged_integers.gristmill.from_bytes = real
