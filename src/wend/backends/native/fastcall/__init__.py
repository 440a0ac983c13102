"""The calling convention: machine code from Python objects to a compiled graph and back."""
