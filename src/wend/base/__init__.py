"""Floor 0: errors, settings, source lines, pytrees. Knows no graph."""
