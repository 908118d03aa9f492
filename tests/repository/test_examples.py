"""Every example of the gallery runs, is short, has a title, ends in numbers and draws at least one picture."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

FOLDER = Path(__file__).parent.parent.parent / "examples"
EXAMPLES = sorted(path for path in FOLDER.glob("*/*.py") if path.parent.name != "export")  # those make files


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """No window, no file left behind."""
    mpl.use("agg")
    monkeypatch.chdir(tmp_path)
    yield
    plt.close("all")


def said_by(name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Lines "what: number" that an example prints."""
    (path,) = FOLDER.glob(f"*/{name}.py")
    runpy.run_path(str(path), run_name="__main__")
    return dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines() if ": " in line)


def test_there_are_enough_in_every_group():
    groups = {header.parent for header in FOLDER.glob("*/GALLERY_HEADER.rst")}
    assert {path.parent for path in EXAMPLES} == groups
    assert len(EXAMPLES) >= 25


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive:UserWarning")
def test_example_runs(path, capsys):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 60
    title, line = text.splitlines()[1:3]
    assert line == "=" * len(title)
    runpy.run_path(str(path), run_name="__main__")
    assert any(letter.isdigit() for letter in capsys.readouterr().out)
    assert plt.get_fignums()
    assert not list(Path.cwd().iterdir())


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive:UserWarning")
def test_monitoring_notices_the_faults(capsys):
    lines = said_by("monitor_machine", capsys)
    noticed, all_faults = map(int, lines["faults noticed"].split(" of "))
    assert noticed >= 0.8 * all_faults
    assert float(lines["false alarms"].split("%")[0]) < 2.0


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive:UserWarning")
def test_parts_of_the_additive_example_are_those_it_was_made_of(capsys):
    words = said_by("additive_regressor", capsys)["swing of each part"].split(", ")
    swing = {word.rsplit(" ", 1)[0]: float(word.rsplit(" ", 1)[1]) for word in words}
    assert swing["house number"] < 0.2 < swing["age"] < swing["area"]


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive:UserWarning")
def test_foreground_of_the_clip_is_found(capsys):
    lines = said_by("background", capsys)
    assert float(lines["foreground found"].rstrip("%")) > 70
    assert float(lines["background taken for foreground"].rstrip("%")) < 2
