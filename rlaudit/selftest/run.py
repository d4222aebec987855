"""Runs blind trials, one ground at a time, on as many processes as asked for."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context

import numpy as np

from rlaudit.errors import UsageError
from rlaudit.selftest.blind import Label, Trial, blind_trials
from rlaudit.worlds.generator import all_generators
from rlaudit.worlds.ground import new_ground
from rlaudit.worlds.observe import measured_floor

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
    seeds = [(seed, number) for number in range(trials)]
    found: dict[tuple[int, int], list[Trial]] = {}
    if jobs <= 1:
        for done, one in enumerate(seeds, start=1):
            found[one] = one_ground(generator, labels, one)
            told(done, trials)
    else:
        # A fork would copy locks of the caller's threads.
        with _one_thread_each(), ProcessPoolExecutor(min(jobs, trials), mp_context=get_context("spawn")) as pool:
            waiting = {pool.submit(one_ground, generator, labels, one): one for one in seeds}
            for done, finished in enumerate(as_completed(waiting), start=1):
                found[waiting[finished]] = finished.result()
                told(done, trials)
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
