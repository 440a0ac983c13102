"""May-alias facts: arrays of which only the run tells which one they are, and who holds them."""
