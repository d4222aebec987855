"""`rlaudit report`: render a finished run again, in any format."""

import json
from pathlib import Path
from typing import Annotated

import typer

from rlaudit.cli.output import HELP as OUTPUT_HELP
from rlaudit.cli.output import parse_outputs, write_outputs
from rlaudit.errors import NotFinished, UsageError


def report(
    run: Annotated[Path, typer.Argument(help="A run directory, or its report.json.")],
    output: Annotated[list[str] | None, typer.Option(help=OUTPUT_HELP)] = None,
) -> int:
    """Render a finished run again; ends with the run's own exit code."""
    outputs = parse_outputs(output or [])
    path = run / "report.json" if run.is_dir() else run
    if not path.exists():
        if run.is_dir() and (run / "plan.json").exists():
            raise NotFinished(
                f"the run in {run} has not finished", "the ablate command that started it goes on from there"
            )
        raise UsageError(f"no run at {run}")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{path} is not a report: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != "rlaudit-report/1":
        raise UsageError(f"{path} is not a report of schema rlaudit-report/1")
    write_outputs(outputs, document)
    return int(document["exit_code"])
