"""Thousands of broken token tables and dumps through `rlaudit compare`: no traceback, no hang, no gigabyte.

    python tests/benchmarks/compare_hostile_tables.py [NUMBER] [SEED]

Prints how many commands ended with which exit code, the slowest, the peak memory and every failure; ends with 1 where
there is one. Commands run in this process, PART of them in one, so that a crash of a library costs one part and is
counted; seconds are the processor's, and what waits without using it is given up after a while.
"""

import contextlib
import io
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from hostile_tables import hostile_command

from rlaudit.cli.app import run

PART = 250
LIMIT = 20.0
GIVEN_UP = 120.0
MEMORY = 1 << 30
ALLOWED = {0, 1, 2, 3}


class Hang(BaseException):
    """The command was given up; no `except Exception` may catch this."""


def one(seed: int) -> dict[str, Any]:
    """One command: its exit code, its seconds, and what it said where that is a failure."""
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        arguments = hostile_command(Path(folder), Random(seed))
        started = time.process_time()
        signal.alarm(int(GIVEN_UP))
        try:
            code = run(arguments)
        except Hang:
            code = -1
        finally:
            signal.alarm(0)
        seconds = time.process_time() - started
    text = said.getvalue()
    failed = code not in ALLOWED or "Traceback" in text or seconds > LIMIT
    return {"seed": seed, "code": code, "seconds": seconds, "said": text[-2000:] if failed else "", "failed": failed}


def part(first: int, count: int) -> None:
    """Some commands; one line of JSON each."""

    def give_up(*_: object) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, give_up)
    warnings.simplefilter("ignore")
    for seed in range(first, first + count):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        found = one(seed)
        found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        found["failed"] |= found["peak"] > MEMORY >= peak
        print(json.dumps(found), flush=True)


def main() -> int:
    """Run all parts, print, and say whether everything was as it should be."""
    if sys.argv[1:2] == ["--part"]:
        part(int(sys.argv[2]), int(sys.argv[3]))
        return 0
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    codes: Counter[int] = Counter()
    found: list[dict[str, Any]] = []
    crashed = []
    for begin in range(first, first + number, PART):
        count = min(PART, first + number - begin)
        told = subprocess.run(
            [sys.executable, __file__, "--part", str(begin), str(count)], capture_output=True, text=True, check=False
        )
        lines = [json.loads(line) for line in told.stdout.splitlines()]
        found += lines
        codes.update(line["code"] for line in lines)
        if told.returncode:
            crashed.append((begin + len(lines), told.returncode, told.stderr[-1000:]))
        for line in lines:
            if line["failed"]:
                print(
                    f"seed {line['seed']}: exit {line['code']}, {line['seconds']:.1f} s\n{line['said']}\n", flush=True
                )
    for seed, code, said in crashed:
        print(f"seed {seed}: the process ended with {code}\n{said}\n")
    slowest = max(found, key=lambda line: line["seconds"])
    failed = sum(line["failed"] for line in found) + len(crashed)
    print(f"{len(found)} commands; exit codes {dict(sorted(codes.items()))}; failures {failed}")
    print(
        f"slowest {slowest['seconds']:.1f} s (seed {slowest['seed']}); peak {max(x['peak'] for x in found) >> 20} MiB"
    )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
