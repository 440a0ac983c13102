"""Python builtins, `math` and string methods for traced values."""
