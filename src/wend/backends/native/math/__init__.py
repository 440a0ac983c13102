"""Elementary functions as LLVM IR, for numbers and for loops over arrays."""
