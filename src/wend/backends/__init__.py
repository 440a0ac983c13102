"""Backends, which compile and run graphs. Each is a folder and imports no other one."""
