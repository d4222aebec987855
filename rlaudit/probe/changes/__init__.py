"""Sampling parameters, one a file: what is requested, and what it does to log probabilities if it is applied."""
