"""Symbolic sizes: integer arithmetic on dimensions that only the run knows."""
