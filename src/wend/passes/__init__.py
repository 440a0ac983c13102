"""Floor 2: Graph to Graph, one pass a file; `pipeline.py` lists them in order."""
