"""Python called from compiled code: `py_function` and `progress`."""
