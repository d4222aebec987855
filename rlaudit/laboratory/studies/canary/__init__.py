"""Canary: a short training per arm."""
