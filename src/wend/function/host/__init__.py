"""Python called from compiled code: `py_function`, `progress`."""
