"""Environments built while something else is done: on a new machine the model is made while engines are installed.

They are built by another process of rlaudit. What needs one of them calls `ensure`, which waits for the process that
builds it, and builds it, or says why it cannot be had, if that process did not.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rlaudit.engines.environments.environment_spec import EnvironmentSpec

_SECONDS_TO_END = 10.0


@contextmanager
def built_meanwhile(specs: Sequence[EnvironmentSpec]) -> Iterator[None]:
    """Begin to build these engines' environments, one after the other, and stop it at the end of this."""
    if not specs:
        yield
        return
    command = [sys.executable, "-m", "rlaudit", "engines", "build", f"--{specs[0].build}"]
    builder = subprocess.Popen(
        [*command, *(spec.version for spec in specs)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        # As Ctrl-C does, which takes the installer along.
        builder.send_signal(signal.SIGINT)
        try:
            builder.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            builder.kill()
            builder.wait()
