"""Takes small arrays apart: a pass from graph to graph, after which their elements are scalars."""
