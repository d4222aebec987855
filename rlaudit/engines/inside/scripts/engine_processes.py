"""Ends the worker if a process of its engine is gone.

vLLM's LLM waits for the answer of a dead EngineCore for ever: its monitor only closes the sockets
(v1/engine/core_client.py:692 of 0.18.1). Python 3.9 syntax, standard library only.
"""

import multiprocessing
import os
import sys
import threading
import time
from contextlib import contextmanager
from multiprocessing.connection import wait

# An engine that notices says more than that it is gone.
SECONDS_TO_SAY_WHY = 10.0


@contextmanager
def needed():
    """Within this context a process of the engine that ends takes the worker with it, the reason last in the log."""
    processes = multiprocessing.active_children()
    over = threading.Event()
    if processes:
        threading.Thread(target=_watch, args=(processes, over), daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _watch(processes, over):
    wait([process.sentinel for process in processes])
    time.sleep(SECONDS_TO_SAY_WHY)
    if over.is_set():
        return
    gone = ", ".join(process.name for process in processes if not process.is_alive())
    why = "the engine's process %s was ended (by hand, or by the kernel for want of memory)" % gone
    print("RuntimeError: %s" % why, file=sys.stderr, flush=True)
    os._exit(1)
