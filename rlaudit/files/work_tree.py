"""Which files may be read for a config: those in the work trees of the paths that the user names.

A config names further files by a path, in a search path, and by a link in its repository. One that leads elsewhere may
lead to a kubeconfig, whose values a report would print: it is not opened.
"""

import os.path
from collections.abc import Collection
from pathlib import Path


def trees_of(*named: str) -> tuple[str, ...]:
    """Return the git work trees of paths that the user names, and of what these link to, as real paths.

    Without git: the folder of a file, or the folder itself. git does not run: the work tree is the nearest folder with
    a `.git`, which is a file in a linked work tree and in a submodule.
    """
    places = (place for path in named for place in (os.path.normpath(Path(path).absolute()), _real(path)))
    return tuple(dict.fromkeys(_real(_tree(Path(place))) for place in places))


def is_inside(path: str | Path, trees: Collection[str]) -> bool:
    """Return whether a path is in one of the trees once its links are followed."""
    real = Path(_real(path))
    return any(real.is_relative_to(tree) for tree in trees)


def _tree(place: Path) -> Path:
    folder = place if place.is_dir() else place.parent
    return next((above for above in (folder, *folder.parents) if os.path.lexists(above / ".git")), folder)


def _real(path: str | Path) -> str:
    try:
        return os.path.realpath(path)
    except ValueError:  # a NUL in it: no file has such a name
        return os.path.normpath(Path(path).absolute())
