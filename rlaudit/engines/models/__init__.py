"""The model of a run: its files, their source, and its identity."""
