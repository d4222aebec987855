"""What can be wrong: one cause a file."""
