"""A disk that is full after so many bytes, at 50 sizes: what the run says, what it leaves, and how it goes on.

    python tests/benchmarks/full_disks.py [POINTS] [MINUTES]

Half of the points start a run of stand-in engines in a file system (tmpfs, which root may mount) that is too small for
it, and give the command again once there is room. The other half fill the disk of a finished run up to some bytes,
give the command again, and look whether the last report is still there. Prints the exit codes and every failure; ends
with 1 where there is one.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from damaged_runs import said, verdict_of, within
from laboratories import ONE_FACTOR, Laboratory, build_engine_cache, laboratory_in

SMALLEST = 4096  # a page, the least that tmpfs gives
ROOM = "256m"


@dataclass(frozen=True)
class Point:
    """One size: the exit code on the full disk, and what went wrong, if anything did."""

    name: str
    code: int
    problems: tuple[str, ...]


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """A file system of that size."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()


def resized(folder: Path, size: str) -> None:
    """Give it another size."""
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)


class FullDisks:
    """The same run on disks of all sizes."""

    def __init__(self, laboratory: Laboratory) -> None:
        self._laboratory = laboratory
        self._recipe = laboratory.recipe(ONE_FACTOR)
        self._disk = laboratory.folder / "disk"
        whole = self._arguments(laboratory.run_dir)
        assert said(*whole).code == 1
        self._verdict = verdict_of(laboratory.run_dir)
        self.bytes = sum(path.stat().st_size for path in laboratory.run_dir.rglob("*") if path.is_file())

    def _arguments(self, run_dir: Path) -> list[str]:
        return ["ablate", str(self._recipe), "--cpu", "--run-dir", str(run_dir)]

    def too_small(self, size: int) -> Point:
        """A disk of so many bytes from the beginning."""
        run_dir = self._disk / "run"
        with small_disk(self._disk, str(size)):
            first = said(*self._arguments(run_dir))
            problems = self._complaints(first.code, first.err, {1, 3})
            resized(self._disk, ROOM)
            problems += self._made_good(run_dir)
        return Point(f"{size:,} bytes", first.code, tuple(problems))

    def filled(self, free: int) -> Point:
        """A finished run on a disk with so many bytes left."""
        run_dir = self._disk / "run"
        with small_disk(self._disk, ROOM):
            shutil.copytree(self._laboratory.run_dir, run_dir)
            before = said("report", str(run_dir), "--output", "json").out
            left = os.statvfs(self._disk)
            filler = self._disk / "filler"
            with filler.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, left.f_bavail * left.f_frsize - free)
            again = said(*self._arguments(run_dir), "--fail-on", "never")
            problems = self._complaints(again.code, again.err, {0, 3})
            after = said("report", str(run_dir), "--output", "json")
            if again.code == 3 and (after.code, after.out) != (1, before):
                problems.append(f"the last report is lost: exit {after.code}: {after.err}")
            filler.unlink()
            problems += self._made_good(run_dir)
        return Point(f"{free:,} bytes left", again.code, tuple(problems))

    def _complaints(self, code: int, told: str, allowed: set[int]) -> list[str]:
        problems = [] if code in allowed else [f"exit {code}: {told}"]
        if code == 3 and "No space left on device" not in told:
            problems.append(f"nothing says that the disk is full: {told}")
        return problems

    def _made_good(self, run_dir: Path) -> list[str]:
        second = said(*self._arguments(run_dir))
        drafts = [str(path) for path in run_dir.rglob(".rlaudit-draft-*")]
        problems = [f"drafts are left: {drafts}"] if drafts else []
        if second.code != 1 or verdict_of(run_dir) != self._verdict:
            problems.append(f"with room again: exit {second.code}: {second.err}")
        return problems


def points(disks: FullDisks, number: int) -> Iterator[Point]:
    """Sizes from a page to more than the run takes, evenly in their logarithms."""
    half = number // 2
    for place in range(half):
        share = place / max(1, half - 1)
        size = int(SMALLEST * (1.3 * disks.bytes / SMALLEST) ** share)
        yield disks.too_small(size // SMALLEST * SMALLEST)
        yield disks.filled(int(share * disks.bytes) // SMALLEST * SMALLEST)


def report(done: Sequence[Point]) -> int:
    """Print what came of it; 1 where there was a failure."""
    codes = Counter(point.code for point in done)
    print(f"{len(done)} points: " + ", ".join(f"exit {code}: {codes[code]}" for code in sorted(codes)))
    failures = [(point.name, problem) for point in done for problem in point.problems]
    for name, problem in failures:
        print(f"FAILED {name}: {problem}")
    print(f"{codes[70]} ended with 70; {len(failures)} failures")
    return 1 if failures else 0


def main() -> int:
    """0 where nothing failed."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    minutes = float(sys.argv[2]) if len(sys.argv) > 2 else 600.0
    with tempfile.TemporaryDirectory() as folder:
        cache, home = Path(folder) / "cache", Path(folder) / "laboratory"
        home.mkdir()
        build_engine_cache(cache)
        with laboratory_in(home, cache) as laboratory:
            return report(within(points(FullDisks(laboratory), number), minutes))


if __name__ == "__main__":
    sys.exit(main())
