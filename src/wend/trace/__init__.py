"""Floor 8: recording graphs while Python runs, and functional control flow."""
