"""The reference backend: every operation runs its NumPy kernel."""
