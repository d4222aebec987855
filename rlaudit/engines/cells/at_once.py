"""Several cells at once on this machine, each on its own share of it (engines/hardware/shares.py).

Cells of one request begin in their order: later ones wait for one that needs more GPUs than are free, so that none is
overtaken forever. A later request comes first: a run makes it when it cannot go on without, as to score what was
sampled. A share has one cell at a time, and a timed cell has all shares of its device: on a processor, which is one
device, it runs beside no other cell.
"""

import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.executor import Asked, Note, OnEvent, run_here, unheard
from rlaudit.engines.cells.launch import Outcome
from rlaudit.engines.hardware.gpu_memory import GpuMemory
from rlaudit.engines.hardware.shares import Share, share_of
from rlaudit.engines.hardware.visible_gpus import only_these
from rlaudit.engines.inside.engine import ENGINE


class AtOnce:
    """Runs at most `most` cells at once on these shares of the machine, each in its own thread and processes.

    folder: holds the cells. note: gets a sentence if a GPU's memory does not get free before a start.
    """

    def __init__(self, folder: Path, shares: Sequence[Share], most: int, note: Note = lambda sentence: None) -> None:
        self._folder, self._shares, self.most, self._note = folder, shares, most, note
        self._memory = [GpuMemory((share.gpu,) if share.gpu is not None else ()) for share in shares]
        self._free = list(range(len(shares)))
        self._waiting: deque[_Job] = deque()
        self._running: list[_Job] = []
        self._lock = threading.Lock()

    def run(self, requests: Sequence[Asked], on_event: OnEvent = unheard) -> Iterator[Outcome]:
        """Take cells, each of which begins as soon as its share of the machine is free."""
        jobs = [_Job(request, on_event) for request in requests]
        with self._lock:
            self._waiting.extendleft(reversed(jobs))
            self._start_what_fits()
        return self._outcomes(jobs)

    def _outcomes(self, jobs: Sequence["_Job"]) -> Iterator[Outcome]:
        remaining = deque(jobs)
        try:
            while remaining:
                outcome = remaining[0].result()
                remaining.popleft()
                yield outcome
        finally:
            self._drop(remaining)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            jobs = [*self._waiting, *self._running]
            self._waiting.clear()
        self._drop(jobs)
        for job in jobs:
            _join(job)

    def _drop(self, jobs: Iterable["_Job"]) -> None:
        """Cancel these jobs, waiting or running."""
        with self._lock:
            for job in jobs:
                job.cancelled.set()
                if job in self._waiting:
                    self._waiting.remove(job)
            self._start_what_fits()

    def _start_what_fits(self) -> None:
        """Begin the next cells until one needs shares that are not free."""
        while self._waiting and len(self._running) < self.most:
            job = self._waiting[0]
            cell = job.request.cell
            share = share_of(self._shares, self._free, cell.gpus, timed=_alone(cell))
            if share is None:
                return
            self._waiting.popleft()
            self._free = [place for place in self._free if place not in share.taken]
            self._running.append(job)
            job.thread = threading.Thread(
                target=self._run, args=(job, share.taken, share.shown), name=f"rlaudit-{cell.key}", daemon=True
            )
            job.thread.start()

    def _run(self, job: "_Job", taken: Sequence[int], shown: Sequence[int]) -> None:
        try:
            job.outcome = self._outcome(job, shown)
        except BaseException as error:
            job.error = error
        finally:
            try:
                with self._lock:
                    self._running.remove(job)
                    self._free = sorted([*self._free, *taken])
                    self._start_what_fits()
            finally:
                # Set even if no thread can be started for the next job: this result is awaited.
                job.ended.set()

    def _outcome(self, job: "_Job", shown: Sequence[int]) -> Outcome:
        shares = [self._shares[place] for place in shown]
        cores = sorted({core for share in shares for core in share.cores})
        if cores:
            # Holds for this thread and the processes that it starts.
            os.sched_setaffinity(0, cores)
        cell = job.request.cell.with_own_cache(f"share-{shown[0]}")
        if shares[0].gpu is not None:
            cell = replace(cell, variables={**cell.variables, **only_these(cell.variables, shown)})
        return run_here(
            self._folder,
            replace(job.request, cell=cell),
            job.on_event,
            [self._memory[place] for place in shown],
            self._note,
            job.cancelled.is_set,
        )


@dataclass(eq=False)
class _Job:
    """A requested cell: waiting, running or ended."""

    request: Asked
    on_event: OnEvent
    cancelled: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    outcome: Outcome | None = None
    error: BaseException | None = None

    def result(self) -> Outcome:
        """Return the outcome, once there is one."""
        if self.thread is None and self.cancelled.is_set():
            raise RuntimeError("a cancelled cell has no result")
        self.ended.wait()
        if self.error is not None:
            raise self.error
        assert self.outcome is not None
        return self.outcome


def _alone(cell: Cell) -> bool:
    """Return whether the cell needs its device alone: it is timed, or its recipe names cores of the processor."""
    return cell.timed or cell.variables.get(ENGINE.bound_by, "auto") not in ("auto", "nobind")


def _join(job: _Job) -> None:
    """Wait until the job's processes are gone; a second Ctrl-C does not cut that short."""
    while job.thread is not None and job.thread.is_alive():
        try:
            job.thread.join()
        except KeyboardInterrupt:
            continue
