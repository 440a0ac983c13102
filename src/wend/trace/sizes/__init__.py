"""Symbolic sizes: integer arithmetic on dimensions that are only known at run time."""
