"""Benchmarks: ratios in one run, on one core, against peers and against the limit. `python -m benchmarks`."""
