"""Keeps the recorder out of a Python until that imports what the recorder watches: vLLM, a framework or a function.

Most Pythons of a training never do, and each of them starts as fast as without. Standard library and Python 3.9.
"""

import sys


class UntilImported:
    """Starts the recorder once. It finds nothing itself."""

    def __init__(self, modules):
        self.modules = modules

    def find_spec(self, name, path=None, target=None):
        """Return what the recorder's own finder returns, which stands first from now on."""
        if name not in self.modules:
            return None
        self.modules = ()
        before = sys.meta_path[0]
        try:
            import rlaudit_recorder

            rlaudit_recorder.register()
            first = sys.meta_path[0]
            return None if first is before else first.find_spec(name, path, target)
        except Exception as error:
            if sys.stderr and not getattr(sys, "_rlaudit_said", False):
                sys._rlaudit_said = True
                why = "%s: %s" % (type(error).__name__, error)
                print("rlaudit recorder: this process is not recorded: " + why, file=sys.stderr)
        return None
