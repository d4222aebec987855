"""A limit on this process's memory (`ulimit -v`, `ulimit -d`), and errors that mean that memory is short.

Under a limit the libraries of figures do not fail, they hang or end the process: OpenBLAS waits for threads that could
not be started, raises SIGINT, or exits with 1 (driver/others/blas_server.c and memory.c of 0.3.30). So they are given
one thread, and are not imported into less memory than they take.
"""

import errno
import os
import resource
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from rlaudit.errors import NotFinished

_MB = 2**20
# MB of address space that an import takes with one thread (VmPeak, measured on 2026-11-28), and a quarter more; the
# buffer that OpenBLAS takes at the first product (32 MB) is in it. pyarrow: with the threads that read a table, without
# memory for which it crashed once at `ulimit -v` 600 MB.
_TAKES: Mapping[str, int] = {"numpy": 160, "scipy": 210, "pyarrow": 520, "pandas": 420, "matplotlib": 120}
_STATM = Path("/proc/self/statm")


def respect_memory_limit() -> None:
    """Refuse to import, from now on, what a limit on memory leaves no room for; without a limit nothing changes."""
    if _left() is not None:
        sys.meta_path.insert(0, _Guard())


class _Guard:
    """Among the finders of modules, the one that finds none, and looks at the memory that is left."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raise NotFinished for a library that takes more than is left."""
        left = _left()
        if name not in _TAKES or left is None:
            return
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        if left < _TAKES[name]:
            raise _short(f"{name} takes {_TAKES[name]} MB to be loaded, and {left} MB are left")


def out_of_memory(error: BaseException) -> NotFinished | None:
    """Return what to tell a user of an error that means that memory is short; None for any other."""
    if isinstance(error, MemoryError):
        return _short(str(error) or "no more could be had")
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return _short(os.strerror(errno.ENOMEM))
    if _is_of_a_thread(error):
        return _short("no further thread could be started")
    if isinstance(error, ImportError) and _left() is not None:
        return _short(f"a package could not be loaded: {error.msg}")
    return None


def _is_of_a_thread(error: BaseException) -> bool:
    """Return whether starting a thread raised it: Python has no class for that."""
    if not isinstance(error, RuntimeError):
        return False
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and place.tb_frame.f_code is threading.Thread.start.__code__


def _short(why: str) -> NotFinished:
    limits = {name: soft for name, _, soft in _limits()}
    hint = "free some memory, or run it on a machine with more"
    if limits:
        name, soft = min(limits.items(), key=lambda entry: entry[1])
        hint = f"this process may have {soft // _MB} MB ({name}): raise that limit, or lift it with {name} unlimited"
    return NotFinished(f"memory is short: {why}", hint)


def _limits() -> list[tuple[str, int, int]]:
    """Return each limit that is set: a shell's name for it, the column of statm that it is about, and its bytes."""
    kinds = (("ulimit -v", 0, resource.RLIMIT_AS), ("ulimit -d", 5, resource.RLIMIT_DATA))
    soft = [(name, column, resource.getrlimit(kind)[0]) for name, column, kind in kinds]
    return [limit for limit in soft if limit[2] != resource.RLIM_INFINITY]


def _left() -> int | None:
    """Return the MB that the limits leave; None without a limit, or if the system does not say what is used."""
    limits = _limits()
    if not limits:
        return None
    try:
        used = [int(pages) * resource.getpagesize() for pages in _STATM.read_text().split()]
    except (OSError, ValueError):
        return None
    return min(soft - used[column] for _, column, soft in limits) // _MB
