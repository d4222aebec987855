"""A function over the parts of a file on all cores, in the order of the parts, with few of them in memory at a time.

`prefetched` decodes the next part while the present one is measured. Both release Python's lock.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Queue
from threading import Event, Thread
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# More threads than this wait for Python's lock and for the one that decodes, and each holds a part in memory.
MOST_THREADS = 4
_END = object()


def parallel_map(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None
) -> Iterator[Result]:
    """Yield function(item) of each item, in order; worth it if that leaves Python's lock, as array arithmetic does.

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


def prefetched(items: Iterator[Item], ahead: int = 2) -> Iterator[Item]:
    """Yield the same items, made by a thread that is at most `ahead` items early. Its exceptions come through."""
    ready: Queue[object] = Queue(maxsize=ahead)
    abandoned = Event()

    def produce() -> None:
        try:
            for item in items:
                ready.put(item)
                if abandoned.is_set():
                    return
            ready.put(_END)
        except BaseException as error:
            ready.put(error)

    thread = Thread(target=produce, daemon=True, name="rlaudit-read-ahead")
    thread.start()
    try:
        while (item := ready.get()) is not _END:
            if isinstance(item, BaseException):
                raise item
            yield item  # type: ignore[misc]
    finally:
        abandoned.set()
        while thread.is_alive():
            while not ready.empty():
                ready.get_nowait()
            thread.join(timeout=0.05)
