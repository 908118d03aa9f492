"""Print the requirements of an extra, so that pip can install them without building the package once more."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text("utf-8"))["project"]
print(*project["optional-dependencies"][sys.argv[1]], sep="\n")
