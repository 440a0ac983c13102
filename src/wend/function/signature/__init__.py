"""Call signatures: binding, flattening and cache keys of arguments."""
