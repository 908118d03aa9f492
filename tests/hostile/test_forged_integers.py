"""No whole number of a model file causes more work or memory than the size of the file justifies.

Two values of each number here; GRISTMILL_INTEGERS=all tries 0, 1, 2^31, 2^33, 2^56, 2^62 and 2^63, as `make fuzz` does,
and lets what was loaded learn.
"""

from __future__ import annotations

import forged_integers
import pytest

VALUES = forged_integers.VALUES if forged_integers.THOROUGH else (2**33, 2**56)
MODELS = forged_integers.models()


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("name", MODELS)
def test_a_forged_number_is_refused_or_harmless(name):
    cases = list(forged_integers.forgeries(MODELS[name].to_bytes(), VALUES))
    found = forged_integers.tried(cases)
    assert len(found) == len(cases)
    assert {case: said for case, said in found.items() if said not in ("refused", "loaded")} == {}


#: model -> a number of its file, and a value that crashed the process or asked for all memory when it was first tried
CRASHES = {
    "AutoNovelty": ("width", 2**62),
    "AutoClassifier": ("scaling0.seen", 0),
    "RaceRegressor": ("scaling0.seen", 0),
    "race of three classes": ("scaling1.seen", 0),
    "KernelPCA": ('["parameters", "n_components"]', 2**53),
    "KernelKMeans": ('["parameters", "n_clusters"]', 2**53),
}


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("name", CRASHES)
def test_what_once_crashed_is_refused(name):
    number, value = CRASHES[name]
    every = forged_integers.forgeries(MODELS[name].to_bytes(), (value,))
    cases = [(case, data) for case, data in every if case.split(" = ")[0].removesuffix("[0]") == number]
    assert cases
    assert set(forged_integers.tried(cases).values()) == {"refused"}


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
