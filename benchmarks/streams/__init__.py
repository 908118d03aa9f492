"""Learners beside their peers on many streams: error, error at the end, time. `python -m benchmarks.streams`."""
