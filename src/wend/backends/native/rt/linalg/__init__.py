"""Matrix products, and factors of matrices."""
