"""Curves made from rows: one value per step, and a note of everything that could not be used.

A run that resumed from a checkpoint logs some steps twice: the later values count, and what the abandoned part
logged beyond them is dropped. The same step twice without a step back: the later value counts. NaN and infinity are
no values, nor is what exceeds 1e100; a curve says how many it had and where they began.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlaudit.curves.run_log import Problem, Problems, Row, RunLog
from rlaudit.errors import NotFinished

# What frameworks log beside W&B's own step, which counts logging calls and not training steps.
TRAINING_STEPS = (
    "train/global_step", "training/global_step", "trainer/global_step", "global_step", "stats/completed_steps",
)  # fmt: skip
CALLS = "_step"
# Keys that logs hold beside metrics and that are never a sign of learning.
BOOKKEEPING = re.compile(
    r"(^|[/_. (-])(time|timing|timestamp|runtime|secs?|seconds|elapsed|remaining|lr|learning_rate|epoch|steps?|samples|"
    r"memory|gib|mem|throughput|speed|gpu|cpu|percentage|version|flos|per_second|mfu|progress|tokens)($|[/_. ()-])",
    re.IGNORECASE,
)
# What no metric is: squares and sums of such values overflow.
LARGEST = 1e100


@dataclass(frozen=True)
class Curve:
    """One metric of one run. Steps ascend; those in not_finite_steps had NaN or infinite values."""

    key: str
    steps: NDArray[np.int64]
    values: NDArray[np.float64]
    not_finite_steps: tuple[int, ...] = ()


@dataclass(frozen=True)
class Run:
    """A run's curves."""

    name: str
    paths: tuple[Path, ...]
    sink: str
    # The counter that its steps are.
    step_name: str
    curves: Mapping[str, Curve]
    problems: tuple[Problem, ...]

    def require_curves(self) -> None:
        """Raise NotFinished for a run without a metric that has steps."""
        if not self.curves:
            first = f": {self.problems[0]}" if self.problems else ""
            raise NotFinished(f"{self.name} has no metric with a step{first}", "--step names the key that holds it")


def step_keys(logs: Iterable[RunLog], requested: str | None) -> list[str | None]:
    """Return the key that each run takes its steps from; None for its sink's step.

    W&B's step counts logging calls. It may stand for the training step in all runs or in none: next to a run that
    counts training steps, or one that logs them to W&B, it is given up if the log holds the training step.
    """
    logs = list(logs)
    if requested is not None:
        return [requested] * len(logs)
    counted = [_training_step(log) if log.reader.own_step == CALLS else None for log in logs]
    are_known = (key is not None or log.reader.own_step != CALLS for log, key in zip(logs, counted, strict=True))
    return counted if all(are_known) else [None] * len(logs)


def _training_step(log: RunLog) -> str | None:
    """Return the key of the training step that nearly all rows hold."""
    for key in TRAINING_STEPS:
        if sum(_integer(row.values.get(key)) is not None for row in log.rows) >= 0.9 * max(len(log.rows), 1):
            return key
    return None


def run_of(log: RunLog, step_key: str | None) -> Run:
    """Return the curves of a log, over its sink's step or over the values of `step_key`."""
    problems = Problems(log.paths[0])
    series: dict[str, _Series] = {}
    for row in log.rows:
        step = _integer(row.step if step_key is None else row.values.get(step_key))
        if step is None:
            if step_key is None or row.values:
                problems.add(row.place, f"{_unusable_step(log, row, step_key)}; the row is not used")
            continue
        for key, value in row.values.items():
            if key != step_key and not _is_structure(value):
                series.setdefault(key, _Series(key)).add(step, value, row.place, problems)
    curves = {key: metric.curve(problems) for key, metric in sorted(series.items()) if metric.has_numbers}
    return Run(
        name=log.name,
        paths=log.paths,
        sink=log.reader.title,
        step_name=step_key or log.reader.own_step,
        curves=curves,
        problems=(*log.problems, *problems.listed()),
    )


def _unusable_step(log: RunLog, row: Row, step_key: str | None) -> str:
    logged = row.step if step_key is None else row.values.get(step_key)
    name = step_key or log.reader.own_step
    return f"no step ({name})" if logged in (None, "") else f"{name} is {logged!r:.40}, no whole number from 0 on"


class _Series:
    """One metric while its rows come in."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.values: dict[int, float] = {}
        self.not_finite: dict[int, str] = {}
        self.wrong: list[tuple[str, str]] = []
        self.last = -1
        self.out_of_order = False

    @property
    def has_numbers(self) -> bool:
        return bool(self.values or self.not_finite)

    def add(self, step: int, value: Any, place: str, problems: Problems) -> None:
        if value is None or value == "":
            return
        number = _number(value)
        if number is None:
            self.wrong.append((place, f"{self.key} is {value!r:.40}, not a number"))
            return
        was_logged = step in self.values or step in self.not_finite
        if step < self.last and was_logged:
            problems.add(
                place, f"the steps go back to {step} from {self.last}: a resume; the later values are used", True
            )
            self._forget_from(step)
        elif was_logged and not _same(self.values.get(step, math.nan), number) and not BOOKKEEPING.search(self.key):
            problems.add(place, f"{self.key} has one step twice with different values; the later one is used")
        elif step < self.last:
            self.out_of_order = True
        self.last = step if step > self.last or was_logged else self.last
        self.values.pop(step, None)
        self.not_finite.pop(step, None)
        if abs(number) < LARGEST:
            self.values[step] = number
        else:
            self.not_finite[step] = place

    def _forget_from(self, step: int) -> None:
        self.values = {earlier: value for earlier, value in self.values.items() if earlier < step}
        self.not_finite = {earlier: place for earlier, place in self.not_finite.items() if earlier < step}

    def curve(self, problems: Problems) -> Curve:
        for place, message in self.wrong:
            problems.add(place, message)
        if self.not_finite:
            first = min(self.not_finite)
            count = len(self.not_finite)
            problems.add(
                self.not_finite[first],
                f"{self.key} is not finite at {count} step{'s' * (count > 1)}, the first is {first}",
            )
        if self.out_of_order:
            problems.add("", f"{self.key} is not in the order of its steps; sorted")
        steps = np.array(sorted(self.values), dtype=np.int64)
        values = np.array([self.values[step] for step in steps.tolist()], dtype=np.float64)
        return Curve(self.key, steps, values, tuple(sorted(self.not_finite)))


def _same(first: float, second: float) -> bool:
    return first == second or (math.isnan(first) and math.isnan(second))


def _is_structure(value: Any) -> bool:
    """Return whether it is a histogram, table, medium or flag: logged beside metrics and never meant as one."""
    return isinstance(value, (dict, list, bool))


def _number(value: Any) -> float | None:
    if isinstance(value, (int, float)):
        return _as_float(value)
    if isinstance(value, str):
        text = value.strip()
        try:
            number = float(text)
        except ValueError:
            return None
        # float() takes "1_000" and the digits of other scripts, which no logger writes for a number.
        return number if text.isascii() and "_" not in text else None
    return None


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _integer(value: Any) -> int | None:
    if isinstance(value, bool) or value is None:
        return None
    number = _number(value)
    if number is None or not math.isfinite(number) or number != int(number) or not 0 <= number < 2**62:
        return None
    return int(number)
