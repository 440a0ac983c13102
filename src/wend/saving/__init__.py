"""Functions and objects in files: saved as data, loaded without trust."""
