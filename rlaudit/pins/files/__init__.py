"""Kinds of file that pin vLLM, one file each.

To add one, imitate a neighbour: bind PIN_FILE, with the names of such files and what reads the pins of one. `pytest
tests/pins tests/bump` is the rest.
"""
