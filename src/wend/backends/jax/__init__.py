"""The JAX backend: graphs as programs of XLA, for GPUs, TPUs and many hosts."""
