"""Functions that are created again for each call, such as lambdas, and the traces they share."""
