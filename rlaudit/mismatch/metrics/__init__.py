"""Metrics: one file each, with its formula, its reading and what other frameworks call it."""
