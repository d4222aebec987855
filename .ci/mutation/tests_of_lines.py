"""Which tests run a line, and how long each takes: from one run of the tests under coverage, kept in a folder."""

import hashlib
import json
import multiprocessing
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage, CoverageData

from mutation.mutants import Mutant

# Of pytest: this process runs everything, and leaves nothing behind.
QUIET = ["-q", "--no-header", "-n", "0", "-p", "no:cacheprovider", "-W", "default"]
FORK = multiprocessing.get_context("fork")


@dataclass
class Known:
    """What the last runs showed."""

    # Digests of the modules and options, as a whole, and of each test file.
    modules: str = ""
    files: dict[str, str] = field(default_factory=dict)
    # Seconds of each test that passed.
    seconds: dict[str, float] = field(default_factory=dict)


class TestsOfLines:
    """The map of a tree: its folder of tests, kept in `cache`."""

    def __init__(self, root: Path, modules: Iterable[Path], cache: Path) -> None:
        self.root, self.modules, self.cache = root, sorted(modules), cache
        self._known_file, self._lines_file = cache / "tests.json", cache / "lines"
        self.known = Known(**json.loads(self._known_file.read_text())) if self._known_file.exists() else Known()

    def bring_up_to_date(self, tests: Iterable[Path], options: Sequence[str] = ()) -> int:
        """Run the test files that changed since the last run, and return how many.

        All, if a module changed, or an option of pytest.
        """
        modules = hashlib.sha256("".join([*map(_digest, self.modules), *options]).encode()).hexdigest()
        if modules != self.known.modules:
            self.known = Known(modules)
            self._lines_file.unlink(missing_ok=True)
        files = {path.relative_to(self.root).as_posix(): _digest(path) for path in sorted(tests)}
        changed = [name for name, digest in files.items() if self.known.files.get(name) != digest]
        if changed:
            self.cache.mkdir(parents=True, exist_ok=True)
            run = FORK.Process(target=_run_under_coverage, args=(self, changed, files, options))
            run.start()
            run.join()
            self.known = Known(**json.loads(self._known_file.read_text()))
        return len(changed)

    def tests_of(self, mutant: Mutant) -> list[tuple[str, float]]:
        """Return the tests that run the line of a mutant, or any line of its module if that runs at import.

        Each with its seconds, file by file, the quickest first.
        """
        by_line = self._lines().contexts_by_lineno(str(mutant.path))
        lines = by_line if mutant.at_import else [mutant.line]
        names = {name for line in lines for name in by_line.get(line, ())} & self.known.seconds.keys()
        by_file: dict[str, list[tuple[str, float]]] = defaultdict(list)
        for name, seconds in self.known.seconds.items():
            if name in names:
                by_file[name.partition("::")[0]].append((name, seconds))
        ordered = sorted(by_file.values(), key=lambda file: sum(seconds for _, seconds in file))
        return [test for file in ordered for test in file]

    def _lines(self) -> CoverageData:
        data = CoverageData(str(self._lines_file))
        data.read()
        return data


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _run_under_coverage(tests: TestsOfLines, names: list[str], digests: dict[str, str], options: Sequence[str]) -> None:
    sys.path.insert(0, str(tests.root))
    measured = Coverage(data_file=str(tests._lines_file), include=list(map(str, tests.modules)), config_file=False)
    measured.load()
    watch = _Watch(measured)
    measured.start()
    files = [str(tests.root / name) for name in names]
    pytest.main([*QUIET, *options, f"--rootdir={tests.root}", *files], plugins=[watch])
    measured.stop()
    measured.save()
    known = tests.known
    known.files |= {name: digests[name] for name in names}
    known.seconds |= {name: seconds for name, seconds in watch.seconds.items() if name not in watch.failed}
    tests._known_file.write_text(json.dumps(known.__dict__))


class _Watch:
    def __init__(self, measured: Coverage) -> None:
        self.measured, self.failed = measured, set[str]()
        self.seconds: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.measured.switch_context(item.nodeid)
        result: Any = yield
        self.measured.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if not report.passed:
            self.failed.add(report.nodeid)
