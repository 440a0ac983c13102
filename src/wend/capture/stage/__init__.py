"""Captured control flow at run time: loops, branches and operators, staged where necessary."""
