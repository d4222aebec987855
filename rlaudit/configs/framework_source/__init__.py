"""The framework's own code around a config or from the command line: the package and its release.

`checkout.py` finds the package, `release_here.py` its release or the one that the project pins.
`rlaudit/configs/dialects/framework_code.py` looks up there what a dialect declares of the code.
"""
