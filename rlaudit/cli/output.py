"""`--output FORMAT[:PATH]`: where a report goes, and in which format. A format never changes the exit code."""

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlaudit.cli.names import formats
from rlaudit.cli.terminal import coloured, report_width, uncoloured
from rlaudit.errors import UsageError
from rlaudit.files.standard_input import DASH
from rlaudit.files.standard_output import in_ascii, to_stdout, utf_8
from rlaudit.files.unusable_place import unusable_place
from rlaudit.files.write_atomically import write_atomically
from rlaudit.report.rendering.report_format import ReportFormat

if TYPE_CHECKING:
    from rlaudit.report.report import Report

HELP = (
    "text, concise, markdown, html, json, sarif, junit, github or gitlab, and :PATH, or a path as report.html; "
    "repeatable. Without a path: stdout."
)
# A file named so is in this format, without its name before it.
ENDINGS = {".html": "html", ".md": "markdown", ".json": "json", ".sarif": "sarif", ".xml": "junit", ".txt": "text"}


@dataclass(frozen=True)
class Output:
    """One report to write; `path` is None for stdout."""

    report_format: ReportFormat
    path: Path | None


def parse_outputs(wanted: Sequence[str] | None, verbose: bool = False) -> list[Output]:
    """Read --output. Raises UsageError for an unknown format, two reports on one stdout, or one on a closed stdout."""
    # Only requested formats are imported: a file is named after its format (a test checks it).
    names = formats()
    outputs = []
    for text in wanted or ["text"]:
        name, _, path = _with_format(text).partition(":")
        if name not in names:
            raise UsageError(f"unknown output format {name!r}", f"there are: {', '.join(names)}")
        report_format: ReportFormat = importlib.import_module(f"rlaudit.report.rendering.formats.{name}").FORMAT
        report_format = report_format.verbose() if verbose else report_format
        outputs.append(Output(report_format, Path(path) if path not in ("", DASH) else None))
    on_stdout = sum(output.path is None for output in outputs)
    if on_stdout > 1:
        raise UsageError("only one report can go to stdout", "give the others a path: --output json:report.json")
    if on_stdout and sys.stdout is None:
        raise UsageError("standard output is closed", "give the report a path: --output json:report.json")
    return outputs


def _with_format(text: str) -> str:
    """Return `html:report.html` for `report.html`, and anything else as it is."""
    ending = Path(text).suffix
    return f"{ENDINGS[ending]}:{text}" if ending in ENDINGS and ":" not in text else text


def write_outputs(outputs: Sequence[Output], document: "Report") -> int:
    """Render and write every report, and return its exit code. Raises as `to_stdout` and `write_file` do."""
    for output in outputs:
        if output.path is None:
            text = output.report_format.text(document, report_width())
            text = text if coloured() else uncoloured(text)
            to_stdout(in_ascii(text) if output.report_format.markup and not utf_8() else text)
        else:
            write_file(output.path, output.report_format.text(document, None))
    return int(document["exit_code"])


def write_file(path: Path, text: str | bytes) -> None:
    """Write a report, recipe or table in one step, a text to stdout for `-`: a kill or a full disk leaves the old file.

    A pipe or a device is written into directly. Raises UsageError for a path where no file can be, NotFinished if
    there is no room or no right to write.
    """
    if str(path) == DASH and isinstance(text, str):
        to_stdout(text)
        return
    content = text.encode() if isinstance(text, str) else text
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not (path.is_file() or path.is_dir()):
            path.write_bytes(content)
        else:
            write_atomically(path, content)
    except OSError as error:
        error.filename = error.filename or str(path)
        unwritable = unusable_place(error, "the report cannot be written:")
        if unwritable is None:
            raise
        raise unwritable from error
