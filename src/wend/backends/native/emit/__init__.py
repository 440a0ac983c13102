"""Emitters: one per operation, one module per family; `table.py` lists them."""
