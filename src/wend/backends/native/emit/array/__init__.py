"""Emitters of whole-array operations: views, indexing, reductions, sorting, in-place updates."""
