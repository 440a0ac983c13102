"""Sorting, searching, and the extremes of rows."""
