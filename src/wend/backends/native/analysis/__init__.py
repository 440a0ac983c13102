"""Analyses of a graph before code generation: liveness, and the use and aliasing of lists."""
