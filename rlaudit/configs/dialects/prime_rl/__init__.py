"""prime-rl."""
