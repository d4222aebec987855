"""`rlaudit diagnose`: finished reports as one diagnosis."""

from pathlib import Path
from typing import Annotated

import typer

from rlaudit.cli.fail_on import FailOn, FailOnMismatch
from rlaudit.cli.output import HELP as OUTPUT_HELP
from rlaudit.cli.output import parse_outputs, write_outputs


def diagnose(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Run directories of ablate, and JSON reports of inspect, ablate, compare and curves."
        ),
    ],
    output: Annotated[list[str] | None, typer.Option(help=OUTPUT_HELP)] = None,
    fail_on: FailOnMismatch = FailOn.ERROR,
) -> int:
    """Combine what was inspected, ablated, compared and logged into the three layers, in their order."""
    from rlaudit.diagnosis.combine import combined
    from rlaudit.diagnosis.finished_documents import read_document

    outputs = parse_outputs(output or [])
    sources = [read_document(run) for run in runs]
    document = combined(sources, fail_on is FailOn.ERROR)
    write_outputs(outputs, document)
    return int(document["exit_code"])
