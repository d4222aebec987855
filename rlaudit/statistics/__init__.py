"""Intervals and tests for tokens that are not independent, and when they hold. A cluster is one prompt's tokens."""
