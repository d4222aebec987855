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
    """Return what the model's files hold; 0 if that is not known, and then nothing is added to any limit."""
    return read_model_files(model, revision).stored_bytes or 0


def float32_bytes(model: str, revision: str | None = None) -> int:
    """Return what its weights take as a trainer holds them; 0 if that is not known."""
    return read_model_files(model, revision).weight_bytes("float32") or 0


def seconds_to_move(size: int, times: int = 1) -> float:
    """Return the longest time that moving so many bytes so many times may take."""
    return times * size / SLOWEST_BYTES_PER_SECOND


def require_room(size: int, new: Sequence[Path]) -> None:
    """Go on only if the disk can hold a copy of so many bytes for each folder that does not exist yet.

    Raises NotFinished, before anything is written, naming what is missing.
    """
    missing = [folder for folder in new if not folder.exists()]
    if not missing:
        return
    there = next(parent for parent in missing[0].parents if parent.exists())
    free, needed = shutil.disk_usage(there).free, size * len(missing)
    if needed > free:
        raise NotFinished(
            f"{len(missing)} copies of the weights take {needed / GB:.1f} GB, and {there} has {free / GB:.1f} GB free",
            "Name a run directory on a larger disk: --run-dir.",
        )
