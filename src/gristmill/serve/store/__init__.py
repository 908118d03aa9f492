"""The durable half of the service: journal, snapshots, the learners of a model, and the thread that writes.

It knows nothing of HTTP, and only `gristmill.serve` imports it. Begin with `journal.py`: every promise of the
service rests on the order and the transactions of that file; then `served.py` and `writer.py`.
"""
