"""A folder into which a run writes its rollouts, file by file: each finished file is a step, measured by all metrics.

The newest file may still be written, so it is measured once the next one is there, or once nothing came for a while.
"""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from rlaudit.diagnosis.compare_stream import Streamed, stream
from rlaudit.diagnosis.comparison import CompareSettings
from rlaudit.errors import NotFinished
from rlaudit.measurement.measure import Tally
from rlaudit.say import say
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.open_table import open_tables
from rlaudit.tokens.parquet import MEASURED
from rlaudit.tokens.prompt_numbers import PromptNumbers

# Seconds without a write after which a file counts as finished.
QUIET = 60.0


class GrowingDumps:
    """The files of a folder, each read once."""

    def __init__(self, folder: Path, settings: CompareSettings) -> None:
        self.name = str(folder)
        self.what = ""
        self._folder, self._settings = folder, settings
        self._measured: dict[str, dict[int, float]] = {}
        self._files: set[Path] = set()
        self._step = 0

    def grown(self) -> Iterator[tuple[str, str, Mapping[int, float]]]:
        """(metric, metric, its values by the number of the file, from 1) of every metric.

        A file that cannot be read, or that no trainer has scored, is said and left out. Raises NotFinished where no
        file is finished yet, UsageError for a folder that can never be one of dumps.
        """
        table = open_tables(self._folder)[0]
        self.what = table.export.title
        for file in table.files:
            if file in self._files or (file == table.files[-1] and time.time() - file.stat().st_mtime < QUIET):
                continue
            self._files.add(file)
            self._step += 1
            faults = Faults()
            try:
                batches = table.export.read(file, faults, PromptNumbers(), MEASURED, table.part)
                found = stream(batches, file, faults, self._settings)
            except NotFinished as error:
                say(f"{file.name} is left out: {error}")
                continue
            if not isinstance(found, Streamed):
                say(f"{file.name} is left out: no trainer logprobs")
                continue
            for name, value in _values(found.tally):
                self._measured.setdefault(name, {})[self._step] = value
        if not self._measured:
            raise NotFinished(f"{self._folder} holds no finished file yet")
        for name, values in self._measured.items():
            yield name, name, values


def _values(tally: Tally) -> Iterator[tuple[str, float]]:
    for metric in tally.metrics:
        if metric.columns in tally.sums:
            yield metric.name, float(metric.combine(tally.sums[metric.columns].sum(axis=0)))
