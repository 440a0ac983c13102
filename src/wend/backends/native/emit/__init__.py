"""What each operation becomes in LLVM IR, a file per family; `program.py` lists them."""
