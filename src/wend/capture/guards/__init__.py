"""Guards of a trace: the Python values that it read, and which of them changed."""
