"""Recording of graphs while Python runs, and functional control flow."""
