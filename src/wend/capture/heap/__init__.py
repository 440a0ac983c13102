"""Python objects that captured code may change: containers, attributes, aliases, snapshots."""
