"""The operations: shape rules, NumPy kernels and derivatives, a family per file."""
