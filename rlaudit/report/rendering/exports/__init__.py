"""Learned gates in the form of a framework's own gates, one file each.

To add one, imitate `skyrl.py`: bind EXPORT, whose name is the framework's and the file's. It prints the limits of the
number of a curve that the framework's gates look at (`curves/learned_gates.py`, Part), and says what that is.
"""
