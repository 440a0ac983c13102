"""The heap of captured code: containers, attributes, aliases, snapshots."""
