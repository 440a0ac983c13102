"""The target: LLVM types, the layout of values in registers and memory, and the host processor."""
