"""Sampling parameters, one a file: what is asked for, and what it does to log probabilities if it is applied."""
