"""Syntax trees: how to walk them, and what statements do to names."""
