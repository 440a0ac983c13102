"""Exchange with other systems; each is imported in a package of its own."""
