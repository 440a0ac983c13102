"""Functions and objects in files: saved as data (D35), loaded without trust."""
