"""Loads the recorder into a process of any program, which may have modules with the names of Python's own.

The recorder gets Python's own, wherever on its path the program has others, and under these names the program finds its
own afterwards. Nothing is recorded of a program that has imported one already in the place of what the recorder needs.
Standard library and Python 3.9.
"""

import os
import sys
from _frozen_importlib_external import PathFinder  # importlib's own, without importlib
from _thread import get_ident

_PARTS = ["rlaudit_" + part for part in "recorder completions secrets trainer v0 weights".split()]
_LIBRARY = os.path.dirname(os.__file__)
_PLACES = [_LIBRARY, os.path.join(_LIBRARY, "lib-dynload")]


def load(folder):
    """Import the recorder, which lies in a folder, and have it hook what it watches. Raises what an import raises."""
    before, standard = set(sys.modules), _Standard([folder, *_PLACES])
    sys.meta_path.insert(0, standard)
    try:
        recorder, *others = map(__import__, _PARTS)
        values = [value for module in (recorder, *others) for value in vars(module).values()]
        needed = [value for value in values if isinstance(value, type(sys))]
        theirs = [module.__spec__ for module in needed if _is_another(module.__name__, module.__spec__)]
        if theirs:
            recorder.register = _nothing  # vLLM's own door leads there as well
            raise ImportError("%s stands in the place of a module of Python's" % theirs[0].origin)
        recorder.register()
    finally:
        sys.meta_path.remove(standard)
        new = {name for name in set(sys.modules) - before if "." not in name}
        hidden = {name for name in new if _is_another(name, PathFinder.find_spec(name))}
        for name in [name for name in list(sys.modules) if name.partition(".")[0] in hidden]:
            del sys.modules[name]


class _Standard:
    """Finds modules in these places before any other finder does, for the thread that it was made in."""

    def __init__(self, places):
        self.places, self.thread = places, get_ident()

    def find_spec(self, name, path=None, target=None):
        return PathFinder.find_spec(name, self.places) if path is None and get_ident() == self.thread else None


def _is_another(name, spec):
    """Return whether what was found under a name is not Python's own module of that name."""
    own, other = (getattr(place, "origin", None) for place in (PathFinder.find_spec(name, _PLACES), spec))
    known = None not in (own, other) and other not in ("built-in", "frozen")
    return known and os.path.realpath(own) != os.path.realpath(other)


def _nothing():
    """Stand in for the recorder's `register`."""
