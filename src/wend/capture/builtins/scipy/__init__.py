"""SciPy's functions in captured code."""
