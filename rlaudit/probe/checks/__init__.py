"""Other questions than those of sampling parameters, one a file."""
