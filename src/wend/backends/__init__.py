"""Floor 5: what runs graphs. Each backend is a folder of its own and sees no other."""
