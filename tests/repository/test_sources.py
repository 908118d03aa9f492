"""What the sources themselves must keep to."""

from __future__ import annotations

import re
from pathlib import Path

CORE = Path(__file__).parent.parent.parent / "src" / "core"
INEXACT = re.compile(
    r"\bstd::(exp2?|expm1|log(?:1p|2|10)?|pow|(?:a?(?:sin|cos|tan)h?)|atan2|hypot|cbrt|erfc?|[lt]gamma)\s*\("
)


def test_the_core_asks_no_c_library_for_functions_that_differ_between_machines():
    files = sorted([*CORE.rglob("*.hpp"), *CORE.rglob("*.cpp")])
    assert len(files) > 20
    found = [
        f"{path.name}:{number}: {match[0]}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (match := INEXACT.search(line.split("//")[0]))
    ]
    assert found == []
    assert INEXACT.search("return std::tanh(x) + std::exp(y);") is not None
