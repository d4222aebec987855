"""Where a cell ran and beside which others: what shared hardware could change, for whoever looks into its folder.

No key and no verdict depends on it. Cells at once never share a GPU; they share the host's cores and memory, and on a
processor its caches and memory bandwidth: these change how fast a step is, and with that whatever waits for a clock.
"""

import json
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from rlaudit.write_atomically import write_atomically

PLACEMENT = "placement.json"


@dataclass(frozen=True)
class Placement:
    """A cell's place. gpus: UUIDs, none where it was given all or there are none; cores: numbers of the processor's
    cores, none where it was given all; beside: keys of the cells that ran at the same time on the same machine."""

    machine: str
    gpus: Sequence[str] = ()
    cores: Sequence[int] = ()
    beside: Sequence[str] = field(default=())

    @classmethod
    def here(cls) -> "Placement":
        """All of this machine, and nobody beside."""
        return cls(socket.gethostname())

    def with_others(self, keys: Sequence[str]) -> "Placement":
        """The same place with these cells beside."""
        return replace(self, beside=tuple(sorted(keys)))


def write_placement(cell: Path, placement: Placement) -> None:
    """Write it into a cell's folder. Raises OSError."""
    write_atomically(cell / PLACEMENT, json.dumps(asdict(placement), indent=1).encode())
