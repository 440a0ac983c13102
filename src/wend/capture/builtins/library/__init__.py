"""Functions of modules of the standard library on traced values."""
