"""Measurements: wend beside what one would use instead, in one run."""
