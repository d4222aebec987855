"""Engines are processes, in environments of their own."""
