"""State of outside that functions change: an argument and a result of their traces."""
