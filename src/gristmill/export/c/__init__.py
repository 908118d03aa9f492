"""A description as a C99 header: `file.py` puts it together; `code.py` has what both kinds share, `learning.py` what learns.

Only `gristmill.export` imports this folder. Begin reading in `file.py`.
"""
