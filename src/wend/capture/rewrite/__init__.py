"""Rewriting of the syntax tree of a function, before anything runs."""
