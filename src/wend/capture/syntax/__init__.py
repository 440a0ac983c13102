"""Syntax trees: traversal, and the names that statements bind, mutate and read."""
