"""Laboratories of stand-in engines, as the tests of rlaudit have them."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "tests"))

from laboratories import Laboratory, build_engine_cache, laboratory_in


@pytest.fixture(scope="module")
def shared_laboratory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    """Yield a laboratory for a run that several tests look at."""
    cache = tmp_path_factory.mktemp("cache")
    build_engine_cache(cache)
    with laboratory_in(tmp_path_factory.mktemp("laboratory"), cache) as one:
        yield one
