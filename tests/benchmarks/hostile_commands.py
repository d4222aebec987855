"""Thousands of command lines over hostile files: no traceback, no exit 70, no hang, no gigabyte.

`audit(script, number, first)` prints how many commands ended with which exit code, the slowest, the peak memory and
every failure. Commands run in this process, PART of them in one, so that a crash of a library costs one part and is
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
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from rlaudit.cli.app import run

PART = 250
LIMIT = 20.0
GIVEN_UP = 120.0
MEMORY = 1 << 30
ALLOWED = {0, 1, 2, 3}

# Writes a command's files into a folder, and gives its arguments.
Hostile = Callable[[Path, Random], list[str]]


class Hang(BaseException):
    """The command was given up; no `except Exception` may catch this."""


def one(hostile: Hostile, seed: int) -> dict[str, Any]:
    """One command: its exit code, its seconds, and what it said where that is a failure."""
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        arguments = hostile(Path(folder), Random(seed))
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


def part(hostile: Hostile, first: int, count: int) -> None:
    """Some commands; one line of JSON each."""

    def give_up(*_: object) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, give_up)
    warnings.simplefilter("ignore")
    for seed in range(first, first + count):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        found = one(hostile, seed)
        found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        found["failed"] |= found["peak"] > MEMORY >= peak
        print(json.dumps(found), flush=True)


def audit(script: str, number: int, first: int, *more: str) -> int:
    """Run the commands of seeds `first` and on, print, and say whether one failed.

    `script --part FIRST COUNT MORE...` is asked for them, part by part.
    """
    codes: Counter[int] = Counter()
    found: list[dict[str, Any]] = []
    crashed = []
    for begin in range(first, first + number, PART):
        count = min(PART, first + number - begin)
        words = [sys.executable, script, "--part", str(begin), str(count), *more]
        told = subprocess.run(words, capture_output=True, text=True, check=False)
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
    failed = sum(line["failed"] for line in found) + len(crashed)
    print(f"{len(found)} commands; exit codes {dict(sorted(codes.items()))}; failures {failed}")
    if found:
        slowest = max(found, key=lambda line: line["seconds"])
        peak = max(line["peak"] for line in found) >> 20
        print(f"slowest {slowest['seconds']:.1f} s (seed {slowest['seed']}); peak {peak} MiB")
    return int(failed > 0)
