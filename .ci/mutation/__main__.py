"""Draws mutants, runs each and prints what survived: see `mutation/__init__.py`."""

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import mutation
from mutation.mutants import Mutant, mutants_of

ROOT = Path(__file__).parents[2]
# What judges, and what settings are resolved with; paths from the root.
PACKAGES: Mapping[str, Sequence[str]] = {
    "statistics": ("rlaudit/statistics",),
    "meaning": ("rlaudit/meaning",),
    "causes": ("rlaudit/causes",),
    "diagnosis": ("rlaudit/diagnosis",),
    "rules": ("rlaudit/rules",),
    "configs": (
        *(f"rlaudit/configs/{name}.py" for name in (
            "hydra_defaults", "hydra_dotlist", "hydra_program", "inherited_paths", "merging", "passed_values",
            "syntax/flags", "syntax/interpolation", "syntax/node",
        )),
        "rlaudit/configs/engine_arguments",
        "rlaudit/configs/dialects/*.py",
        "rlaudit/settings",
    ),
}  # fmt: skip
# Whose tests run these without an engine.
TESTS = (
    "advisories", "attribution", "cli/test_compare*.py", "cli/test_inspect.py", "configs", "dialects", "diagnosis",
    "inspection", "meaning", "measurement", "metrics", "rules", "selftest", "statistics",
)  # fmt: skip


def main(words: list[str] | None = None) -> int:
    """Print killed and survived by package, and each survivor."""
    parser = argparse.ArgumentParser(
        prog="python -m mutation", description=mutation.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("packages", nargs="*", help=f"{', '.join(PACKAGES)}, or paths from --root; else all")
    parser.add_argument("--draw", type=int, default=60, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--only", action="append", default=[], metavar="FILE:LINE", help="all of a line")
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree")
    parser.add_argument("--tests", nargs="*", default=[f"tests/{name}" for name in TESTS], help="paths from --root")
    parser.add_argument("--fast", action="store_true", help="know nothing of the files of tests/slow_files.py")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir(), "rlaudit-mutation"))
    options = parser.parse_args(words)
    root = options.root.resolve()
    # Before the tests import numpy; and no example that a mutant fails is kept for the next run.
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "HYPOTHESIS_STORAGE_DIRECTORY": str(options.cache / "hypothesis")}
    from mutation.tests_of_lines import TestsOfLines
    from mutation.trial import import_what_is_heavy, killed

    packages = {name: _files(root, PACKAGES.get(name, (name,))) for name in options.packages or PACKAGES}
    every = {file for places in PACKAGES.values() for file in _files(root, places)} | set().union(*packages.values())
    known = TestsOfLines(root, every, options.cache)
    began = time.monotonic()
    chosen = ["-m", "fast"] if options.fast else []
    run = known.bring_up_to_date(_files(root, options.tests, "test_*.py"), chosen)
    print(f"{run} test files run under coverage in {time.monotonic() - began:.0f} s", flush=True)
    import_what_is_heavy()
    counts: Mapping[str, Counter[str]] = defaultdict(Counter)
    for package, mutant in _drawn(packages, options, root):
        tests = known.tests_of(mutant)
        verdict = "no test runs it" if not tests else "killed" if killed(mutant, tests, root) else "survived"
        counts[package][verdict] += 1
        if verdict != "killed":
            place = f"{mutant.path.relative_to(root)}:{mutant.line}"
            print(f"{place}  {verdict}, {len(tests)} tests\n    {mutant.before}\n    {mutant.after}", flush=True)
    for package, found in counts.items():
        print(f"{package}: {found['killed']} of {found.total()} killed, {found['no test runs it']} not run by a test")
    killed_of_all = sum(found["killed"] for found in counts.values())
    print(f"{killed_of_all} of {sum(map(Counter.total, counts.values()))} killed in {time.monotonic() - began:.0f} s")
    return 0


def _files(root: Path, places: Sequence[str], pattern: str = "*.py") -> list[Path]:
    found = [path for place in places for path in sorted(root.glob(place))]
    return [file for path in found for file in (sorted(path.rglob(pattern)) if path.is_dir() else [path])]


def _drawn(packages: Mapping[str, list[Path]], options: argparse.Namespace, root: Path) -> list[tuple[str, Mutant]]:
    """Return mutants by their package: as many of each, drawn by the seed; those of --only as they are."""
    mutants = {
        package: [mutant for file in files for mutant in mutants_of(file)] for package, files in packages.items()
    }
    if options.only:
        places = set(options.only)
        return [
            (package, mutant) for package, found in mutants.items() for mutant in found
            if f"{mutant.path.relative_to(root)}:{mutant.line}" in places
        ]  # fmt: skip
    share = -(-options.draw // len(mutants))
    drawn = [
        (package, mutant)
        for package, found in mutants.items()
        for mutant in random.Random(f"{options.seed} {package}").sample(found, min(share, len(found)))
    ]
    # What is stopped has seen something of each.
    random.Random(options.seed).shuffle(drawn)
    return drawn[: options.draw]


if __name__ == "__main__":
    sys.exit(main())
