"""A training log that is still written: what it holds now, metric by metric."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from rlaudit.curves.curve import run_of, step_keys
from rlaudit.curves.metric_names import known_metric
from rlaudit.curves.open_run import open_run
from rlaudit.errors import NotFinished

Series = Mapping[int, float]


class GrowingLog:
    """A log of any kind that `curves` reads, read again where it has grown."""

    def __init__(self, text: str, sink: str | None, step: str | None) -> None:
        self.name = text
        self._sink, self._step = sink, step
        self._seen: list[tuple[str, int, int]] | None = None
        self.what = ""

    def grown(self) -> Iterator[tuple[str, str, Series]]:
        """(key, rlaudit's own name for it or "", values by step) of every metric; nothing where nothing was written.

        Raises NotFinished where there is no metric yet, UsageError for what can never be a log.
        """
        path = Path(self.name.rpartition("#")[0] or self.name)
        if not path.exists() and not Path(self.name).exists():
            raise NotFinished(f"there is no {path} yet")
        seen = _sizes(path)
        if seen and seen == self._seen:
            return
        self._seen = seen
        log = open_run(self.name, self._sink)
        self.what = log.reader.title
        run = run_of(log, step_keys([log], self._step)[0])
        if not run.curves:
            first = f": {run.problems[0]}" if run.problems else ""
            raise NotFinished(f"{run.name} has no metric with a step{first}", "--step names the key that holds it")
        for key, curve in run.curves.items():
            metric = known_metric(key)
            values = {step: float("nan") for step in curve.not_finite_steps}
            values.update(zip(curve.steps.tolist(), curve.values.tolist(), strict=True))
            yield key, "" if metric is None else metric.canonical, dict(sorted(values.items()))


def _sizes(path: Path) -> list[tuple[str, int, int]]:
    """What tells that something was written: names, sizes and times of the files."""
    files = [path] if path.is_file() else sorted(path.rglob("*")) if path.is_dir() else []
    found = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        found.append((str(file), status.st_size, status.st_mtime_ns))
    return found
