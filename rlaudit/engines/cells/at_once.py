"""This machine for several cells at once, each on its own share of it (engines/hardware/shares.py).

Cells begin in the order in which they were submitted: one that needs more GPUs than are free is waited for, so that
none is overtaken for ever. A share is given to one cell alone, and a cell that is timed has the shares of its device
alone: on a processor, where all shares are one device, it runs beside no other cell.
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
from rlaudit.engines.vllm.engine import ENGINE


class AtOnce:
    """Runs at most `most` cells at once on these shares of the machine, each in a thread and processes of its own.

    `folder` is where cells lie, `note` gets a sentence when a GPU's memory does not get free before a start.
    """

    def __init__(self, folder: Path, shares: Sequence[Share], most: int, note: Note = lambda sentence: None) -> None:
        self._folder, self._shares, self.most, self._note = folder, shares, most, note
        self._memory = [GpuMemory((share.gpu,) if share.gpu is not None else ()) for share in shares]
        self._free = list(range(len(shares)))
        self._waiting: deque[_Job] = deque()
        self._running: list[_Job] = []
        self._lock = threading.Lock()

    def run(self, asked: Sequence[Asked], on_event: OnEvent = unheard) -> Iterator[Outcome]:
        """Take cells, each of which begins as soon as its share of the machine is free."""
        jobs = [_Job(one, on_event) for one in asked]
        with self._lock:
            self._waiting.extend(jobs)
            self._start_what_fits()
        return self._outcomes(jobs)

    def _outcomes(self, jobs: Sequence["_Job"]) -> Iterator[Outcome]:
        left = deque(jobs)
        try:
            while left:
                outcome = left[0].result()
                left.popleft()
                yield outcome
        finally:
            self._drop(left)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            left = [*self._waiting, *self._running]
            self._waiting.clear()
        self._drop(left)
        for job in left:
            _joined(job)

    def _drop(self, jobs: Iterable["_Job"]) -> None:
        """Cancel these jobs: drop those that wait, and end those that run."""
        with self._lock:
            for job in jobs:
                job.cancelled.set()
                if job in self._waiting:
                    self._waiting.remove(job)
            self._start_what_fits()

    def _start_what_fits(self) -> None:
        """Begin the cells that are next for as long as their shares are free."""
        while self._waiting and len(self._running) < self.most:
            job = self._waiting[0]
            given = share_of(self._shares, self._free, job.asked.cell.gpus, timed=_alone(job.asked.cell))
            if given is None:
                return
            self._waiting.popleft()
            self._free = [place for place in self._free if place not in given.taken]
            self._running.append(job)
            name = f"rlaudit-{job.asked.cell.key}"
            job.thread = threading.Thread(
                target=self._run, args=(job, given.taken, given.shown), name=name, daemon=True
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
                # Even if no thread can be started for the next one: this one's result is waited for.
                job.ended.set()

    def _outcome(self, job: "_Job", shown: Sequence[int]) -> Outcome:
        shares = [self._shares[place] for place in shown]
        cores = sorted({core for share in shares for core in share.cores})
        if cores:
            # Of this thread alone, and inherited by what it starts.
            os.sched_setaffinity(0, cores)
        cell = job.asked.cell.with_own_cache(f"share-{shown[0]}")
        if shares[0].gpu is not None:
            cell = replace(cell, variables={**cell.variables, **only_these(cell.variables, shown)})
        return run_here(
            self._folder,
            replace(job.asked, cell=cell),
            job.on_event,
            [self._memory[place] for place in shown],
            self._note,
            job.cancelled.is_set,
        )


@dataclass(eq=False)
class _Job:
    """A cell on its way."""

    asked: Asked
    on_event: OnEvent
    cancelled: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    outcome: Outcome | None = None
    error: BaseException | None = None

    def result(self) -> Outcome:
        """Return the outcome, once there is one."""
        if self.thread is None and self.cancelled.is_set():
            raise RuntimeError("the result of a cell that was cancelled was asked for")
        self.ended.wait()
        if self.error is not None:
            raise self.error
        assert self.outcome is not None
        return self.outcome


def _alone(cell: Cell) -> bool:
    """Return whether it has its device alone: it is timed, or its recipe names cores that another cell may use."""
    return cell.timed or cell.variables.get(ENGINE.bound_by, "auto") not in ("auto", "nobind")


def _joined(job: _Job) -> None:
    """Wait until its processes are gone; a second Ctrl-C must not leave the first one's behind."""
    while job.thread is not None and job.thread.is_alive():
        try:
            job.thread.join()
        except KeyboardInterrupt:
            continue
