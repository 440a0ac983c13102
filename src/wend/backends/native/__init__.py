"""The native backend: scalar programs as machine code, by LLVM."""
