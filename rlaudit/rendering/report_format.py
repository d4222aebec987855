"""What an output format is: a name and a function from the document to text."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlaudit.printable import no_commands
from rlaudit.secrets import mask

if TYPE_CHECKING:
    from rlaudit.report.report import Report


@dataclass(frozen=True)
class ReportFormat:
    """One format. `render` gets the document and the width of the terminal (None when piped or written to a file).

    for_programs: whether it is read by programs, which undo its own escapes, and not by people in a log. in_full: how
    -v renders it, if `render` leaves something out.
    """

    name: str
    render: Callable[["Report", int | None], str]
    for_programs: bool = False
    in_full: Callable[["Report", int | None], str] | None = None

    def verbose(self) -> "ReportFormat":
        """Return the same format with nothing left out."""
        return replace(self, render=self.in_full or self.render)

    def text(self, document: "Report", width: int | None) -> str:
        """Return the report as it is written."""
        # Before it is rendered, since a format has its own way to write a quote; after it for what a format adds.
        rendered = mask(self.render(mask(document), width))
        return rendered if self.for_programs else no_commands(rendered)
