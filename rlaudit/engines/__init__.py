"""Engines: processes in separate environments."""
