"""Intervals and tests for tokens that are not independent, and when they hold. A cluster is one prompt's tokens.

`metrics/` has the figures, one a file; `measurement/` sums them over a stream.
"""
