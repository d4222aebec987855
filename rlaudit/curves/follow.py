"""Checks a training log against gates while it is still written: look, count what is new, raise alarms.

The run may be looked at as often as one likes: what the test counts are its steps (`statistics/exceedance.py`).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlaudit.curves.curve import run_of, step_keys
from rlaudit.curves.gate import Gate, Watched
from rlaudit.curves.metric_names import known_metric
from rlaudit.curves.open_run import open_run
from rlaudit.errors import NotFinished

# Names, sizes and times of files: if they differ, something was written.
Written = list[tuple[str, int, int]]


@dataclass
class FollowedLog:
    """A log of any kind that `curves` reads, and its gates."""

    # Its path; FILE#RUN for one of several runs.
    name: str
    # A reader and a key of the step, if the user chose them.
    sink: str | None
    step_key: str | None
    gates: Sequence[Gate]
    # The chance that any gate is ever raised over a run that is well.
    alpha: float
    # How the log was read.
    what: str = ""
    # By gate and key; each has its share of alpha.
    watched: dict[tuple[Gate, str], Watched] = field(default_factory=dict)
    # Every metric met, with rlaudit's name or "".
    keys: dict[str, str] = field(default_factory=dict)
    # Why there is nothing to count; "" if there is something.
    waiting: str = ""
    _written: Written | None = None

    def look(self) -> list[Watched]:
        """Count what is new; return the gates that it raises. Raises UsageError for a path that can never be a log."""
        raised = []
        try:
            for key, values in self._series().items():
                metric = known_metric(key)
                self.keys[key] = "" if metric is None else metric.canonical
                for gate in self.gates:
                    if gate.metric in (key, self.keys[key]):
                        watched = self._watch(gate, key)
                        raised += [watched for step, value in values.items() if watched.see(step, value)]
        except NotFinished as error:
            self.waiting = str(error)
        else:
            self.waiting = ""
        return raised

    @property
    def unknown(self) -> list[Gate]:
        """Gates whose metric was never logged."""
        met = {gate for gate, _ in self.watched}
        return [gate for gate in self.gates if gate not in met]

    @property
    def last_step(self) -> int | None:
        """The last step that was counted."""
        return max((next(reversed(gate.values)) for gate in self.watched.values() if gate.values), default=None)

    def _series(self) -> Mapping[str, Mapping[int, float]]:
        """Return every metric's values by step; nothing if nothing was written. Raises NotFinished without a metric."""
        path = Path(self.name.rpartition("#")[0] or self.name)
        if not path.exists() and not Path(self.name).exists():
            raise NotFinished(f"there is no {path} yet")
        written = _files_of(path)
        if written and written == self._written:
            return {}
        self._written = written
        log = open_run(self.name, self.sink)
        self.what = log.reader.title
        run = run_of(log, step_keys([log], self.step_key)[0])
        run.require_curves()
        series = {}
        for key, curve in run.curves.items():
            values = dict.fromkeys(curve.not_finite_steps, float("nan"))
            values.update(zip(curve.steps.tolist(), curve.values.tolist(), strict=True))
            series[key] = dict(sorted(values.items()))
        return series

    def _watch(self, gate: Gate, key: str) -> Watched:
        watched = self.watched.get((gate, key))
        if watched is None:
            # The n-th series of a gate has 1 / (n (n + 1)) of the gate's share, as many as there may ever be.
            number = 1 + sum(gate == other for other, _ in self.watched)
            share = self.alpha / len(self.gates) / (number * (number + 1))
            watched = self.watched[gate, key] = Watched(gate, key, share)
        return watched


def follow(
    log: FollowedLog,
    every: float,
    silence: float | None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> str:
    """Look every `every` seconds until a gate is raised or `silence` seconds bring nothing new; return why it ended."""
    new_at, last = clock(), None
    while not log.look():
        if log.last_step != last:
            new_at, last = clock(), log.last_step
        if silence is not None and clock() - new_at >= silence:
            return f"nothing new for {silence:g} seconds"
        sleep(every)
    return "a gate was raised"


def _files_of(path: Path) -> Written:
    """Return names, sizes and times of the log's files."""
    files = [path] if path.is_file() else sorted(path.rglob("*")) if path.is_dir() else []
    written = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        written.append((str(file), status.st_size, status.st_mtime_ns))
    return written
