"""One emitter per operation, a file per family; `table.py` lists them."""
