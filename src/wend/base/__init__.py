"""The base of all packages: errors, settings, source lines, pytrees. Knows no graph."""
