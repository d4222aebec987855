"""Runs blind trials, one ground at a time, on as many processes as asked for."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from typing import TypeVar

import numpy as np
from selftest.blind import Label
from worlds.generator import all_generators
from worlds.ground import new_ground
from worlds.observe import measured_floor

from evidence.selftest.trial import Trial, blind_trials
from rlaudit.errors import UsageError

Found = TypeVar("Found")
Seed = tuple[int, int]
# Matrices here are small: threads of a numerical library would only fight with the other processes.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def run_trials(
    generator: str,
    labels: Sequence[Label],
    trials: int,
    seed: int,
    jobs: int,
    told: Callable[[int, int], None] = lambda done, total: None,
) -> list[Trial]:
    """`trials` worlds for each label. told(done, total): called as grounds are finished.

    The same seed gives the same trials, whatever `jobs` is. Raises UsageError for a generator that does not exist.
    """
    if generator not in all_generators():
        raise UsageError(f"no generator {generator!r}", f"there are: {', '.join(all_generators())}")
    return in_processes(
        partial(one_ground, generator, labels), [(seed, number) for number in range(trials)], jobs, told
    )


def in_processes(
    work: Callable[[Seed], list[Found]], seeds: Sequence[Seed], jobs: int, told: Callable[[int, int], None]
) -> list[Found]:
    """What `work` finds of each seed, in the order of the seeds, whatever `jobs` is."""
    found: dict[Seed, list[Found]] = {}
    if jobs <= 1:
        for done, one in enumerate(seeds, start=1):
            found[one] = work(one)
            told(done, len(seeds))
    else:
        # A fork would copy locks of the caller's threads.
        with _one_thread_each(), ProcessPoolExecutor(min(jobs, len(seeds)), mp_context=get_context("spawn")) as pool:
            waiting = {pool.submit(work, one): one for one in seeds}
            for done, finished in enumerate(as_completed(waiting), start=1):
                found[waiting[finished]] = finished.result()
                told(done, len(seeds))
    return [trial for one in seeds for trial in found[one]]


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes started in here run their numerical libraries on one thread."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


def one_ground(generator: str, labels: Sequence[Label], seed: tuple[int, int]) -> list[Trial]:
    """One trial for each label, all on one ground."""
    rng = np.random.default_rng(seed)
    ground = new_ground(all_generators()[generator], rng)
    return blind_trials(ground, labels, measured_floor(ground, rng), rng)
