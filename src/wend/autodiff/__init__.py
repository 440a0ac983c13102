"""Automatic differentiation: forward and reverse mode, graph to graph."""
