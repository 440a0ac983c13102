"""Floor 4: derivatives, Graph to Graph. `vjp.py` is the page to read first."""
