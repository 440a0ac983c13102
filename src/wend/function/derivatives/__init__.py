"""`grad`, `vjp`, `jvp`, `linearize` and Jacobians, with the signatures of `jax`."""
