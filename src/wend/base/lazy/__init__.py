"""Attributes made on first use: cached properties, and the methods of dataclasses."""
