"""Loop fusion: array operations grouped into loop nests, from graph to graph."""
