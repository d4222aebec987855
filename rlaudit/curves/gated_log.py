"""A training log held against gates, finished or still growing.

The log may be looked at as often as one likes: what the test counts are its steps (`statistics/exceedance.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlaudit.curves.curve import Run, run_of, step_keys
from rlaudit.curves.gate import Gate, HeldGate, Watched
from rlaudit.curves.metric_names import keys_named, known_metric
from rlaudit.curves.open_run import is_in_a_store, open_run
from rlaudit.errors import NotFinished


@dataclass(frozen=True)
class GatedLog:
    """A log of any kind that `curves` reads, and its gates."""

    # Its path; FILE#RUN for one of several runs.
    name: str
    # How it was read; "" if it could not be.
    what: str
    # The chance that any gate is ever raised over a run that is well.
    alpha: float
    gates: Sequence[Gate]
    # A gate over each series that has its metric.
    held: Sequence[HeldGate]
    # Every metric that was logged, with rlaudit's name or "".
    keys: Mapping[str, str]
    # Why there is nothing to count; "" if there is something.
    waiting: str

    @property
    def unknown(self) -> list[Gate]:
        """Gates whose metric was never logged."""
        met = {gate.gate for gate in self.held}
        return [gate for gate in self.gates if str(gate) not in met]


def hold(name: str, sink: str | None, step_key: str | None, gates: Sequence[Gate], alpha: float) -> GatedLog:
    """Hold a log against its gates. sink, step_key: a reader and a key of the step, if the user chose them.

    A log that is not there yet, or has no metric, is no error. Raises UsageError for a path that can never be a log.
    """
    try:
        what, series = _read(name, sink, step_key)
    except NotFinished as error:
        return GatedLog(name, "", alpha, gates, (), {}, str(error))
    metrics = {key: known_metric(key) for key in series}
    keys = {key: "" if metric is None else metric.canonical for key, metric in metrics.items()}
    held = [
        _watched(gate, key, series[key], alpha / len(gates) / (number * (number + 1))).held(keys[key])
        for gate in gates
        # The n-th series of a gate has 1 / (n (n + 1)) of the gate's share, as many as there may ever be.
        for number, key in enumerate(keys_named(gate.metric, series), 1)
    ]
    return GatedLog(name, what, alpha, gates, held, keys, "")


def _read(name: str, sink: str | None, step_key: str | None) -> tuple[str, Mapping[str, Mapping[int, float]]]:
    """Return how a log is read, and every metric's values by step. Raises NotFinished for a log without a metric."""
    path = Path(name.rpartition("#")[0] or name)
    if not path.exists() and not Path(name).exists() and not is_in_a_store(name):
        raise NotFinished(f"there is no {path} yet")
    log = open_run(name, sink)
    run = run_of(log, step_keys([log], step_key)[0])
    run.require_curves()
    return log.reader.title, _series(run)


def _series(run: Run) -> dict[str, dict[int, float]]:
    series = {}
    for key, curve in run.curves.items():
        values = dict.fromkeys(curve.not_finite_steps, float("nan"))
        values.update(zip(curve.steps.tolist(), curve.values.tolist(), strict=True))
        series[key] = dict(sorted(values.items()))
    return series


def _watched(gate: Gate, key: str, values: Mapping[int, float], share: float) -> Watched:
    watched = Watched(gate, key, share)
    for step, value in values.items():
        watched.see(step, value)
    return watched
