"""Fleets: thousands of small learners in one core, by position (`Fleet`) or by key (`KeyedFleet`), with eviction and spill.

Imports `prepared` and `learners`. Begin with `fleet.py` and `keyed.py`; `key_store.py` and `spill.py` bound the memory.
"""
