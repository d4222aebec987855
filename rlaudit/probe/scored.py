"""Live samples compared with what a model makes of them, as `compare --score` does it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.diagnosis.compare_tables import Comparer
from rlaudit.errors import RlauditError
from rlaudit.probe.samples import Samples
from rlaudit.text.progress import Progress
from rlaudit.tokens.open_table import open_tables

if TYPE_CHECKING:
    from rlaudit.diagnosis.compare_scored import Scorer


def scored(
    sampled: Sequence[tuple[str, Samples]],
    given: Mapping[str, Any],
    config: Path | None,
    scorer: "Scorer",
    progress: Progress,
) -> Comparer | str:
    """Return the comparison of all servers, the last one with today's; why there is none if one could not be made.

    sampled: by the addresses of the servers.
    """
    lacking = next((samples.lacks for _, samples in sampled if samples.lacks), "")
    if lacking:
        return lacking
    tokens = max(samples.tokens for _, samples in sampled)
    comparer = Comparer(given, config, CompareSettings(), scorer, tokens, progress)
    with TemporaryDirectory() as folder:
        tables = []
        for place, (address, samples) in enumerate(sampled):
            path = Path(folder) / f"{place}.parquet"
            path.write_bytes(samples.parquet)
            tables += [replace(table, part=replace(table.part, name=address)) for table in open_tables(path)]
        *today, after = tables
        try:
            against = comparer.compare_today(today[0], None) if today else None
            comparer.compare(after, None, against)
        except RlauditError as error:
            return str(error)
    named = zip(comparer.compared, sampled, strict=True)
    comparer.compared = [replace(compared, path=address) for compared, (address, _) in named]
    return comparer
