"""Functions of machine code that modules share, each compiled when one first calls it."""
