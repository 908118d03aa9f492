"""Small changes of Python and C++ code, one place each: comparisons, arithmetic, logic, conditions and whole numbers."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# ---- Python ----------------------------------------------------------------------------------------------------------

_OPERATORS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Add, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


class Change(NamedTuple):
    """A changed place: its line, what it is in short, and the text of the whole file (Python) or its number (C++)."""

    line: int
    what: str
    text: str
    place: int


def _places(tree: ast.Module) -> Iterator[tuple[int, ast.AST]]:
    """Nodes that can be changed, by their place in `ast.walk`; annotations, texts and errors are left out."""
    spared: set[int] = set()
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            if getattr(node, name, None) is not None:
                spared |= {id(inner) for inner in ast.walk(getattr(node, name))}
        if isinstance(node, ast.JoinedStr | ast.Raise):
            spared |= {id(inner) for inner in ast.walk(node)}
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            spared |= {id(inner) for inner in ast.walk(node)}
    for place, node in enumerate(ast.walk(tree)):
        if id(node) in spared:
            continue
        plain = isinstance(node, ast.Constant) and type(node.value) in (int, float, bool)
        swaps = isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _OPERATORS
        compares = isinstance(node, ast.Compare) and type(node.ops[0]) in _OPERATORS
        if plain or swaps or compares or isinstance(node, ast.If | ast.IfExp):
            yield place, node


def _changed(source: str, place: int) -> tuple[str, str]:
    """The changed file, and the change in short."""
    tree = copy.deepcopy(ast.parse(source))
    node = list(ast.walk(tree))[place]
    short = node.test if isinstance(node, ast.If | ast.IfExp) else node
    before = ast.unparse(short)
    if isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1  # type: ignore[operator]
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = _OPERATORS[type(node.op)]()
    elif isinstance(node, ast.Compare):
        node.ops[0] = _OPERATORS[type(node.ops[0])]()
    else:
        assert isinstance(node, ast.If | ast.IfExp)
        node.test = short = ast.UnaryOp(ast.Not(), node.test)
    return ast.unparse(ast.fix_missing_locations(tree)), f"{before} -> {ast.unparse(short)}"


def python_changes(path: Path) -> list[Change]:
    source = path.read_text(encoding="utf-8")
    found = []
    for place, node in _places(ast.parse(source)):
        text, what = _changed(source, place)
        found.append(Change(node.lineno, what, text, place))  # type: ignore[attr-defined]
    return found


# ---- C++ -------------------------------------------------------------------------------------------------------------

_SWAPS = {"<": "<=", ">": ">=", "<=": "<", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "/"}
_OPERATOR = re.compile(r" (<=|>=|==|!=|<|>|\+|-|\*) (?=\S)")
_IF = re.compile(r"\bif \(")
#: lines whose operators are no arithmetic of numbers, or that only refuse
_SPARED = re.compile(
    r'^\s*(#|template|throw|static_assert|requires|concept|//|using|friend)|"|refuse\(|operator|constexpr \w+ k'
)


def _end_of(line: str, start: int) -> int | None:
    """Where the parenthesis that opens before `start` closes on this line."""
    depth = 1
    for at in range(start, len(line)):
        depth += {"(": 1, ")": -1}.get(line[at], 0)
        if depth == 0:
            return at
    return None


def switched(path: Path, first: int) -> tuple[str, list[Change]]:
    """A file of C++ whose places can be switched on by number, from `first` on, and these places."""
    lines, found = path.read_text(encoding="utf-8").split("\n"), []
    for number, line in enumerate(lines):
        code = line.split("//")[0]
        if _SPARED.search(code):
            continue
        edits: list[tuple[int, int, str]] = []  # start, end, what comes in their place
        for match in _OPERATOR.finditer(code):
            old, place = match[1], first + len(found)
            if old in "*-+" and code[: match.start()].rstrip()[-1:] in ("", "(", ",", "=", "<"):
                continue  # a sign
            if not code[: match.start()].strip():
                continue  # a line that continues another begins with it: the change would be the same
            found.append(Change(number + 1, f"{code.strip()} [{old} -> {_SWAPS[old]}]", "", place))
            edits.append((match.start(1), match.end(1), f"{old} mutants::Place<{place}>{{}} {old}"))
        for match in _IF.finditer(code):
            end = _end_of(code, match.end())
            inside = code[match.end() : end]
            if end is None or ";" in inside or re.search(r"[^=!<>]=[^=]", inside):
                continue
            place = first + len(found)
            found.append(Change(number + 1, f"{code.strip()} [negated]", "", place))
            edits += [(match.end(), match.end(), f"mutants::condition<{place}>("), (end, end, ")")]
        for start, stop, new in sorted(edits, reverse=True):
            line = line[:start] + new + line[stop:]
        lines[number] = line
    return "\n".join(lines), found
