"""`rlaudit compare` beside its limits, each in the same run: what reading alone costs.

    python -m evidence.benchmarks.logs_at_scale FOLDER [--tokens 20e6] [--files 1000] [--rounds 3]

    parquet   one table of --tokens, over pyarrow decoding the same columns
    jsonl     one table of a tenth of it, over json.loads of its lines
    two       rollouts and trainer in tables of their own, in order and shuffled, over reading both
    folder    --files small files

Sides run in processes of their own, in turn, start-up included. On a machine that does other work seconds by the clock
say little: the ratios are of processor time too, and both are printed.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evidence.benchmarks.compare_speed import SCHEMA, generate


@dataclass(frozen=True)
class Cost:
    """Seconds by the clock, of processor time, and the most memory in MiB."""

    seconds: float
    cpu: float
    peak_mib: float

    def __str__(self) -> str:
        return f"{self.seconds:7.1f} s by the clock, {self.cpu:6.1f} s of processor, peak {self.peak_mib:.0f} MiB"


def scan(path: str) -> None:
    """Decode the columns that a comparison decodes, and drop them."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, pre_buffer=False) as file:
        for _ in file.iter_batches(1 << 18, columns=SCHEMA.names):
            pass


def loads(*paths: str) -> None:
    """json.loads of every line."""
    for path in paths:
        with Path(path).open("rb") as file:
            for line in file:
                json.loads(line)


def read(rollouts: str, trainer: str) -> None:
    """Both tables as batches, and nothing done with them."""
    from rlaudit.tokens.fault import Faults
    from rlaudit.tokens.open_table import open_tables
    from rlaudit.tokens.parquet import KNOWN
    from rlaudit.tokens.prompt_numbers import PromptNumbers

    for path, of_trainer in ((rollouts, False), (trainer, True)):
        (table,) = open_tables(Path(path), of_trainer=of_trainer)
        for _ in table.batches(Faults(), PromptNumbers(), KNOWN):
            pass


def compare(*words: str) -> None:
    """The command."""
    from rlaudit.cli.app import run

    code = run(["compare", *words, "--quiet", "--temperature", "1"])
    assert code in {0, 1, 3}, code


def made(path: str, tokens: str, seed: str) -> None:
    """A Parquet table."""
    generate(Path(path), int(tokens), int(seed))


TABLES = ("both", "rollouts", "trainer", "shuffled")


def cost(side: str, *words: object) -> Cost:
    """One process."""
    started = time.perf_counter()
    told = subprocess.run(
        [sys.executable, __file__, "--side", side, "--words", json.dumps([str(word) for word in words])],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, Path(__file__).parents[2:4]))},
    )
    cpu, peak = json.loads(told.stdout.splitlines()[-1])
    return Cost(time.perf_counter() - started, cpu, peak)


def beside(what: str, limit: tuple[object, ...], own: tuple[object, ...], tokens: int, rounds: int) -> None:
    """Both in turn; medians, and the share of the limit's speed."""
    pairs = [(cost(*limit), cost(*own)) for _ in range(rounds)]  # type: ignore[arg-type]
    for place, name in enumerate((str(limit[0]), "rlaudit")):
        costs = [pair[place] for pair in pairs]
        seconds, cpu = (statistics.median(getattr(one, kind) for one in costs) for kind in ("seconds", "cpu"))
        peak = max(one.peak_mib for one in costs)
        print(f"{what} {name:8} {Cost(seconds, cpu, peak)}, {tokens / seconds / 1e6:.2f} M tokens/s")
    for kind in ("seconds", "cpu"):
        ratios = [getattr(first, kind) / getattr(second, kind) for first, second in pairs]
        said = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"{what} speed as a share of the limit's, by {kind}: {said}; median {statistics.median(ratios):.2f}")


def lines(folder: str, tokens: str) -> None:
    """One table of both sides, rollouts, trainer, and the trainer's in another order; a sequence in each line.

    In a process of its own: the most memory that a process had is told to those that it starts.
    """
    rng = np.random.default_rng(0)
    written: dict[str, list[str]] = {name: [] for name in TABLES}
    made, number = 0, 0
    while made < int(tokens):
        length = int(np.clip(rng.lognormal(6.0, 0.6), 16, 4096))
        rollout = (-rng.exponential(0.6, length) * (rng.random(length) < 0.4)).astype(np.float32)
        trainer = np.minimum(rollout + 0.02 * rng.standard_normal(length) * -np.expm1(rollout), 0.0).astype(np.float32)
        base = {
            "prompt_id": number // 8,
            "sample_id": number % 8,
            "token_id": rng.integers(0, 150_000, length).tolist(),
        }
        left = {"rollout_logprob": rollout.astype(float).tolist()}
        right = {"trainer_logprob": trainer.astype(float).tolist()}
        for name, sides in (("both", left | right), ("rollouts", left), ("trainer", right)):
            written[name].append(json.dumps(base | sides) + "\n")
        made, number = made + length, number + 1
    written["shuffled"] = [written["trainer"][place] for place in rng.permutation(number)]
    for name, own in written.items():
        with (Path(folder) / f"{name}.jsonl").open("w") as file:
            file.writelines(own)


def folder_of_files(folder: Path, files: int, tokens: int) -> None:
    """What a command costs on many files."""
    log = folder / "log"
    shutil.rmtree(log, ignore_errors=True)
    log.mkdir()
    for number in range(files):
        generate(log / f"step_{number}.parquet", tokens, seed=number)
    spent = cost("compare", log, "--output", f"json:{folder / 'report.json'}")
    print(f"{files} files of {tokens} tokens: {spent}")


SIDES: dict[str, Callable[..., None]] = {one.__name__: one for one in (scan, loads, read, compare, lines, made)}


def main() -> None:
    """Generate where needed, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--tokens", type=float, default=20e6)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("parquet", "jsonl", "two", "folder"))
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--words", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        SIDES[options.side](*json.loads(options.words))
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    tokens, rounds, wanted = int(options.tokens), options.rounds, options.only
    silent = ("--output", f"json:{options.folder / 'report.json'}")
    if wanted in {None, "parquet"}:
        path = options.folder / f"tokens-{tokens}.parquet"
        if not path.exists():
            cost("made", path, tokens, 0)
        beside("parquet", ("scan", path), ("compare", path, *silent), tokens, rounds)
    if wanted in {None, "jsonl", "two"}:
        both, rollouts, trainer, shuffled = (options.folder / f"{name}.jsonl" for name in TABLES)
        cost("lines", options.folder, tokens // 10)
        if wanted != "two":
            beside("jsonl", ("loads", both), ("compare", both, *silent), tokens // 10, rounds)
        if wanted != "jsonl":
            limit = ("read", rollouts, trainer)
            beside("two tables", limit, ("compare", rollouts, trainer, *silent), tokens // 10, rounds)
            beside("shuffled", limit, ("compare", rollouts, shuffled, *silent), tokens // 10, rounds)
    if wanted in {None, "folder"}:
        folder_of_files(options.folder, options.files, 100_000)


if __name__ == "__main__":
    main()
