"""Faults that can be planted, one file each."""
