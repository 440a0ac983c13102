"""Elements of a map side by side in vectors: elementwise operations, regions, the loop over all."""
