"""Items of lists and dicts at positions and keys that only the run knows."""
