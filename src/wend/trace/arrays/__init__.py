"""Traced arrays: values, views, methods, and arrays whose numbers Python still knows."""
