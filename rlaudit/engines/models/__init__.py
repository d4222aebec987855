"""The model of a run: its files, its identity, and where they come from."""
