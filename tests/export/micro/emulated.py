"""An exported model on an emulated Cortex-M4: what it takes, and that it learns what the library learns.

Run by `make test-micro`, which names the Debian packages that it needs; not part of `make test`.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import gristmill as g
from gristmill.export import from_device, to_c

HERE = Path(__file__).parent
MACHINE = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "-ffunction-sections", "-fdata-sections"]
TICK = 40  #: instructions: 25 MHz, and an instruction takes 1 ns
SIZES = [(20, 5), (80, 8), (300, 20)]


class Taken(NamedTuple):
    """Bytes, and instructions an event."""

    flash: int
    state: int
    work: int
    predict: float
    learn: float
    longest: int
    wrong: int


def build(folder: Path, events: int, *, model: bool) -> tuple[int, int]:
    """Bytes of flash and RAM of the program, the stack not counted."""
    sources = [str(HERE / name) for name in ("start.c", "device.c")]
    defined = ["-DMODEL"] if model else []
    places = ["-I", str(folder), "-I", str(HERE), *sources, "-o", str(folder / "device.elf")]
    linked = ["-nostartfiles", "-T", str(HERE / "micro.ld"), "-Wl,--gc-sections", "-lm"]
    command = ["arm-none-eabi-gcc", *MACHINE, *STRICT, *defined, f"-DEVENTS={events}", *places, *linked]
    subprocess.run(command, check=True)
    line = subprocess.run(
        ["arm-none-eabi-size", str(folder / "device.elf")], capture_output=True, text=True, check=True
    ).stdout.splitlines()[1]
    text, data, bss = map(int, line.split()[:3])
    return text + data, data + bss


def emulate(folder: Path) -> None:
    quiet = ["-display", "none", "-monitor", "none", "-serial", "null"]
    debugger = ["-semihosting-config", "enable=on,target=native"]
    command = ["qemu-system-arm", "-M", "mps2-an386", *quiet, "-icount", "shift=0", *debugger, "-kernel", "device.elf"]
    subprocess.run(command, cwd=folder, check=True, timeout=600)


def stream(count: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """What the generator of device.c makes."""
    seed, rows = 2463534242, np.empty((count, width))
    for at in range(count * width):
        seed ^= (seed << 13) & 0xFFFFFFFF
        seed ^= seed >> 17
        seed ^= (seed << 5) & 0xFFFFFFFF
        rows.flat[at] = ((seed ^ 0x80000000) - 0x80000000 >> 8) / 4194304
    return rows, (rows[:, 0] > 0) == (rows[:, 1] > 0)


def learner(points: int, budget: str = "Merge") -> g.Prepared:
    return g.Prepared(g.KernelClassifier(g.Gaussian(0.5), g.PassiveAggressive(0.5), getattr(g, budget)(points)))


def begun(points: int, width: int, budget: str = "Merge") -> g.Prepared:
    """One that knows both classes, and has a full store."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40 + 4 * points, width))
    return learner(points, budget).partial_fit(X, X[:, 0] * X[:, 1] > 0)


def run(model: g.Prepared, folder: Path, events: int, number: str) -> tuple[Taken, bytes]:
    empty, _ = build(folder, events, model=False)
    text = to_c(model, learn=True, number=number, name="gm")
    (folder / "gm.h").write_text(text)
    flash, _ = build(folder, events, model=True)
    emulate(folder)
    state = (folder / "state").read_bytes()
    times = np.frombuffer((folder / "counts").read_bytes(), dtype="<u8", count=2)
    small = np.frombuffer((folder / "counts").read_bytes(), dtype="<u4", offset=16, count=4)
    assert small[2] == events
    work = int(re.search(r"#define GM_WORK (\d+)", text)[1]) * (4 if number == "float32" else 8)
    per = [TICK * int(time) / events for time in times]
    return Taken(flash - empty, len(state), work, per[0], per[1], TICK * int(small[0]), int(small[1])), state


@pytest.mark.parametrize("budget", ["DropOldest", "DropSmallest", "Merge"])
def test_ten_thousand_events(budget, tmp_path):
    model = begun(20, 5, budget)
    _, state = run(model, tmp_path, 10_000, "float64")
    back = from_device(state, model)
    X, y = stream(10_000, 5)
    model.partial_fit(X, y)
    found, expected = back.decision_function(X[:500]), model.decision_function(X[:500])
    assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("number", ["float32", "float64"])
@pytest.mark.parametrize(("points", "width"), SIZES)
def test_sizes_and_instructions(points, width, number, tmp_path, capsys):
    model = begun(points, width)
    events = 1000 if number == "float32" else 200
    taken, state = run(model, tmp_path, events, number)
    X, y = stream(events, width)
    before = (model.predict(X) == y).mean()
    assert (from_device(state, model).predict(X) == y).mean() > before - 0.05
    with capsys.disabled():
        print(
            f"\n| {points} x {width} | {number} | {taken.flash:,} | {taken.state:,} | {taken.work:,} | "
            f"{taken.predict:,.0f} | {taken.learn:,.0f} | {taken.longest:,} |"
        )
