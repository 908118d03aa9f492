"""Tables as numeric rows: columns of numbers, booleans, categories, times and text, missing values, new columns.

Imported by readers, `Prepared` and River's adapters. Begin with `table.py`, then `cells.py` (how one cell is parsed).
"""
