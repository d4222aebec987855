"""Fixtures that every folder of tests may use; what they are made of is in laboratories.py."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

# Before numpy is imported: on a busy machine its threads wait for each other, and the small matrices here gain nothing.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# What an inspection says of a hub id does not depend on what this user has fetched.
os.environ.setdefault("HF_HUB_CACHE", str(Path(__file__).parent / "no-hub"))

from hypothesis import HealthCheck, settings
from laboratories import Laboratory, Signpost, build_engine_cache, laboratory_in
from slow_files import SECONDS

# What fits a terminal does not depend on the one that the tests are started from.
os.environ.pop("COLUMNS", None)
os.environ.pop("LINES", None)

TESTS = Path(__file__).parent
# Each collects all tests and has its own stand-ins: with more, that is most of what they do.
MOST_WORKERS = 8
# How fast a machine is beside its other work is no property of the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

_SECONDS_WITH_REAL_ENGINES = 2400  # the first one builds an environment, too


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run the whole of the tests on every core (pytest-xdist), unless `-n` or a debugger says otherwise.

    Real engines take the machine one at a time, and a single file is done before two processes have started.
    """
    chosen = config.option
    if not hasattr(chosen, "numprocesses") or "PYTEST_XDIST_WORKER" in os.environ:
        return
    whole = any(TESTS.is_relative_to(Path(argument).resolve()) for argument in config.args)
    looks_on = chosen.usepdb or chosen.trace or chosen.collectonly or chosen.capture == "no"
    without_engines = chosen.markexpr == "fast" or "not engine" in chosen.markexpr
    if chosen.numprocesses is None and whole and without_engines and not looks_on:
        chosen.numprocesses = min(len(os.sched_getaffinity(0)), MOST_WORKERS)
    if chosen.numprocesses and chosen.dist == "no":
        # Neighbours share the fixtures of their file.
        chosen.dist = "worksteal"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what `-m fast` leaves out."""
    return True if config.option.markexpr == "fast" and _name(collection_path) in SECONDS else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("engine"):
            item.add_marker(pytest.mark.timeout(_SECONDS_WITH_REAL_ENGINES))
        elif not item.get_closest_marker("gpu") and _name(item.path) not in SECONDS:
            item.add_marker(pytest.mark.fast)


def pytest_collection_finish() -> None:
    """Keep ten thousand collected tests out of every later look for garbage: a fifth of the time of quick ones."""
    gc.collect()
    gc.freeze()


def _name(path: Path) -> str:
    return path.relative_to(TESTS).as_posix() if path.is_relative_to(TESTS) else ""


@pytest.fixture(scope="session")
def engine_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder in which rlaudit finds engines, all of them stand-ins."""
    cache = tmp_path_factory.mktemp("cache")
    build_engine_cache(cache)
    return cache


@pytest.fixture
def laboratory(tmp_path: Path, engine_cache: Path) -> Iterator[Laboratory]:
    """A laboratory of the test's own."""
    with laboratory_in(tmp_path, engine_cache) as one:
        yield one


@pytest.fixture(scope="module")
def shared_laboratory(tmp_path_factory: pytest.TempPathFactory, engine_cache: Path) -> Iterator[Laboratory]:
    """A laboratory for a run that several tests look at."""
    with laboratory_in(tmp_path_factory.mktemp("laboratory"), engine_cache) as one:
        yield one


@pytest.fixture
def signpost(tmp_path: Path) -> Iterator[Signpost]:
    """A signpost to name in FAKE_VLLM_REACHED."""
    path = tmp_path / "signpost"
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield Signpost(path, descriptor)
    os.close(descriptor)
