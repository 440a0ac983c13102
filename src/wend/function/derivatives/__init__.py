"""`grad`, `vjp`, `jvp`, `linearize` and Jacobians; signatures as in `jax`."""
