"""The two functions that rlaudit runs on a node of a Ray cluster.

The node's rlaudit starts a cell as the driver's does on its machine: as a process of the engine's interpreter. No
engine is imported into a Ray worker: its Ray would have to be the engine's, and its variables are Ray's.
"""

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.described import check_machine, on_gpus_of, read_described
from rlaudit.engines.cells.executor import Asked, run_here, unheard
from rlaudit.engines.cells.inherited_variables import Fate, fate_of
from rlaudit.engines.cells.launch import Outcome
from rlaudit.engines.hardware.accelerator import Accelerator, detect
from rlaudit.engines.hardware.gpu_memory import GpuMemory
from rlaudit.errors import NotFinished
from rlaudit.files.own_sources import SAME_ON_EVERY_NODE, sources_digest

DECIDING = {Fate.DECIDES, Fate.DECIDES_ON_CPU, Fate.DECIDES_ON_CUDA}


def look(cpu: bool, sources: str) -> Accelerator:
    """Return this node's accelerator. Raises NotFinished if it cannot be used, or if this is another rlaudit.

    sources: the digest of the driver's rlaudit.
    """
    if sources != sources_digest():
        raise NotFinished("its rlaudit is not the one that runs this command", SAME_ON_EVERY_NODE)
    # Ray hides the GPUs from a task that requires none.
    return detect(cpu, environ={})


def run(directory: Path, secrets: Sequence[Any], variables: Mapping[str, str]) -> Outcome:
    """Run the cell that is described in this folder. variables: those of the driver that decide a result.

    Raises NotFinished if it cannot be run on this node.
    """
    _require_in_sight([directory], "Give --run-dir a folder of a file system that all nodes share.")
    cell = read_described(directory, secrets)
    shown = dict(os.environ)
    with _as_on_the_driver(variables):
        accelerator = detect(cpu=cell.identity.get("accelerator", {}).get("kind") == "cpu", environ=shown)
        check_machine(cell, accelerator)
        _require_in_sight(
            _used_by(cell),
            "Put it on a file system that all nodes share: the model, interpreters that are given, and rlaudit's own "
            "environments (RLAUDIT_CACHE_DIR).",
        )
        place = "-".join(["node", *(device.uuid for device in accelerator.devices[:1])])
        cell = on_gpus_of(cell, accelerator).with_own_cache(place)
        return run_here(directory.parent, Asked(cell), unheard, [GpuMemory(accelerator.devices)], print)


def _used_by(cell: Cell) -> Iterator[Path]:
    """Yield the paths of this machine that the job names."""
    trainer = cell.job.get("trainer")
    trainer_command = trainer.get("command", ()) if isinstance(trainer, dict) else ()
    for word in (str(cell.job.get("model", "")), *cell.command[:1], *trainer_command[:1]):
        if word.startswith("/"):
            yield Path(word)


def _require_in_sight(paths: Sequence[Path] | Iterator[Path], way_out: str) -> None:
    for path in paths:
        if not path.exists():
            raise NotFinished(f"{socket.gethostname()} does not see {path}", way_out)


@contextmanager
def _as_on_the_driver(variables: Mapping[str, str]) -> Iterator[None]:
    """Replace Ray's variables, and those that decide a result, by the driver's.

    Ray sets the number of OpenMP threads and the visible GPUs of its workers.
    """
    before = dict(os.environ)
    for name in before:
        if name.startswith("RAY_") or fate_of(name) in DECIDING:
            del os.environ[name]
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
