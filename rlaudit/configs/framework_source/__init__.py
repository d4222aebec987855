"""The framework's own code, if it lies around a config or was named: which package it is, and its release.

`checkout.py` finds the package, `release_here.py` its release or the one that the project pins. What a dialect says of
the code is looked up there by `rlaudit/dialects/framework_code.py`.
"""
