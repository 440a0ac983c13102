"""Draws of random numbers in captured code, which the run makes."""
