"""Fixtures that every folder of tests may use; what they are made of is in laboratories.py."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

# Before numpy is imported: on a busy machine its threads wait for each other, and the small matrices here gain nothing.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import settings
from laboratories import Laboratory, Signpost, build_engine_cache, laboratory_in

# How fast a machine is beside its other work is no property of the code.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

_SECONDS_WITH_REAL_ENGINES = 2400  # the first one builds an environment, too


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("engine"):
            item.add_marker(pytest.mark.timeout(_SECONDS_WITH_REAL_ENGINES))


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
