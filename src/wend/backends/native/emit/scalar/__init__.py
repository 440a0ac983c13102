"""Emitters of one element: arithmetic, functions and casts in registers."""
