"""`--key`: one model per key in `gristmill learn` and `predict`, with its options, defaults and report.

Imported by `cli/learn.py` and `cli/predict.py`. Begin with `commands.py`.
"""
