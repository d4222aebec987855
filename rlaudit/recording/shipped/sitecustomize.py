"""Starts the recorder in every Python of a recorded command, also if VLLM_PLUGINS leaves its plug-in out.

Python imports the first `sitecustomize` on its path, so this one hides the one that would have been imported without
it. That one runs first, and is what `sitecustomize` is afterwards. Its errors stay its own. If there is none, Python
gets the ImportError that it expects in that case.
Pythons older than the recorder come by here, too, down to 2.7. They must not notice.
"""

import os
import sys

import rlaudit_watched


def _empty_entry(places):
    """Return the working directory if an entry of PYTHONPATH would be empty without the recorder's folder.

    PYTHONPATH was unset when the command began, and something was put before or behind it since. That is nearly always
    `export PYTHONPATH=$PYTHONPATH:src`, and rarely `src${PYTHONPATH:+:$PYTHONPATH}`, which cannot be told from it.
    """
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if not rlaudit_watched.ALONE or len(entries) < 2 or _folder not in entries:
        return []
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        return []
    return [] if here in places else [here]


def _start():
    """Watch for vLLM's modules. What goes wrong stays here: vLLM itself reports a plug-in that it cannot load."""
    if sys.version_info < (3, 9) or not os.environ.get("RLAUDIT_RECORD"):
        return
    try:
        import rlaudit_door

        door = rlaudit_door.UntilImported(rlaudit_watched.MODULES)
        sys.meta_path.insert(0, door)
        imported = rlaudit_watched.MODULES.intersection(sys.modules)
        if imported:  # by the hidden one, or by a .pth file
            door.find_spec(min(imported))
    except Exception:
        pass


_folder = os.path.dirname(os.path.abspath(__file__))
_ours = [place for place in sys.path if os.path.abspath(place) == _folder]
_at = min([sys.path.index(place) for place in _ours] or [0])
_before = [place for place in sys.path[:_at] if place not in _ours]
_here = _empty_entry(_before)
sys.path[:] = _before + _here + [place for place in sys.path[_at:] if place not in _ours + _here]
_itself = sys.modules.pop("sitecustomize", None)  # kept: Python 2 empties a module that nothing refers to
try:
    import sitecustomize  # noqa: F401 - the hidden one
finally:
    # It may have changed the path.
    sys.path[_at:_at] = _ours
    _start()
