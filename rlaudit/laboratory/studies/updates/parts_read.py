"""The tensors of a worker's weights as they were read back, sorted: new, old, of no version, not read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

HEAD = "lm_head.weight"


@dataclass(frozen=True)
class PartsRead:
    """The tensors of a checkpoint as one worker held them."""

    believed: str
    new: int
    # Tensors that did not get to the believed version.
    old: tuple[str, ...]
    # Tensors of no version: memory that no update wrote, a partial update, or another layout.
    of_no_version: tuple[str, ...]
    # Tensors that cannot be compared.
    unread: tuple[str, ...]
    # How many were to be read. Reports of 0.4.0 have neither of these.
    tensors: int | None = None
    # Whether logits come from an old head, though its parameter was not read as old.
    old_head_behind: bool = False


def parts_read(
    believed: str, tensors: Mapping[str, str | None], unread: list[str], logits: str | None, **_: Any
) -> PartsRead | None:
    """Sort the tensors of a read back; None if nothing could be read.

    believed: the version that the worker should hold. tensors: the version of each, None if it is of none. unread:
    those that cannot be compared. logits: the version of the head that the model's logits come from, if known.
    """
    if not tensors:
        return None
    old = [name for name, version in tensors.items() if version not in (None, believed)]
    behind = logits not in (None, believed) and HEAD not in old
    return PartsRead(
        believed,
        sum(version == believed for version in tensors.values()),
        (*old, *([HEAD] if behind else [])),
        tuple(name for name, version in tensors.items() if version is None),
        tuple(unread),
        len(tensors) + len(unread),
        behind,
    )
