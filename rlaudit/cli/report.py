"""`rlaudit report`: render a run again, finished or not, in any format."""

from pathlib import Path
from typing import Annotated

import typer

from rlaudit.cli.options import Outputs
from rlaudit.cli.output import parse_outputs, write_outputs
from rlaudit.errors import UsageError
from rlaudit.text.say import say


def report(
    run: Annotated[
        Path, typer.Argument(help="A run directory, or the JSON report of any command: rlaudit report runs/v0-to-v1.")
    ],
    output: Outputs = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Text and Markdown with notes and folded details.")
    ] = False,
) -> int:
    """Render a run again, finished or not.

    Ends with the run's own exit code, and with 3 if it has not finished.
    """
    from rlaudit.ablation.unfinished_run import unfinished_document
    from rlaudit.laboratory.run_folder import REPORT, has_report, is_run
    from rlaudit.report.read_report import read_report

    outputs = parse_outputs(output, verbose)
    path = run / REPORT if run.is_dir() else run
    if run.is_file() or (run.is_dir() and has_report(run)):
        document = read_report(path)
    elif is_run(run):
        document = unfinished_document(run)
        say(f"{run} has no report.json: the run has not finished; {document['layers'][0].next}")
    else:
        raise UsageError(
            f"{run}: no such run", "give a folder that rlaudit ablate wrote, or a file that --output json:FILE wrote"
        )
    return write_outputs(outputs, document)
