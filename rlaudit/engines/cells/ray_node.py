"""What runs on a node of a Ray cluster: two functions that take and return plain data, and rlaudit's own worker.

The node's rlaudit does what the driver's would do on its machine: it has the engine's environment, built once per node
under a lock or found where all nodes see it, and starts the worker as a process of the engine's own interpreter. No
engine is ever imported into a Ray worker, whose Ray would have to be the engine's, and whose variables are Ray's.
"""

import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import rlaudit
from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.described import read_described
from rlaudit.engines.cells.executor import run_here
from rlaudit.engines.cells.inherited_variables import Fate, fate_of
from rlaudit.engines.cells.own_cache import with_own_cache
from rlaudit.engines.cells.placement import Placement
from rlaudit.engines.cells.planned_machine import check_machine, on_gpus_of
from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.hardware.accelerator import Accelerator, detect
from rlaudit.engines.hardware.gpu_memory import GpuMemory
from rlaudit.errors import NotFinished, RlauditError

DECIDING = {Fate.DECIDES, Fate.DECIDES_ON_CPU, Fate.DECIDES_ON_CUDA}
# Beside a cell's folder while its environment is made ready: what is being done, for the driver to show.
SAID = ".said"


def look(cpu: bool) -> str:
    """What this node is: its name, its rlaudit, and its accelerator or why it cannot be used."""
    told: dict[str, Any] = {"node": socket.gethostname(), "rlaudit": rlaudit.__version__}
    try:
        # Ray hides the GPUs of a task that asks for none.
        told["accelerator"] = asdict(detect(cpu, environ={}))
    except RlauditError as error:
        told["trouble"] = error.message
    return json.dumps(told)


def sees(path: str) -> str:
    """What is in a file of the driver's; empty where this node does not see it."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


def run(folder: str, key: str, secrets: Sequence[Any], variables: Mapping[str, str]) -> str:
    """Run the cell that is described in `folder`/`key`, with those of the driver's variables that decide anything.

    Returns where it ran and the outcome, or why it cannot be run here.
    """
    place = Path(folder)
    told: dict[str, Any] = {"node": socket.gethostname()}
    try:
        cell = read_described(place / key, secrets)
        shown = dict(os.environ)
        with _as_on_the_driver(variables):
            accelerator = detect(cpu=cell.identity.get("accelerator", {}).get("kind") == "cpu", environ=shown)
            told["outcome"] = asdict(_run(place, cell, accelerator))
    except RlauditError as error:
        told["refused"], told["way_out"] = error.message, error.hint
    return json.dumps(told)


def _run(place: Path, cell: Cell, accelerator: Accelerator) -> Any:
    check_machine(cell, accelerator)
    _require_in_sight(cell)
    ready = on_gpus_of(_in_own_environment(cell, place), accelerator)
    ready = with_own_cache(ready, "-".join(["node", *(device.uuid for device in accelerator.devices[:1])]))
    where = replace(Placement.here(), gpus=[device.uuid for device in accelerator.devices])
    memory = [GpuMemory(accelerator.devices)]
    return run_here(place, ready, lambda event: None, memory, _unheard, placement=lambda: where)


def _unheard(sentence: str) -> None:
    """Ray keeps what a worker prints."""
    print(sentence)


def _in_own_environment(cell: Cell, place: Path) -> Cell:
    """The cell with the interpreter of this node. Raises NotFinished where its packages are not the driver's."""
    wanted = cell.environment
    if wanted is None or wanted.spec.command:
        return cell
    said = place / f"{cell.key}{SAID}"

    def report(words: str) -> None:
        said.write_text(f"{wanted.spec.name} on {socket.gethostname()}: {words}", encoding="utf-8")

    report("made ready")
    found = ensure(wanted.spec, report)
    said.unlink(missing_ok=True)
    apart = sorted(set(found.lock) ^ set(wanted.lock))
    if apart:
        raise NotFinished(
            f"{wanted.spec.name} on {socket.gethostname()} holds other packages than the driver's: {apart[0]}",
            "Remove one of the two (rlaudit engines remove), or put the cache where all nodes see it (XDG_CACHE_HOME).",
        )
    # Its paths are this node's; what else is declared stays as it was planned.
    own = {name: value for name, value in found.variables.items() if name in wanted.variables}
    gone = wanted.variables.keys() - found.variables.keys() - {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"}
    kept = {name: value for name, value in cell.variables.items() if name not in gone}
    return replace(cell, command=found.command, variables={**kept, **own}, environment=found)


def _require_in_sight(cell: Cell) -> None:
    """Raises NotFinished for a path of the job that this node does not see."""
    trainer = cell.job.get("trainer")
    paths = [str(cell.job.get("model", "")), *([] if cell.environment is None else cell.environment.spec.command[:1])]
    paths += list(trainer["command"][:1]) if isinstance(trainer, dict) and "command" in trainer else []
    for path in paths:
        if path.startswith("/") and not Path(path).exists():
            raise NotFinished(
                f"{socket.gethostname()} does not see {path}",
                "Put it where all nodes see it: the model, interpreters that are given, and for trainings the cache "
                "with the trainer's environment (XDG_CACHE_HOME).",
            )


@contextmanager
def _as_on_the_driver(variables: Mapping[str, str]) -> Iterator[None]:
    """This process's variables without Ray's own, and with the driver's where they decide anything: Ray sets the
    number of OpenMP threads and the visible GPUs of its workers."""
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
