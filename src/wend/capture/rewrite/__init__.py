"""What capture does to the syntax tree of a function, before anything runs."""
