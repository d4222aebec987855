"""A copy of a framework's code around a config, or one that was named: which release it is, and what it leaves open.

`checkout.py` finds the package, `release_here.py` its release or the one that the project pins, and `against_copy.py`
holds what a dialect says of releases against the words of its files. Nothing of it is imported or run.
"""
