"""State carried by captured control flow: variables, growing lists, iterators."""
