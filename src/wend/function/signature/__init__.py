"""Signatures: how a call's arguments are bound, flattened and turned into a key."""
