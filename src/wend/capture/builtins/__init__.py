"""Python builtins, `math` and string methods on traced values."""
