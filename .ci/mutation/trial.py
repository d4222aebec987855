"""One mutant against its tests: in a process that imports the mutant in place of its module."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from resource import RLIMIT_CPU, setrlimit
from types import CodeType
from typing import Any

import pytest

from mutation.mutants import Mutant, planted
from mutation.tests_of_lines import FORK, QUIET

# Most mutants fall to one of the first tests, whose files are all that has to be collected.
FIRST_SECONDS, FIRST_TESTS = 2.0, 30
# A mutant may loop for ever, or wait; a busy machine may be slow. Of the processor, and of the clock.
MOST_SECONDS, TIMES_SLOWER, MOST_OF_THE_CLOCK = 30, 5, 900
# Imported once, not by each process.
HEAVY = ("hypothesis", "numpy", "pandas", "pydantic", "scipy.stats", "typer", "yaml")


def import_what_is_heavy() -> None:
    """Import what takes most of the time in which a test begins."""
    for name in HEAVY:
        with suppress(ImportError):
            import_module(name)


def killed(mutant: Mutant, tests: Sequence[tuple[str, float]], root: Path) -> bool:
    """Return whether one of the tests, each with its seconds, fails with the mutant, or does not end."""
    first = 0
    while first < len(tests) and first < FIRST_TESTS and sum(taken for _, taken in tests[:first]) < FIRST_SECONDS:
        first += 1
    return any(_fails(mutant, part, root) for part in (tests[:first], tests[first:]) if part)


def _fails(mutant: Mutant, tests: Sequence[tuple[str, float]], root: Path) -> bool:
    seconds = MOST_SECONDS + TIMES_SLOWER * round(sum(taken for _, taken in tests))
    run = FORK.Process(target=_run, args=(mutant, [name for name, _ in tests], root, seconds))
    run.start()
    run.join(MOST_OF_THE_CLOCK)
    if run.is_alive() and run.pid is not None:
        os.killpg(run.pid, 9)
        run.join()
    return run.exitcode != 0


def _run(mutant: Mutant, names: list[str], root: Path, seconds: int) -> None:
    os.setsid()  # with it ends what the tests started
    setrlimit(RLIMIT_CPU, (seconds, seconds))
    sys.dont_write_bytecode = True
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    sys.path.insert(0, str(root))
    sys.meta_path.insert(0, _InItsPlace(mutant))
    files = list(dict.fromkeys(str(root / name.partition("::")[0]) for name in names))
    os._exit(pytest.main([*QUIET, "-x", f"--rootdir={root}", *files], plugins=[_Only(names)]))


class _Only:
    def __init__(self, names: Sequence[str]) -> None:
        self.names = set(names)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self.names]


class _InItsPlace(MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin != str(self.mutant.path):
            return None
        spec.loader = _Planted(name, self.mutant)
        return spec


class _Planted(SourceFileLoader):
    def __init__(self, name: str, mutant: Mutant) -> None:
        super().__init__(name, str(mutant.path))
        self.mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        return compile(planted(self.mutant), str(self.mutant.path), "exec", dont_inherit=True)
