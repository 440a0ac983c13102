"""One emitter per operation: the functions of JAX that compute it."""
