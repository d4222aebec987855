"""`--output FORMAT[:PATH]`: where a report goes, and in which format. A format never changes the exit code."""

import importlib
import os
import pkgutil
import sys
from dataclasses import dataclass
from pathlib import Path

from rlaudit.errors import UsageError
from rlaudit.reports import formats
from rlaudit.reports.report_format import Document, ReportFormat

HELP = "FORMAT[:PATH], repeatable; without a path it goes to stdout."


@dataclass(frozen=True)
class Output:
    """One report to write; `path` is None for stdout."""

    report_format: ReportFormat
    path: Path | None


def parse_outputs(wanted: list[str]) -> list[Output]:
    """Raises UsageError for a format there is no file for, or two reports on one stdout."""
    # Only the formats that are asked for are imported: a file is named after its format (a test says so).
    known = sorted(module.name for module in pkgutil.iter_modules(formats.__path__))
    outputs = []
    for text in wanted or ["text"]:
        name, _, path = text.partition(":")
        if name not in known:
            raise UsageError(f"unknown output format {name!r}", f"there are: {', '.join(known)}")
        report_format: ReportFormat = importlib.import_module(f"{formats.__name__}.{name}").FORMAT
        outputs.append(Output(report_format, Path(path) if path else None))
    if sum(output.path is None for output in outputs) > 1:
        raise UsageError("only one report can go to stdout", "give the others a path: --output json:report.json")
    return outputs


def write_outputs(outputs: list[Output], document: Document) -> None:
    """Render and write every report. Raises UsageError where a file cannot be written."""
    for output in outputs:
        if output.path is None:
            sys.stdout.write(output.report_format.text(document, terminal_width()))
            sys.stdout.flush()
        else:
            write_file(output.path, output.report_format.text(document, None))


def write_file(path: Path, text: str) -> None:
    """Write a report. Raises UsageError where that cannot be done."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the report {path} cannot be written: {error.strerror}") from error


def terminal_width() -> int | None:
    """Columns of the terminal on stdout; None when piped, and where colours would be shown as signs.

    NO_COLOR and FORCE_COLOR as everywhere. A dumb terminal knows no colours.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") in {"dumb", "unknown"}:
        return None
    if sys.stdout.isatty() or os.environ.get("FORCE_COLOR"):
        try:
            return os.get_terminal_size(sys.stdout.fileno()).columns
        except OSError:
            return 100
    return None
