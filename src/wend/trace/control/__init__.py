"""Functional control flow: `while_loop`, `cond`, `scan`, and the lists that loops append to."""
