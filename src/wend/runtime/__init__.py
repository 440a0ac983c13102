"""Floor 1: stores that know no graph."""
