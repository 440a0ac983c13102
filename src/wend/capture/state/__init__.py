"""What a piece of captured control flow carries: variables, lists that grow, iterators."""
