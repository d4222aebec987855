"""How long moving a model's weights may take, and the room that copies of them need: both follow from their size."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from rlaudit.engines.models.model_files import read_model_files
from rlaudit.errors import NotFinished

# Reading weights from a network disk, or sending them through the memory of a busy machine; 135 M weights in float32
# took 1.0 to 1.5 s beside five other jobs on two cores (gloo and a reload by 0.18.1, 2026-11-23), ten times as fast.
SLOWEST_BYTES_PER_SECOND = 40e6
GB = 1e9


def stored_bytes(model: str, revision: str | None = None) -> int:
    """Return the bytes of the model's files; 0 if unknown, which adds nothing to any limit."""
    return read_model_files(model, revision).stored_bytes or 0


def float32_bytes(model: str, revision: str | None = None) -> int:
    """Return the bytes of its weights as a trainer holds them; 0 if unknown."""
    return read_model_files(model, revision).weight_bytes("float32") or 0


def seconds_to_move(size: int, times: int = 1) -> float:
    """Return the longest time that moving `size` bytes `times` times may take."""
    return times * size / SLOWEST_BYTES_PER_SECOND


def require_room(size: int, new: Sequence[Path]) -> None:
    """Raise NotFinished if the disk cannot hold a copy of `size` bytes for each folder that does not exist yet."""
    missing = [folder for folder in new if not folder.exists()]
    if not missing:
        return
    parent = next(parent for parent in missing[0].parents if parent.exists())
    free, needed = shutil.disk_usage(parent).free, size * len(missing)
    if needed > free:
        raise NotFinished(
            f"{len(missing)} copies of the weights take {needed / GB:.1f} GB, and {parent} has {free / GB:.1f} GB free",
            "Name a run directory on a larger disk: --run-dir.",
        )
