"""`rlaudit diagnose`: finished reports as one diagnosis."""

from pathlib import Path
from typing import Annotated

import typer

from rlaudit.cli.options import FailForWhat, FailOn, FailOnMismatch, Outputs, threshold_of
from rlaudit.cli.output import parse_outputs, write_outputs
from rlaudit.files.unchanged import unchanged
from rlaudit.severity import FailFor


def diagnose(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Run directories of ablate, JSON reports of inspect, ablate, compare and curves, in any number. Of "
            "recordings one, or the old and the new one of a migration.",
        ),
    ],
    output: Outputs = None,
    fail_on: FailOnMismatch = FailOn.ERROR,
    fail_for: FailForWhat = FailFor.STATE,
) -> int:
    """Join runs, comparisons and recordings in one diagnosis, layer by layer."""
    from rlaudit.recording.recording import is_recording
    from rlaudit.report.combined import combined, read_document

    outputs, threshold = parse_outputs(output), threshold_of(fail_on, fail_for)
    recordings = [run for run in runs if is_recording(run)]
    sources = [read_document(run) for run in runs if run not in recordings]
    if recordings:
        # Statistics and tables take a second to import, which finished reports need not wait for.
        from rlaudit.report.of_recordings import diagnosed

        with unchanged() as readings:
            readings.add(recordings)
            document = diagnosed(recordings, sources, threshold)
    else:
        document = combined(sources, threshold)
    return write_outputs(outputs, document)
