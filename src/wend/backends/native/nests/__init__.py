"""Loop nests: what is done on arrays in one go over their elements; `grouping.py` makes them."""
