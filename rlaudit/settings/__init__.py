"""The settings of a rollout engine and its trainer, and their places in files."""
