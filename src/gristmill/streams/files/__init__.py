"""Files and pipes as chunks of rows: CSV, JSON lines, LIBSVM, Arrow and Parquet, compressed or not.

Imports `streams/tables`; `streams/read.py` chooses a reader by name and content. Begin with `source.py`, then `csv.py`.
"""
