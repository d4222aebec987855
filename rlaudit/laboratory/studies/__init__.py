"""One folder for each kind of experiment; all of them take the same course."""
