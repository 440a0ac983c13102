"""Floor 1: stores: of items, and of what one process leaves for the next."""
