"""One cell of a run, run alone on any machine that sees its directory."""

import os
from pathlib import Path

from filelock import FileLock, Timeout

from rlaudit.engines.cells.cell import Cell, finished
from rlaudit.engines.cells.described import check_machine, on_gpus_of, read_described
from rlaudit.engines.cells.executor import Asked, OneAtATime
from rlaudit.engines.cells.launch import Event, Outcome
from rlaudit.engines.hardware.accelerator import Accelerator, detect
from rlaudit.engines.hardware.gpu_memory import GpuMemory
from rlaudit.errors import NotFinished
from rlaudit.laboratory.run_folder import opened
from rlaudit.progress import Progress


def run_single(run: Path, directory: Path, progress: Progress) -> tuple[str, Outcome]:
    """Return the name and the outcome of the cell in `directory`, which runs unless it is finished.

    Raises NotFinished if another process runs it, or if it was planned for another machine, and what read_described
    raises.
    """
    # Fails while a process carries the whole run out.
    with opened(run):
        lock = FileLock(directory.with_name(f".{directory.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise NotFinished(f"another rlaudit runs the cell {directory.name}", "wait for it") from error
    try:
        cell = read_described(directory)
        stored = finished(directory.parent, cell)
        if isinstance(stored, Outcome):
            progress.note(f"  {'kept':<11} {cell.key}")
            return cell.key, stored
        accelerator = accelerator_for(cell)
        check_machine(cell, accelerator)

        def on_event(request: Asked, event: Event) -> None:
            progress.update(f"{cell.key}: {event.get('name', event['event'])}")

        with progress.step(cell.key, log=directory / "log.txt"):
            executor = OneAtATime(directory.parent, GpuMemory(accelerator.devices))
            return cell.key, next(executor.run([Asked(on_gpus_of(cell, accelerator))], on_event))
    finally:
        lock.release()


def accelerator_for(cell: Cell) -> Accelerator:
    """Return this machine's accelerator for the cell.

    If the cell was planned for a part of a processor (--jobs), this process is limited to as many cores from now on.
    """
    planned = cell.identity.get("accelerator", {})
    accelerator = detect(cpu=planned.get("kind") == "cpu")
    if accelerator.kind == "cpu" and planned.get("threads", accelerator.cores) < accelerator.cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: planned["threads"]])
        return detect(cpu=True)
    return accelerator
