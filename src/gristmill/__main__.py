"""`python -m gristmill` is the command `gristmill`."""

import sys

from .cli.app import main

sys.exit(main())
