"""Functions applied to every element of axes of their arguments."""
