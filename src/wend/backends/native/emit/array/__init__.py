"""Emitters of whole arrays: views, indexing, reductions, sorting, updates in place."""
