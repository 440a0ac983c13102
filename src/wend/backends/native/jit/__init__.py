"""From LLVM IR to machine code: the pass pipeline, linking, and the cache of programs."""
