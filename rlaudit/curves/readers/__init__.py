"""Sinks that training curves can be read from: one file each."""
