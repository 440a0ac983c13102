"""Functions that are made anew for each call, as lambdas are, and the traces that they share."""
