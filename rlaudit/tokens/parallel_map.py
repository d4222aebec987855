"""A function over the parts of a file on all cores, in the order of the parts, with few of them in memory at a time."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# More threads than this wait for Python's lock and for the one that decodes, and each holds a part in memory.
MOST_THREADS = 4


def parallel_map(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None
) -> Iterator[Result]:
    """function(item) of each item, in order; worth it where that leaves Python's lock, as array arithmetic does.

    threads: as many as this process has cores, at most MOST_THREADS. Exceptions come through at their item's turn.
    """
    threads = threads or min(MOST_THREADS, _cores())
    pending: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="rlaudit-part") as pool:
        try:
            for item in items:
                pending.append(pool.submit(function, item))
                if len(pending) > threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
