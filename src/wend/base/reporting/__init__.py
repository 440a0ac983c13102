"""Logs, dumps of graphs, profiles, and the status line."""
