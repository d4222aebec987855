"""Decoding of the next part of a file while the present one is measured; both release Python's lock."""

from collections.abc import Iterator
from queue import Queue
from threading import Event, Thread
from typing import TypeVar

Item = TypeVar("Item")
_END = object()


def prefetched(items: Iterator[Item], ahead: int = 2) -> Iterator[Item]:
    """The same items, made by a thread that is at most `ahead` items early. Its exceptions come through."""
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
