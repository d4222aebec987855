"""An output format: a name and a function from the report to text."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlaudit.secrets import mask
from rlaudit.text.printable import no_commands

if TYPE_CHECKING:
    from rlaudit.report.report import Report


@dataclass(frozen=True)
class ReportFormat:
    """One format. Its functions get the report and the width of the terminal, None if piped or written to a file."""

    name: str
    render: Callable[["Report", int | None], str]
    for_programs: bool = False  # whether programs read it, which undo its own escapes, and not people in a log
    markup: bool = False  # whether it is HTML or XML, which says of itself that it is UTF-8
    in_full: Callable[["Report", int | None], str] | None = None  # renders it for -v, if `render` leaves something out

    def verbose(self) -> "ReportFormat":
        """Return the same format with nothing left out."""
        return replace(self, render=self.in_full or self.render)

    def text(self, report: "Report", width: int | None) -> str:
        """Return the rendered report without secrets, and without what a log would obey."""
        # Secrets are masked before rendering, since a format may escape a quote in them, and after it for what it adds.
        rendered = mask(self.render(mask(report), width))
        return rendered if self.for_programs else no_commands(rendered)
