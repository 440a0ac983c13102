"""What a trace has read of the Python around it, and what of it has changed."""
