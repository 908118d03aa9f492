"""The sub-commands of `gristmill`, one a file; see cli.py."""
