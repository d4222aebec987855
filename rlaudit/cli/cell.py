"""`rlaudit cell`: one cell of a run, alone, wherever its run directory is seen."""

from pathlib import Path
from typing import Annotated

import typer

from rlaudit.cli.examples import epilog, unwrapped
from rlaudit.cli.options import Quiet
from rlaudit.errors import UsageError
from rlaudit.progress import Progress, readable
from rlaudit.say import answer

app = typer.Typer(
    help="One cell of a run: an engine or trainer process in a folder of its own.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    epilog=unwrapped(epilog("cell")),
)


@app.callback()
def _cell() -> None:
    """One cell of a run: an engine or trainer process in a folder of its own."""


@app.command()
def run(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory that ablate made.")],
    cell: Annotated[str, typer.Argument(metavar="CELL", help="The name of a folder in RUN/cells, or its beginning.")],
    quiet: Quiet = False,
) -> int:
    """Run one cell of a run again: one that failed, was cut off, or was left to another shard.

    It is run as it was planned, on the GPUs of this machine; a machine with others than it was planned for is refused.
    A cell that is whole is kept as it is. The ablate command of the run, or --merge, takes it up.
    """
    from rlaudit.laboratory.single_cell import run_single

    progress = Progress(quiet)
    key, outcome = run_single(run_dir, _cell_folder(run_dir, cell), progress)
    seconds = outcome.usage.get("seconds")
    took = "" if seconds is None else f", {readable(seconds)}"
    failure = "" if outcome.failure is None else f"  ({outcome.failure.boundary}: {outcome.failure.message})"
    answer(f"{outcome.status} {key}{took}{failure}")
    return 3 if outcome.status == "failed" else 0


def _cell_folder(run_dir: Path, beginning: str) -> Path:
    """Return the folder of the cell whose name begins so. Raises UsageError if no cell's does, or several do."""
    cells = sorted(path for path in (run_dir / "cells").glob("*") if path.is_dir())
    matching = [path for path in cells if path.name.startswith(beginning)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        names = ", ".join(path.name for path in matching)
        raise UsageError(f"several cells of {run_dir} begin with {beginning}: {names}")
    names = ", ".join(path.name for path in cells) or "none"
    raise UsageError(f"{run_dir} has no cell {beginning}", f"There are: {names}.")
