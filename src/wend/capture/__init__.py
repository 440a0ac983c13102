"""Floor 9: Python control flow, rewritten so that it can be recorded."""
