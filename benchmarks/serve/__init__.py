"""The floors of the service: throughput, latencies, clients of others, hostile requests.

`python -m benchmarks.serve` runs them, client and server on this machine, and ends with 1 if a floor is missed. Begin
with `__main__.py`.
"""
