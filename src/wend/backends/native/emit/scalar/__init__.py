"""Emitters of a single element: arithmetic, math functions and casts in registers."""
