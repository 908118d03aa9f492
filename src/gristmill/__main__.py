"""`python -m gristmill` is the command `gristmill`."""

import sys

from .cli import main

sys.exit(main())
