"""State and effects: variables, prints, assertions, and their order."""
