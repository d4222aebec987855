"""From measurements to the three layers, in order."""
