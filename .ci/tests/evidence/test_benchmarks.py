"""Benchmarks take minutes and run by hand: here only that each of them still fits what it measures."""

import runpy
import sys
from pathlib import Path

import pytest
from evidence import benchmarks

FOLDER = Path(benchmarks.__path__[0])


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_a_benchmark_finds_all_that_it_imports(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(path)])
    assert runpy.run_path(str(path), run_name="benchmark")["__doc__"]
