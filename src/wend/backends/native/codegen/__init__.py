"""Code generation: the walk over a graph, and the parts of LLVM IR that all emitters share."""
