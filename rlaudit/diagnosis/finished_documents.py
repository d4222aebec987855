"""Reports that rlaudit wrote, read back: from a file, or from a run directory."""

from dataclasses import dataclass
from pathlib import Path

from rlaudit.errors import NotFinished, UsageError
from rlaudit.laboratory.run_folder import REPORT, has_report, is_run
from rlaudit.report.read_report import read_report
from rlaudit.report.report import Report

COMMANDS = ("inspect", "ablate", "compare", "curves")


@dataclass(frozen=True)
class FinishedDocument:
    """One report and where it was read."""

    path: str
    document: Report

    @property
    def command(self) -> str:
        """Which command wrote it."""
        return str(self.document["command"])


def read_document(path: Path) -> FinishedDocument:
    """Raises UsageError for what is no report of one of COMMANDS, NotFinished for a run that has not ended or is not as
    it was left."""
    file = path / REPORT if path.is_dir() else path
    if not (path.is_file() or (path.is_dir() and has_report(path))):
        if is_run(path):
            raise NotFinished(f"the run in {path} has not finished", "the ablate command that started it goes on there")
        raise UsageError(f"there is no report at {path}", "write one with --output json:FILE")
    document = read_report(file)
    if document["command"] not in COMMANDS:
        raise UsageError(f"{file} is of `rlaudit {document['command']}`", f"expected one of: {', '.join(COMMANDS)}")
    return FinishedDocument(str(path), document)
