"""Floor 3: what each operation means. `build.py` is the page to read first."""
