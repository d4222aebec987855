"""Environments built in the background: on a new machine the model is made while engines are installed.

Another process of rlaudit builds them. Code that needs one calls `ensure`, which waits for that process. If it did not
build the environment, `ensure` does, or raises why it cannot.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from rlaudit.engines.environments.environment_spec import EnvironmentSpec

_SECONDS_TO_END = 10.0


@contextmanager
def built_meanwhile(specs: Sequence[EnvironmentSpec]) -> Iterator[None]:
    """Build these engines' environments in the background, one after the other, until the context ends."""
    if not specs:
        yield
        return
    # -P: a `-m` alone would look for rlaudit, and all that it imports, in the working directory first.
    command = [sys.executable, "-P", "-m", "rlaudit", "engines", "build", f"--{specs[0].build}"]
    builder = subprocess.Popen(
        [*command, *(spec.version for spec in specs)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # A run in the background of a script ignores interrupts, and its children would, too.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    try:
        yield
    finally:
        # As Ctrl-C does, which also ends the installer.
        builder.send_signal(signal.SIGINT)
        try:
            builder.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            builder.kill()
            builder.wait()
