"""A Ray cluster that answers, or the reason why there is none."""

import logging
import os
import socket
from typing import Any

from rlaudit.errors import NotFinished

CONNECT_SECONDS = 10.0


def connected(address: str) -> Any:
    """The module `ray`, connected to the cluster at this address; to the one this machine belongs to where it is empty.

    Raises NotFinished where Ray is not installed, or there is no cluster.
    """
    try:
        import ray
    except ImportError as error:
        raise NotFinished(
            "--executor ray: Ray is not installed beside this rlaudit",
            "Install rlaudit[ray] here and on the cluster's nodes.",
        ) from error
    at = address or os.environ.get("RAY_ADDRESS", "")
    try:
        at = at or _of_this_machine()
        _require_answer(at)
        ray.init(at, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise NotFinished(
            f"there is no Ray cluster {'at ' + at if at else 'on this machine'}: {first_line(error)}",
            "Start one (ray start --head), or give its address: --executor ray:HOST:PORT.",
        ) from error
    return ray


def first_line(error: BaseException) -> str:
    """The first sentence of what Ray says, which is more than fits one; of a task's error the last line, its cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return lines[-1] if "Traceback" in str(error) else lines[0].partition(". ")[0]


def _of_this_machine() -> str:
    """The address of the cluster that this machine belongs to; empty where it belongs to none."""
    from ray._private.services import canonicalize_bootstrap_address

    return str(canonicalize_bootstrap_address("auto") or "")


def _require_answer(address: str) -> None:
    """Raises OSError where nobody listens: Ray asks a cluster that is gone for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        raise ConnectionError("no address of the form HOST:PORT" if address else "none was started")
    socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
