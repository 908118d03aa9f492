"""A description as an ONNX graph: `file.py` puts it together from rows, kernels and answers; begin reading there.

Only `gristmill.export` imports this folder; the package `onnx` is imported where a graph is made.
"""
