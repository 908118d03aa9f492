"""How results look: the same table as text and as HTML, and progress on terminals and in notebooks."""

from __future__ import annotations

import contextlib
import io
import sys
import types
from html.parser import HTMLParser

import numpy as np
import pytest

from gristmill import (
    AutoClassifier,
    AutoNovelty,
    Gaussian,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    Perceptron,
    perceptron,
)
from gristmill.evaluate import compare, prequential, search
from gristmill.evaluate import progress as bars
from gristmill.streams import from_arrays, read, two_gaussians

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 2))


class Cells(HTMLParser):
    """The texts of the cells of an HTML table; every tag must be closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.cells = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.cells[-1] += data


@pytest.mark.parametrize(
    ("model", "y", "metric"),
    [
        (KernelClassifier(Gaussian(1.0)), X[:, 0] > 0, "error"),
        (
            KernelClassifier(Gaussian(1.0)),
            np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0)],
            "error",
        ),
        (KernelRegressor(Gaussian(1.0)), X[:, 0], "mae"),
        (KernelNovelty(Gaussian(1.0)), None, "alarm rate"),
    ],
    ids=["two classes", "three classes", "numbers", "anomalies"],
)
def test_a_result_is_its_table_for_every_task(model, y, metric, capsys):
    result = prequential(model, (X, y))
    print(result)
    printed = capsys.readouterr().out
    assert printed == f"{result!r}\n"
    heads, row = printed.splitlines()
    assert heads.split()[0] == "learner"
    assert metric in heads
    assert row.startswith(type(model).__name__)
    cells = Cells(result._repr_html_()).cells
    assert cells[: len(cells) // 2] == ["learner", metric, "last window", "stored points", "memory", "events/s"]
    assert all(cell in printed for cell in cells)


def test_comparisons_searches_races_explanations_and_streams_show_the_cells_of_their_text():
    y = X[:, 0] * X[:, 1] > 0
    kernel = Gaussian(1.0)
    found = compare({"a <b>": perceptron(kernel), "c": perceptron(Gaussian(0.1))}, (X, y))
    searched = search(lambda gamma: perceptron(Gaussian(gamma)), {"gamma": [0.1, 1.0, 3.0]}, (X, y))
    race = AutoClassifier(random_state=0).fit(X, y).report()
    why = KernelClassifier(kernel, Perceptron()).fit(X, y).explain(X[0], 3)
    alarm = AutoNovelty(random_state=0).fit(X).explain(X[0])
    for shown in (found, searched, race, why, alarm, two_gaussians(500), from_arrays(X, y, name="mine")):
        assert str(shown) == repr(shown)
        cells = Cells(shown._repr_html_()).cells
        flat = " ".join(str(shown).split())
        numbers = [cell for cell in cells if cell and cell not in ("all other points", "kernel value", "coefficient")]
        assert all(" ".join(cell.split()) in flat for cell in numbers if cell not in ("contribution", "label")), shown
    assert "mine" in repr(from_arrays(X, y, name="mine"))
    assert "600" in repr(from_arrays(X, y))


def test_a_stream_is_not_read_to_be_shown(tmp_path):
    (tmp_path / "t.csv").write_text("nonsense")
    assert "t.csv" in repr(read(tmp_path / "t.csv"))


def test_progress_comes_after_two_seconds_and_goes_at_the_end(monkeypatch):
    """On a terminal: a bar and the table; nothing of it for a short run."""
    clock = iter(np.arange(0.0, 1000.0, 0.7).tolist())
    monkeypatch.setattr(bars, "perf_counter", lambda: next(clock))
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setenv("TERM", "xterm")
    with contextlib.redirect_stderr(screen):
        prequential(perceptron(Gaussian(1.0)), from_arrays(X[:200], X[:200, 0] > 0, rows=100))
        assert screen.getvalue() == ""
        prequential(perceptron(Gaussian(1.0)), from_arrays(X, X[:, 0] > 0, rows=50, name="points"))
    shown = screen.getvalue()
    assert "points" in shown
    assert "600/600" in shown
    assert "stored points" in shown


def test_a_notebook_has_a_bar_and_a_table(monkeypatch):
    """IPython's display, which is not a dependency, is stood in for by one that records."""
    seen = []

    class ZMQInteractiveShell:
        pass

    class Handle:
        def update(self, shown):
            seen.append(shown)

    module = types.ModuleType("IPython")
    module.get_ipython = ZMQInteractiveShell
    display = types.ModuleType("IPython.display")
    display.HTML, display.display = str, lambda shown, display_id: Handle()
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(bars, "PATIENCE", 0.0)
    clock = iter(np.arange(0.0, 1000.0, 0.3).tolist())
    monkeypatch.setattr(bars, "perf_counter", lambda: next(clock))
    prequential(perceptron(Gaussian(1.0)), from_arrays(X, X[:, 0] > 0, rows=50, name="points"))
    assert seen[-1] == ""
    assert '<progress value="600" max="600"' in seen[-2]
    assert "600 of 600 events of points" in seen[-2]
    assert "perceptron" in "".join(Cells(seen[-2]).cells).lower() or "KernelClassifier" in seen[-2]
