"""`--executor`: this machine, or a Ray cluster."""

from rlaudit.errors import UsageError

LOCAL, RAY = "local", "ray"


def ray_address(executor: str) -> str | None:
    """The address of the Ray cluster, empty for the one this machine belongs to; None for this machine alone.

    Raises UsageError for another word.
    """
    kind, _, address = executor.partition(":")
    if kind == RAY:
        return address
    if executor != LOCAL:
        raise UsageError(f"--executor {executor}: there are {LOCAL} and {RAY}[:ADDRESS]")
    return None
