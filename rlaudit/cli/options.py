"""Options that several commands have, each declared once."""

from enum import StrEnum
from typing import Annotated

import typer

from rlaudit.cli.inspect_arguments import FAIL_FOR_HELP
from rlaudit.cli.names import formats, one_of
from rlaudit.cli.output import HELP
from rlaudit.errors import UsageError
from rlaudit.severity import FailFor, Severity, Threshold

LOCAL, RAY = "local", "ray"


class FailOn(StrEnum):
    """What makes the exit code 1."""

    ERROR = "error"
    NEVER = "never"


class Required(StrEnum):
    """What takes more than that nothing was found."""

    MATCH = "match"


Require = Annotated[
    Required | None,
    typer.Option(
        metavar="match",
        help="match: exit with 3 unless every layer matches; by default a layer in which nothing was found passes.",
    ),
]
FailOnMismatch = Annotated[FailOn, typer.Option(help="error: exit with 1 if a layer mismatches; never: do not.")]
FailForWhat = Annotated[FailFor, typer.Option("--fail-for", help=FAIL_FOR_HELP, show_default=False)]
Outputs = Annotated[list[str] | None, typer.Option(metavar="FORMAT[:PATH]", help=HELP, autocompletion=one_of(formats))]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]


def threshold_of(fail_on: FailOn, fail_for: FailFor) -> Threshold:
    """Return what makes the exit code 1."""
    return Threshold(Severity.ERROR if fail_on is FailOn.ERROR else None, fail_for)


def ray_address(executor: str) -> str | None:
    """Return the address of the Ray cluster in `--executor`, None for `local`.

    Empty is the cluster that this machine belongs to. Raises UsageError for another word.
    """
    kind, _, address = executor.partition(":")
    if kind == RAY:
        return address
    if executor != LOCAL:
        raise UsageError(f"--executor {executor}: there are {LOCAL} and {RAY}[:ADDRESS]")
    return None
