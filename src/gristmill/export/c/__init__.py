"""A description as a C99 header that predicts, or learns as well: `file.py` puts it together.

`code.py` has what both kinds share; `learning.py` what learns, with `rules.py`, `adapt.py` and the layout in `state.py`.
Only `gristmill.export` imports this folder. Begin reading in `file.py`.
"""
