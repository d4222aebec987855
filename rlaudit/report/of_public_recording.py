"""The report of recordings for a page that anyone may read: made of copies in which nothing else is left.

Private data cannot slip into the page: rules, sentences and settings are made from a copy without token ids, text,
command lines, hosts, users and paths.
"""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rlaudit.inspection.inspect import Request, inspect
from rlaudit.recording.recording import Recording
from rlaudit.recording.redacted_copy import write_redacted_copy
from rlaudit.recording.redaction import new_redaction
from rlaudit.report.of_inspection import document_of
from rlaudit.severity import Threshold
from rlaudit.text.printable import with_texts

if TYPE_CHECKING:
    from rlaudit.report.report import Report

LEFT_OUT = (
    "Made to be shown to anyone: token ids, prompts and completions, stop strings, command lines, paths, names of "
    "hosts, users, files, models and datasets, and the texts of errors were left out before this page was made. What "
    "begins with redacted- stands for a name or a text that vLLM's own code does not know."
)


def public_report(originals: Sequence[Recording], request: Request, code: int, threshold: Threshold) -> "Report":
    """Return the report of recordings without what only their owner may read.

    code, threshold: of the command. Raises OSError if there is no room for the copies.
    """
    with TemporaryDirectory(prefix="rlaudit-") as folder:
        above, rules = Path(folder).resolve(), new_redaction(tokens=False)
        several = len(originals) > 1
        names = [f"recording-{number}" if several else "recording" for number in range(1, len(originals) + 1)]
        for original, name in zip(originals, names, strict=True):
            (above / name).mkdir()
            write_redacted_copy(original, above / name, rules)
        paths = tuple(str(above / name) for name in names)
        # Suppressions are about files by their paths.
        inspection = inspect(Request(paths, request.context, request.about_suppressions))
        document = document_of(inspection, code, threshold)
        shown: Report = with_texts(document, lambda text: text.replace(f"{above}/", ""))
    shown["left_out"] = LEFT_OUT
    return shown
