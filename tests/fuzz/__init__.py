"""What is made at random and run two ways: natively and by the interpreter."""
