"""Emitters of control flow: loops, branches, lists, values that may be Zero, effects."""
