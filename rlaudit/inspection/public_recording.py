"""The report of recordings for a page that anyone may read: made of copies in which nothing else is left.

Private data cannot slip into the page: rules, sentences and settings are made from a copy without token ids, text,
command lines, hosts, users and paths. Only the figures of an engine's life come from the recording itself.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rlaudit.inspection.document import document_of
from rlaudit.inspection.finding import Severity
from rlaudit.inspection.inspect import NOTHING_FIXED, Request, inspect
from rlaudit.recorder.engine_life import engine_life
from rlaudit.recorder.public_copy import write_public_copy
from rlaudit.recorder.recording import Recording, open_recording
from rlaudit.recorder.weight_updates import ServedWeights, served_weights

if TYPE_CHECKING:
    from rlaudit.report.parts.engine_life import EngineLife
    from rlaudit.report.report import Report

LEFT_OUT = (
    "Made to be shown to anyone: token ids, prompts and completions, stop strings, command lines, paths, names of "
    "hosts, users, files, models and datasets, and the texts of errors were left out before this page was made. What "
    "begins with redacted- stands for a name or a text that vLLM's own code does not know."
)


def public_report(originals: Sequence[Recording], asked: Request, code: int, threshold: Severity | None) -> "Report":
    """Return the report of recordings without what only their owner may read.

    code, threshold: of the command. Raises OSError if there is no room for copies without tokens.
    """
    with TemporaryDirectory(prefix="rlaudit-") as folder:
        above = Path(folder).resolve()
        names = ["recording"] if len(originals) == 1 else [f"recording-{one}" for one in range(1, len(originals) + 1)]
        for original, name in zip(originals, names, strict=True):
            write_public_copy(original, above / name)
        paths = tuple(str(above / name) for name in names)
        # Suppressions and baselines are about files by their paths.
        request = Request(paths, asked.context, asked.about_suppressions)
        document = document_of(inspect(request), code, threshold, NOTHING_FIXED)
        copies = [open_recording(above / name) for name in names]
        lives = [
            life
            for pair in zip(originals, copies, names, strict=True)
            for life in _lives(*pair, several=len(originals) > 1)
        ]
        shown: Report = _without_folder(document, f"{above}/")
    shown["public_recording"] = {"left_out": LEFT_OUT, "engines": lives}
    return shown


def _lives(original: Recording, copy: Recording, name: str, several: bool) -> "Iterator[EngineLife]":
    fronts = served_weights(original)
    for number, (front, public) in enumerate(zip(fronts, served_weights(copy), strict=True), 1):
        life = engine_life(front, original)
        parts = [*([name] if several else []), *([f"engine {number}"] if len(fronts) > 1 else [])]
        yield {
            "name": ", ".join(parts),
            "seconds": life.seconds,
            "bins": [
                {
                    "begin": one.begin,
                    "tokens": one.tokens,
                    "cached": one.cached,
                    "version": one.version,
                }
                for one in life.bins
            ],
            "marks": [
                {"what": str(one.what), "begin": one.begin, "end": one.end, "failed": one.failed} for one in life.marks
            ],
            "updates": life.updates,
            "protocols": [{"times": times, "calls": list(calls)} for calls, times in _orders(public).most_common()],
        }


def _orders(served: ServedWeights) -> Counter[tuple[str, ...]]:
    return Counter(update.order for update in served.updates)


def _without_folder(value: Any, folder: str) -> Any:
    if isinstance(value, dict):
        return {name: _without_folder(held, folder) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_without_folder(held, folder) for held in value]
    return value.replace(folder, "") if isinstance(value, str) else value
