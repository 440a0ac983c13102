"""Run-time storage: lists, variables, and caches shared between processes."""
