"""Figures of a large token table: `rlaudit compare` against plain scripts, of pandas that loads all and of polars.

    python -m evidence.benchmarks.compare_speed FOLDER [--tokens 100e6] [--rounds 3]

Writes FOLDER/tokens-N.parquet (8 columns, row groups of a million rows) unless it is there. All sides run in processes
of their own, in turn, start-up included; printed are tokens per second, their ratio, and each side's peak memory.
All give the same figures with 95 % intervals from 2,000 resamples of prompts. The scripts are those that a competent
user writes in an hour: metrics on columns, sums grouped by prompt, one product with multinomial weights; with polars
(run where it is installed) as expressions, streamed. They leave out what that takes longer to write (intervals of
quantiles, studentised ends, causes, alignment), and rlaudit does all of it in its time.
"""

import argparse
import importlib
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 1_000_000
SAMPLES = 8
SCHEMA = pa.schema(
    [
        ("prompt_id", pa.int64()),
        ("sample_id", pa.int32()),
        ("position", pa.int32()),
        ("token_id", pa.int32()),
        ("rollout_logprob", pa.float32()),
        ("trainer_logprob", pa.float32()),
        ("trainer_entropy", pa.float32()),
        ("loss_mask", pa.bool_()),
    ]
)


def generate(path: Path, tokens: int, seed: int = 0) -> None:
    """Completions of about 480 tokens, 8 for each prompt, with noise that differs between sequences."""
    rng = np.random.default_rng(seed)
    part = path.with_suffix(".part")
    with pq.ParquetWriter(part, SCHEMA) as writer:
        rest, written, first = SCHEMA.empty_table(), 0, 0
        while written < tokens:
            lengths = np.clip(rng.lognormal(6.0, 0.6, 4096).astype(np.int64), 16, 4096)
            rest = pa.concat_tables([rest, _completions(rng, lengths, first)])
            first += len(lengths)
            while rest.num_rows >= min(ROWS, tokens - written) and written < tokens:
                rows = min(ROWS, tokens - written)
                writer.write_table(rest.slice(0, rows), row_group_size=ROWS)
                rest, written = rest.slice(rows), written + rows
            rest = rest.combine_chunks()
    part.replace(path)


def _completions(rng: np.random.Generator, lengths: np.ndarray, first: int) -> pa.Table:
    numbers = first + np.arange(len(lengths))
    total = int(lengths.sum())
    size = np.repeat(0.02 * np.exp(0.5 * rng.normal(size=len(lengths))), lengths)
    rollout = -rng.exponential(0.6, total) * (rng.random(total) < 0.4)
    trainer = np.minimum(rollout + size * rng.standard_normal(total) * -np.expm1(rollout), 0.0)
    position = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return pa.table(
        [
            np.repeat(numbers // SAMPLES, lengths),
            np.repeat(numbers % SAMPLES, lengths).astype(np.int32),
            position.astype(np.int32),
            rng.integers(0, 151_936, total).astype(np.int32),
            rollout.astype(np.float32),
            trainer.astype(np.float32),
            rng.exponential(0.4, total).astype(np.float32),
            np.ones(total, dtype=np.bool_),
        ],
        schema=SCHEMA,
    )


def plain(path: Path) -> dict[str, list[float]]:
    """The script: load, compute, group by prompt, bootstrap prompts."""
    import pandas as pd

    frame = pd.read_parquet(path)
    codes, _ = pd.factorize(frame.prompt_id)
    rollout, trainer = (frame[name].to_numpy(np.float64) for name in ("rollout_logprob", "trainer_logprob"))
    entropy = frame.trainer_entropy.to_numpy(np.float64)
    sequence = codes * SAMPLES + frame.sample_id.to_numpy()
    del frame
    d = trainer - rollout
    size, ratio = np.abs(d), np.exp(d)
    metrics = {
        "mean_ratio_minus_one": lambda: ratio - 1,
        "k1": lambda: -d,
        "k2": lambda: 0.5 * d * d,
        "k3": lambda: ratio - 1 - d,
        "mean_abs_log_ratio": lambda: size,
        "total_variation": lambda: 0.5 * np.abs(ratio - 1),
        "token_mult_prob_error": lambda: np.exp(size),
        "probs_diff_mean": lambda: np.abs(np.exp(trainer) - np.exp(rollout)),
        "ppo_clip_fraction": lambda: (ratio < 0.8) | (ratio > 1.2),
        "tail_fraction_2": lambda: size > np.log(2.0),
        "entropy": lambda: entropy,
    }
    tokens = np.bincount(codes)
    sums = np.stack([*(np.bincount(codes, column()) for column in metrics.values()), tokens], axis=1)
    total, length = np.bincount(sequence, d), np.bincount(sequence)
    found = with_intervals(list(metrics), sums) | of_sequences(total[length > 0], length[length > 0])
    found["ess_token"] = [ratio.sum() ** 2 / (ratio @ ratio) / len(ratio)]
    found["median_abs_log_ratio"] = [np.median(size)]
    found["p99_abs_log_ratio"] = [np.quantile(size, 0.99)]
    return {name: [float(number) for number in numbers] for name, numbers in found.items()}


def polars(path: Path) -> dict[str, list[float]]:
    """The same sums as expressions, streamed; `pip install polars` first."""
    pl: Any = importlib.import_module("polars")

    d = (pl.col("trainer_logprob").cast(pl.Float64) - pl.col("rollout_logprob").cast(pl.Float64)).alias("d")
    table = pl.scan_parquet(path).with_columns(d)
    size, ratio = pl.col("d").abs(), pl.col("d").exp()
    trainer, rollout = (pl.col(name).cast(pl.Float64).exp() for name in ("trainer_logprob", "rollout_logprob"))
    metrics = {
        "mean_ratio_minus_one": ratio - 1,
        "k1": -pl.col("d"),
        "k2": 0.5 * pl.col("d") ** 2,
        "k3": ratio - 1 - pl.col("d"),
        "mean_abs_log_ratio": size,
        "total_variation": 0.5 * (ratio - 1).abs(),
        "token_mult_prob_error": size.exp(),
        "probs_diff_mean": (trainer - rollout).abs(),
        "ppo_clip_fraction": (ratio < 0.8) | (ratio > 1.2),
        "tail_fraction_2": size > np.log(2.0),
        "entropy": pl.col("trainer_entropy").cast(pl.Float64),
    }
    wanted = [one.sum().alias(name) for name, one in metrics.items()] + [(ratio**2).sum().alias("squares"), pl.len()]
    by_prompt = table.group_by("prompt_id").agg(wanted).collect(engine="streaming").drop("prompt_id")
    by_sequence = table.group_by("prompt_id", "sample_id").agg(pl.col("d").sum(), pl.len()).collect(engine="streaming")
    quantiles = table.select(size.quantile(0.5).alias("low"), size.quantile(0.99).alias("high"))
    (median, high) = quantiles.collect(engine="streaming").row(0)
    sums = by_prompt.drop("squares").to_numpy().astype(np.float64)
    found = with_intervals(list(metrics), sums)
    found |= of_sequences(by_sequence["d"].to_numpy(), by_sequence["len"].to_numpy())
    tokens = sums[:, -1].sum()
    weights = sums[:, 0].sum() + tokens
    found["ess_token"] = [weights**2 / float(by_prompt["squares"].sum()) / tokens]
    found["median_abs_log_ratio"], found["p99_abs_log_ratio"] = [median], [high]
    return {name: [float(number) for number in numbers] for name, numbers in found.items()}


def with_intervals(names: list[str], sums: np.ndarray) -> dict[str, list[float]]:
    """(P, J + 1) sums per prompt, the last of tokens -> mean, low and high of each, prompts drawn again."""
    rng = np.random.default_rng(0)
    replicates = np.empty((2000, sums.shape[1]))
    for row in range(2000):
        drawn = np.bincount(rng.integers(0, len(sums), len(sums)), minlength=len(sums))
        replicates[row] = drawn @ sums
    low, high = np.quantile(replicates[:, :-1] / replicates[:, -1:], [0.025, 0.975], axis=0)
    value = sums[:, :-1].sum(axis=0) / sums[:, -1].sum()
    return {name: [value[place], low[place], high[place]] for place, name in enumerate(names)}


def of_sequences(total: np.ndarray, length: np.ndarray) -> dict[str, list[float]]:
    """What sums of log ratios (S,) and lengths (S,) say."""
    weight, mean = np.exp(total), total / length
    return {
        "gspo_clip_fraction": [((mean < np.log(0.98)) | (mean > np.log(1.02))).mean()],
        "ess_sequence": [weight.sum() ** 2 / (weight @ weight) / len(weight)],
    }


def rlaudit(path: Path) -> dict[str, list[float]]:
    """`compare` as its command runs it: all figures, alignment of every sequence, causes, three layers."""
    from rlaudit.diagnosis.compare_settings import CompareSettings
    from rlaudit.diagnosis.compare_tables import Comparer
    from rlaudit.text.progress import Progress
    from rlaudit.tokens.open_table import open_tables

    (table,) = open_tables(path)
    comparer = Comparer({}, None, CompareSettings(), None, 0, Progress(True))
    comparer.compare(table, None)
    (found,) = comparer.compared
    assert not found.faults.count, found.faults.lines()
    return {
        name: [number for number in (one.value, one.low, one.high) if number is not None]
        for name, one in found.comparison.evidence.measurements.items()
    }


SIDES = {"plain": plain, "polars": polars, "rlaudit": rlaudit}


@dataclass(frozen=True)
class Run:
    """One process: seconds by the clock and of processor time, peak memory in MiB, and its figures."""

    seconds: float
    cpu: float
    peak_mib: float
    figures: dict[str, list[float]]


def _run(side: str, path: Path) -> Run:
    started = time.perf_counter()
    told = subprocess.run(
        [sys.executable, __file__, str(path.parent), "--side", side, "--file", str(path)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    answer = json.loads(told.stdout)
    return Run(time.perf_counter() - started, answer["cpu"], answer["peak_mib"], answer["figures"])


def main() -> None:
    """Generate where needed, run both sides in turn, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokens", type=float, default=100e6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=SIDES, help="for memory, where the other side does not fit")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        figures = SIDES[options.side](options.file)
        used = resource.getrusage(resource.RUSAGE_SELF)
        about = {"peak_mib": used.ru_maxrss / 1024, "cpu": used.ru_utime + used.ru_stime, "figures": figures}
        print(json.dumps(about))
        return
    tokens = int(options.tokens)
    path = options.folder / f"tokens-{tokens}.parquet"
    if not path.exists():
        options.folder.mkdir(parents=True, exist_ok=True)
        generate(path, tokens)
    there = [side for side in SIDES if side != "polars" or importlib.util.find_spec("polars")]
    sides = [options.only] if options.only else there
    runs: dict[str, list[Run]] = {side: [] for side in sides}
    for _ in range(options.rounds):
        for side in sides:
            run = _run(side, path)
            runs[side].append(run)
            speed = tokens / run.seconds / 1e6
            print(f"{side:8} {speed:6.2f} M tokens/s, {run.cpu:.1f} s of processor, peak {run.peak_mib:.0f} MiB")
    for side, done in runs.items():
        seconds = statistics.median(run.seconds for run in done)
        peak = max(run.peak_mib for run in done)
        print(f"{side:8} median {tokens / seconds / 1e6:6.2f} M tokens/s, peak {peak:.0f} MiB")
    for side in sides if len(sides) > 1 else ():
        if side == "rlaudit":
            continue
        pairs = list(zip(runs[side], runs["rlaudit"], strict=True))
        for name in ("seconds", "cpu"):
            ratios = [getattr(other, name) / getattr(own, name) for other, own in pairs]
            said = ", ".join(f"{ratio:.2f}" for ratio in ratios)
            print(f"{name} of {side} over rlaudit's in each round: {said}; median {statistics.median(ratios):.2f}")
        _check(runs[side][0].figures, runs["rlaudit"][0].figures)


def _check(figures: dict[str, list[float]], own: dict[str, list[float]]) -> None:
    """Both sides must have measured the same thing."""
    for name, (value, *_) in figures.items():
        tolerance = 0.02 if "abs_log_ratio" in name else 1e-4
        assert abs(own[name][0] - value) <= tolerance * abs(value) + 1e-9, (name, value, own[name][0])
    print(f"{len(figures)} figures agree")


if __name__ == "__main__":
    main()
